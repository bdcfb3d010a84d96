"""Looks at pairs of a query and a label, compiled: at all their sequences, or at some of them.

There is one kernel for both, since what it calls takes long to compile. What it writes is a record, as in `search.pairs`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.bounds.pairs import pair_for, rivals, walk_operations
from compactproofs.counting.classes import in_class
from compactproofs.counting.levels import levelled
from compactproofs.search.covers import supported
from compactproofs.search.grids import Leaf, dominant_tokens, occurring
from compactproofs.search.pairs import ANY, DOUBT, OUTPUTS, SPLIT, TOLD, Tries, attended, bound_leaf, last_token
from compactproofs.search.writing import begin, put, put_all, replace

NOTHING = np.empty(0, dtype=np.int64)
ONLY_OUTPUTS = Tries(0, 0, 0, True, True, False)


class Place(NamedTuple):
    """Some sequences of a query and a label: an automaton, outputs that may be harmful there, a token that it is about, and how often
    tokens are known to occur (-1: not to be asked about)."""

    automaton: Any
    candidates: Any
    about: int
    copies: Any


class Rooms(NamedTuple):
    """What looks write, a row for each query: `told` as in `bound_leaf`, and records below and above."""

    told: Any
    below: Any
    above: Any


def look(evaluation: Any, subject: Any, queries: Any, tries: Tries, totals: Any, below: Any, above: Any) -> Any:
    """Look at all sequences of some queries (numbered among the tokens), as in `look_at_pair`: bounds (failing, right), a row for each.

    `totals` is about the mass of each pair; there is a record below and one above, a row for each.
    """
    whole = Place(subject.automaton, NOTHING, subject.usual, NOTHING)
    rooms = Rooms(totals.reshape(-1, 1), below, above)
    return look_at(evaluation, subject, queries, whole, tries, rooms)


class Found(NamedTuple):
    """What a look at a place found."""

    failing: int
    right: int
    doubt: int
    token: int
    """A token to split by, or -1"""
    outputs: Any
    """Those that may be harmful, those that spoil most first"""


def look_at_place(evaluation: Any, subject: Any, q: int, place: Place, tries: Tries, records: tuple[Any, ...]) -> Found:
    """`bound_leaf` for a place of a query; terms go to the records."""
    rooms = Rooms(np.empty((1, TOLD + len(place.candidates)), dtype=np.int64), *(record.reshape(1, -1) for record in records))
    ((failing, right),) = look_at(evaluation, subject, np.array([q]), place, tries, rooms).tolist()
    (told,) = rooms.told
    return Found(failing, right, int(told[DOUBT]), int(told[SPLIT]), told[TOLD : TOLD + told[OUTPUTS]])


def harmful_of(evaluation: Any, subject: Any, q: int) -> Any:
    """Outputs that may reach the label on some sequence that ends in the query, those that probably spoil most first."""
    whole = Place(subject.automaton, NOTHING, subject.usual, NOTHING)
    told = np.empty((1, TOLD + evaluation.EU.shape[1]), dtype=np.int64)
    record = np.empty((1, 1), dtype=np.int64)
    look_at(evaluation, subject, np.array([q]), whole, ONLY_OUTPUTS, Rooms(told, record, record))
    return told[0, TOLD : TOLD + told[0, OUTPUTS]]


@kernel
@no_type_check
def look_at(evaluation: Any, subject: Any, queries: Any, place: Any, tries: Any, rooms: Any) -> Any:
    """Look at a place of some queries; or, if it knows of no copies of any token, at all sequences of each. Bounds (failing, right).
    With no steps to count with, only tell which outputs of all sequences may be harmful.

    One kernel for both, since what it calls takes long to compile.
    """
    bounds = np.empty((queries.shape[0], 2), np.int64)
    for number in range(queries.shape[0]):
        q = queries[number]
        masses = last_token(subject.masses, q)
        records = rooms.below[number], rooms.above[number]
        whole = place.copies.shape[0] == 0
        automaton, candidates = place.automaton, place.candidates
        if whole:
            automaton = levelled(subject.automaton, masses)
            candidates = rivals(evaluation, subject, masses, automaton, subject.tokens[q])
        pair = pair_for(evaluation, subject.tokens, subject.label, subject.tokens[q], candidates)
        if whole:
            leaf = Leaf(masses, occurring(masses, automaton), automaton, subject.usual, subject.usual)
            candidates = supported(pair, candidates, leaf)
            if tries.steps == 0:
                told = rooms.told[number]
                told[OUTPUTS] = candidates.shape[0]
                for x in range(candidates.shape[0]):
                    told[TOLD + x] = candidates[x]
                continue
            failing, right = look_at_pair(pair, candidates, leaf, tries, rooms.told[number, 0], records)
        else:
            begin(records[0])
            begin(records[1])
            leaf = Leaf(masses, occurring(masses, automaton), automaton, subject.usual, place.about)
            failing, right = bound_leaf(pair, candidates, leaf, tries, records, place.copies, rooms.told[number])
        bounds[number, 0] = failing
        bounds[number, 1] = right
    return bounds


@kernel
@no_type_check
def look_at_pair(pair: Any, candidates: Any, whole: Any, tries: Any, total: int, records: Any) -> Any:
    """Look at all sequences of a pair, a leaf: bounds (failing, right) as in `bound_leaf`, and records below and above.

    If the bounds are far apart (`total`, about the mass of the pair, is failing plus right if they meet), classes of the most attended
    tokens are tried too; below and above, the better stands. A record is the order of classes (before it, below, the operations of the
    walks of all outputs) and then what `bound_leaf` writes for each class: below, the number of terms, the operations of further walks, and
    the terms; above, an output or -1, and its grid.
    """
    below, above = records
    masses, _, automaton, usual, _ = whole
    walks = walk_operations(masses, automaton) * (pair.G.shape[0] - 1)
    copies, told = np.empty(masses.shape[1], np.int64), np.empty(TOLD + candidates.shape[0], np.int64)
    for j in range(copies.shape[0]):
        copies[j] = -1
    order = candidates[:0]
    failing = right = ANY
    lower, upper = below, above
    for turn in range(2):
        if turn == 1:
            if tries.classes == 0 or failing + right - total <= tries.small:
                break
            order = dominant_tokens(attended(pair), usual, tries.classes)
            lower, upper = np.empty(below.shape[0], np.int64), np.empty(above.shape[0], np.int64)
        begin(lower)
        begin(upper)
        put(lower, walks)
        put(lower, order.shape[0])
        put(upper, order.shape[0])
        put_all(lower, order)
        put_all(upper, order)
        more = some = 0
        for c in range(order.shape[0] + 1):
            token = order[c] if c < order.shape[0] else usual
            part = levelled(in_class(automaton, order, c), masses)
            leaf = Leaf(masses, occurring(masses, part), part, usual, token)
            x, y = bound_leaf(pair, candidates, leaf, tries, (lower, upper), copies, told)
            more, some = min(more + x, ANY), min(some + y, ANY)
        if more < failing:
            failing = more
            if turn == 1:
                replace(below, lower)
        if some < right:
            right = some
            if turn == 1:
                replace(above, upper)
    return failing, right
