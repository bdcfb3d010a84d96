"""Deciding one by one the sequences that a term counts, where there are few. What is decided goes into the ledger as a list."""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.bounds.pairs import RIGHT, WRONG, decide

_NEVER = -(1 << 60)


class Counted(NamedTuple):
    """Integers on a grid: the sequences with start + sum_i D[i, x_i] >= 0 are counted."""

    D: Any
    """(position, token number)"""
    start: int


@kernel
@no_type_check
def list_counted(pair: Any, leaf: Any, outputs: Any, failing: Any, right: Any, most: int) -> Any:
    """(whole, right sequences, wrong sequences), one after the other in lists of token numbers.

    Of the sequences that `failing` counts, listed are those that are certainly right (no one of the outputs reaches the label), and those
    that are certainly wrong but counted as `right`. Not whole, if there are more than `most`.
    """
    following, accepting, first = leaf.automaton
    masses = leaf.masses
    k, n = masses.shape
    n_states = following.shape[0]
    ahead = np.full((k + 1, n_states), _NEVER)  # the most that the rest can add
    for s in range(n_states):
        if accepting[s]:
            ahead[k, s] = 0
    for i in range(k - 1, -1, -1):
        for s in range(n_states):
            for j in range(n):
                z = following[s, j]
                if z >= 0 and masses[i, j] > 0 and ahead[i + 1, z] != _NEVER:
                    ahead[i, s] = max(ahead[i, s], failing.D[i, j] + ahead[i + 1, z])
    surely_right, surely_wrong = [0 for _ in range(0)], [0 for _ in range(0)]
    sums = np.zeros(k + 1, np.int64)
    sums[0] = failing.start
    state = np.zeros(k + 1, np.int64)
    state[0] = first
    chosen = np.full(k + 1, -1)
    i = 0
    seen = 0
    while i >= 0:
        j = chosen[i] + 1
        if j >= n:
            chosen[i] = -1
            i -= 1
            continue
        chosen[i] = j
        z = following[state[i], j]
        if z < 0 or masses[i, j] == 0 or ahead[i + 1, z] == _NEVER or sums[i] + failing.D[i, j] + ahead[i + 1, z] < 0:
            continue
        if i < k - 1:
            sums[i + 1] = sums[i] + failing.D[i, j]
            state[i + 1] = z
            i += 1
            continue
        seen += 1
        if seen > most:
            return False, surely_right, surely_wrong
        verdict = decide(pair, outputs, chosen[:k])
        if verdict == RIGHT:
            for x in range(k):
                surely_right.append(chosen[x])
        elif verdict == WRONG:
            total = right.start
            for x in range(k):
                total += right.D[x, chosen[x]]
            if total >= 0:
                for x in range(k):
                    surely_wrong.append(chosen[x])
    return True, surely_right, surely_wrong
