"""The compiled search over one query and one label: it tries terms and classes, counts them, and writes down what it chose.

What it writes is a sequence of integers that `search.records` reads back into the ledger. The counts come from the very functions that
`verify` calls, so they are what the ledger proves.
"""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.bounds.pairs import apart_harms, harmful_outputs, joint_harms, pair_of, spoiler_harms, walk_operations
from compactproofs.counting.classes import in_class
from compactproofs.counting.count_up import ascending, mass_up
from compactproofs.search.grids import DEEPEST, Leaf, count_on_grid, dominant_tokens, natural_unit
from compactproofs.search.writing import begin, put, put_all, replace

ANY = (1 << 62) - 1
"""More than any count in its units; the sum of two such still fits."""

JOINT, APART = 0, 1
"""Kinds of terms in records."""

MULTIPLIERS = (0.3, 0.6, 0.8, 0.9)
PARENTS = 3
RANKING_STEPS = 8
HEAVIEST = 1 << 30
"""The largest weight of an output."""

SPOILER_DEPTH = 64


class Tries(NamedTuple):
    """What to try."""

    steps: int
    classes: int
    small: int
    """No classes where the bounds are as near as this, in units of counts."""
    joint: bool
    apart: bool
    upper: bool


def rooms(tries: Tries, n_out: int, k: int, n: int) -> tuple[int, int]:
    """How long records below and above can get, for so many outputs, positions and tokens."""
    classes, grid = min(tries.classes, n), 3 + k
    terms = max(3 + 2 * n_out + grid, n_out * (6 + grid) if tries.apart else 0)
    return 3 + classes + (1 + classes) * (2 + terms), 2 + classes + (1 + classes) * (1 + grid)


@kernel
@no_type_check
def put_joint(record: Any, outputs: Any, weights: Any, grid: Any, operations: int) -> None:
    """JOINT, number of outputs, outputs, weights, grid, operations of counting"""
    put(record, JOINT)
    put(record, outputs.shape[0])
    put_all(record, outputs)
    put_all(record, weights)
    put_all(record, grid)
    put(record, operations)


@kernel
@no_type_check
def balanced(units: Any) -> Any:
    """Weights that make the units of all outputs about equal."""
    smallest = np.inf
    for unit in units:
        smallest = min(smallest, unit)
    weights = np.empty(units.shape[0], np.int64)
    for x in range(units.shape[0]):
        weights[x] = max(1, int(HEAVIEST * (smallest / units[x])))
    return weights


@kernel
@no_type_check
def failures(pair: Any, candidates: Any, leaf: Any, tries: Any, below: Any, above: Any) -> Any:
    """Bound one leaf: (mass that may fail, mass that may be right), both from above. Terms go to the records.

    Write F_o for the sequences that output o spoils. `joint` bounds their union by the sequences on which the worst output of each token
    would win. `apart` bounds it by |F_1| + sum_j min(|F_j|, |F_j minus F_i|) over outputs j and an earlier i of each; on F_j minus F_i the
    sum of n1 G_j - n2 G_i is not negative. Right answers are bounded by those on which one output loses.
    """
    masses, automaton, usual, token = leaf
    everything = mass_up(masses, automaton)
    outputs = harmful_outputs(pair, candidates, masses, automaton)
    m = outputs.shape[0]
    walking = walk_operations(masses, automaton) * (candidates.shape[0] - m)
    if m == 0:
        put(below, 0)
        put(below, walking)
        put(above, -1)
        return 0, everything
    units = np.empty(m)
    for x in range(m):
        units[x] = natural_unit(pair.G[outputs[x]], masses, usual, token)
    grids = np.empty((m + 1, 3 + masses.shape[0]), np.int64)  # the last one is for trying
    tried = grids[m]
    best = everything
    before = below[0]
    if tries.joint:
        weights = balanced(units)
        h = joint_harms(pair, outputs, weights)
        best, work = count_on_grid(h, leaf, natural_unit(h, masses, usual, token), tries.steps, DEEPEST, False, tried)
        put(below, 1)
        put(below, walking)
        put_joint(below, outputs, weights, tried, work)
    if best == 0 or not (tries.apart or tries.upper):
        put(above, -1)
        return best, everything

    rank = np.empty(m, np.int64)
    works = np.empty(m, np.int64)
    one = np.empty(1, np.int64)
    one[0] = 1
    for x in range(m):
        h = joint_harms(pair, outputs[x : x + 1], one)
        precision = tries.steps if tries.apart else min(tries.steps, RANKING_STEPS)
        rough, works[x] = count_on_grid(h, leaf, units[x], precision, DEEPEST, False, grids[x])
        rank[x] = -rough
    order = ascending(rank)
    if tries.apart:
        trial = np.empty(1 + m * (6 + grids.shape[1]), np.int64)
        begin(trial)
        total = 0
        used = 0
        for y in range(m):
            x = order[y]
            o = outputs[x]
            term = -rank[x]
            parent, factor, less, used_work = -1, 1, 0, works[x]
            for v in range(min(y, PARENTS)):
                p = order[v]
                for mu in MULTIPLIERS:
                    if term <= total >> 10:
                        break
                    ratio = mu * units[x] / units[p]
                    n1 = HEAVIEST if ratio <= 1.0 else max(1, int(HEAVIEST / ratio))
                    n2 = int(min(ratio, 1.0) * HEAVIEST)
                    h = apart_harms(pair, o, outputs[p], n1, n2)
                    found, work = count_on_grid(h, leaf, natural_unit(h, masses, usual, token), tries.steps, DEEPEST, False, tried)
                    if found < term:
                        term, parent, factor, less, used_work = found, outputs[p], n1, n2, work
                        for i in range(tried.shape[0]):
                            grids[x, i] = tried[i]
            total = min(total + term, everything)
            used += 1
            if parent < 0:
                put_joint(trial, outputs[x : x + 1], one, grids[x], used_work)
            else:
                put(trial, APART)
                put(trial, o)
                put(trial, parent)
                put(trial, factor)
                put(trial, less)
                put_all(trial, grids[x])
                put(trial, used_work)
            if total >= best and tries.joint:
                break
        if total < best or not tries.joint:
            best = total
            below[0] = before
            put(below, used)
            put(below, walking)
            put_all(below, trial[1 : trial[0]])
    right = everything
    chosen = -1
    if tries.upper:
        for y in range(min(2, m)):
            x = order[y]
            h = spoiler_harms(pair, outputs[x])
            found, work = count_on_grid(h, leaf, units[x], tries.steps, SPOILER_DEPTH, True, tried)
            if found < right:
                right, chosen = found, outputs[x]
                for i in range(tried.shape[0]):
                    grids[0, i] = tried[i]
    put(above, chosen)
    if chosen >= 0:
        put_all(above, grids[0])
    return best, right


@kernel
@no_type_check
def look(evaluation: Any, subject: Any, queries: Any, tries: Any, totals: Any, below: Any, above: Any) -> Any:
    """Look at some queries (numbered among the tokens): bounds (failing, right) as in `failures`, one row for each; and records below and
    above, one row for each.

    If the bounds are far apart (`totals`, about the mass of each pair, is failing plus right if they meet), classes of the most attended
    tokens are tried too; below and above, the better stands. A record is the order of classes (before it, below, the operations of the
    walks of all outputs) and then what `failures` writes for each class: below, the number of terms, the operations of further walks, and
    the terms; above, an output or -1, and its grid.
    """
    bounds = np.empty((queries.shape[0], 2), np.int64)
    for number in range(queries.shape[0]):
        q = queries[number]
        masses = last_token(subject.masses, q)
        pair = pair_of(evaluation, subject.tokens, subject.label, subject.tokens[q])
        wrong = other_outputs(pair)
        candidates = harmful_outputs(pair, wrong, masses, subject.automaton)
        walks = walk_operations(masses, subject.automaton) * wrong.shape[0]
        order = wrong[:0]
        failing = right = ANY
        lower, upper = below[number], above[number]
        for turn in range(2):
            if turn == 1:
                if tries.classes == 0 or failing + right - totals[number] <= tries.small:
                    break
                order = dominant_tokens(attended(pair), subject.usual, tries.classes)
                lower, upper = np.empty(below.shape[1], np.int64), np.empty(above.shape[1], np.int64)
            begin(lower)
            begin(upper)
            put(lower, walks)
            put(lower, order.shape[0])
            put(upper, order.shape[0])
            put_all(lower, order)
            put_all(upper, order)
            more = some = 0
            for c in range(order.shape[0] + 1):
                token = order[c] if c < order.shape[0] else subject.usual
                leaf = Leaf(masses, in_class(subject.automaton, order, c), subject.usual, token)
                x, y = failures(pair, candidates, leaf, tries, lower, upper)
                more, some = min(more + x, ANY), min(some + y, ANY)
            if more < failing:
                failing = more
                if turn == 1:
                    replace(below[number], lower)
            if some < right:
                right = some
                if turn == 1:
                    replace(above[number], upper)
        bounds[number, 0] = failing
        bounds[number, 1] = right
    return bounds


@kernel
@no_type_check
def other_outputs(pair: Any) -> Any:
    """All outputs but the label."""
    result = np.empty(pair.G.shape[0] - 1, np.int64)
    for x in range(result.shape[0]):
        result[x] = x if x < pair.label else x + 1
    return result


@kernel
@no_type_check
def attended(pair: Any) -> Any:
    """The attention to each token, at all positions but the last."""
    result = np.zeros(pair.A.shape[1])
    for i in range(pair.A.shape[0] - 1):
        for j in range(pair.A.shape[1]):
            result[j] += pair.A[i, j]
    return result


@kernel
@no_type_check
def last_token(masses: Any, q: int) -> Any:
    """The masses, with token q alone at the last position."""
    k, n = masses.shape
    result = np.empty((k, n), np.int64)
    for i in range(k):
        for j in range(n):
            result[i, j] = masses[i, j] if i < k - 1 or j == q else 0
    return result
