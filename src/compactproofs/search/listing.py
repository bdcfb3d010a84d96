"""Deciding one by one the sequences that a term counts, where there are few. What is decided goes into the ledger as a list."""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.bounds.pairs import RIGHT, WRONG, decide, joint_harms, pair_of
from compactproofs.counting.grid import Grid, initial_sum, on_grid
from compactproofs.search.pairs import last_token
from compactproofs.search.spoiling import of_spoilers

_NEVER = -(1 << 60)


class Counted(NamedTuple):
    """Integers on a grid: the sequences with start + sum_i D[i, 0, x_i] >= 0 are counted."""

    D: Any
    """(position, 1, token number)"""
    start: int


@kernel
@no_type_check
def counted(h: Any, record: Any, at: int, strict: bool) -> Any:
    """The integers that `count_harms` adds up on the grid that is written there."""
    offsets = record[at + 3 : at + 3 + h.shape[0]]
    start = initial_sum(offsets) - (1 if strict else 0)
    return Counted(on_grid(h, Grid(record[at], record[at + 1], record[at + 2], offsets), start), start)


@kernel
@no_type_check
def most_ahead(D: Any, masses: Any, automaton: Any) -> Any:
    """(position, state): the most that an accepted rest can add."""
    following, accepting, _ = automaton
    k, n = masses.shape
    n_states = following.shape[0]
    ahead = np.full((k + 1, n_states), _NEVER)
    for s in range(n_states):
        if accepting[s]:
            ahead[k, s] = 0
    for i in range(k - 1, -1, -1):
        for s in range(n_states):
            for j in range(n):
                z = following[s, j]
                if z >= 0 and masses[i, j] > 0 and ahead[i + 1, z] != _NEVER:
                    ahead[i, s] = max(ahead[i, s], D[i, j] + ahead[i + 1, z])
    return ahead


@kernel
@no_type_check
def list_leaf(D: Any, start: int, masses: Any, automaton: Any, room: Any) -> int:
    """List the accepted sequences that have a mass and start + sum_i D[i, x_i] >= 0, token numbers in the rows of `room`; returns how many
    there are, or -1 if the room does not suffice."""
    following, _, first = automaton
    k, n = masses.shape
    ahead = most_ahead(D, masses, automaton)
    sums = np.zeros(k + 1, np.int64)
    sums[0] = start
    state = np.zeros(k + 1, np.int64)
    state[0] = first
    chosen = np.full(k + 1, -1)
    found = 0
    i = 0
    while i >= 0:
        j = chosen[i] + 1
        if j >= n:
            chosen[i] = -1
            i -= 1
            continue
        chosen[i] = j
        z = following[state[i], j]
        if z < 0 or masses[i, j] == 0 or ahead[i + 1, z] == _NEVER or sums[i] + D[i, j] + ahead[i + 1, z] < 0:
            continue
        if i < k - 1:
            sums[i + 1] = sums[i] + D[i, j]
            state[i + 1] = z
            i += 1
            continue
        if found >= room.shape[0]:
            return -1
        for x in range(k):
            room[found, x] = chosen[x]
        found += 1
    return found


@kernel
@no_type_check
def list_doubtful(evaluation: Any, subject: Any, q: int, place: Any, records: Any, rooms: Any) -> Any:
    """Of the sequences of a place that the record below, of one joint term, counts as failing and the record above as right, list those
    that are certainly right (no one of the outputs reaches the label), and those that are certainly wrong. Masses must be 1.

    The others need no list: what only one of the two counts is right, or wrong. Returns how many there are of each, token numbers in the
    rows of the two rooms; -1, -1 if the room does not suffice.
    """
    below, above = records
    right, wrong = rooms
    masses = last_token(subject.masses, q)
    pair = pair_of(evaluation, subject.tokens, subject.label, subject.tokens[q])
    k, n = masses.shape
    m, at = below[3], 4
    outputs = below[at : at + m]
    may_fail = counted(joint_harms(pair, outputs, below[at + m : at + 2 * m]), below, at + 2 * m, False)
    may_be_right = Counted(np.zeros((k, 1, n), np.int64), 0)  # without a spoiler, all may be right
    if above[0] >= 0:
        may_be_right = counted(of_spoilers(pair, above), above, 4, True)
    following, _, first = place.automaton
    D, E = may_fail.D[:, 0], may_be_right.D[:, 0]
    fails, holds = most_ahead(D, masses, place.automaton), most_ahead(E, masses, place.automaton)
    n_right = n_wrong = 0
    sums, others = np.zeros(k + 1, np.int64), np.zeros(k + 1, np.int64)
    sums[0], others[0] = may_fail.start, may_be_right.start
    state = np.zeros(k + 1, np.int64)
    state[0] = first
    chosen = np.full(k + 1, -1)
    i = 0
    while i >= 0:
        j = chosen[i] + 1
        if j >= n:
            chosen[i] = -1
            i -= 1
            continue
        chosen[i] = j
        z = following[state[i], j]
        if z < 0 or masses[i, j] == 0 or fails[i + 1, z] == _NEVER:
            continue
        x, y = sums[i] + D[i, j], others[i] + E[i, j]
        if x + fails[i + 1, z] < 0 or y + holds[i + 1, z] < 0:
            continue
        if i < k - 1:
            sums[i + 1], others[i + 1], state[i + 1] = x, y, z
            i += 1
            continue
        if n_right >= right.shape[0] or n_wrong >= wrong.shape[0]:
            return -1, -1
        verdict = decide(pair, outputs, chosen[:k])
        if verdict == RIGHT:
            for t in range(k):
                right[n_right, t] = chosen[t]
            n_right += 1
        elif verdict == WRONG:
            for t in range(k):
                wrong[n_wrong, t] = chosen[t]
            n_wrong += 1
    return n_right, n_wrong
