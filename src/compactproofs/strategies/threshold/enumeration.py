"""Deciding the doubtful sequences one by one, depth first, where there are few.

A branch is left when the sum of h, the maximum over outputs, is negative whatever follows. That a computed negative sum proves it, in the
notation of `pairs`: let P and N be the sums of the positive and of the absolute negative h of a sequence. The computed sum is negative, so
P <= N (1 + O(gamma)), and the rounding of the sum is at most 2.01 gamma_{k+1} N. Where h < 0, every output o has w_o |G_o| >= |h|, and
its own spare is at least 5 T / (2 b) (|h| - UNDERFLOW) >= (3 gamma_k + 704 u) (|h| - UNDERFLOW), as t >= 2^-45; and where h has lost
anything by underflow (at most 2^-1074 a term), half of UNDERFLOW still exceeds it. Adding up, each output's exact weighted sum is at most
the exact sum of h minus its spare, hence negative.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.counting.grid import natural_unit
from compactproofs.strategies.threshold.pairs import LOWER, UPPER, balanced, fill_terms, known, relevant_outputs, worst_output


@kernel
@no_type_check
def enumerate_failures(
    attention: Any,
    EVOU: Any,
    PVOU: Any,
    EU: Any,
    tokens: Any,
    q: int,
    label: int,
    usual: int,
    tolerance: float,
    floor: float,
    following: Any,
    accepting: Any,
    start: int,
    most: int,
    result: Any,
) -> bool:
    """Look at every accepted sequence, ending in token number q, that the worst output of each token does not rule out.

    result[UPPER] counts those on which an output may reach the label, result[LOWER] those on which one certainly does. Gives up, with
    False, after `most` sequences.
    """
    k = PVOU.shape[0]
    n = tokens.shape[0]
    n_states = following.shape[0]
    G = np.empty((EVOU.shape[1], k, n))
    A = np.empty((k, n))
    result[:] = 0
    if not tolerance < np.inf:
        return False
    fill_terms(attention, EVOU, PVOU, EU, tokens, label, tokens[q], G, A)
    wrong = np.array([o for o in range(EVOU.shape[1]) if o != label])
    outputs = relevant_outputs(G, A, wrong, q, tolerance, floor, following, accepting, start)
    m = outputs.shape[0]
    if m == 0:
        return True
    last = np.zeros(n, np.bool_)
    last[q] = True
    units = np.ones(G.shape[0])
    for o in outputs:
        units[o] = natural_unit(G[o], last, usual, usual)
    h = worst_output(G, A, outputs, balanced(units, outputs), tolerance, floor)
    ahead = np.full((k + 1, n_states), -np.inf)  # the most that the rest can add
    for s in range(n_states):
        if accepting[s]:
            ahead[k, s] = 0.0
    for i in range(k - 1, -1, -1):
        for s in range(n_states):
            for j in range(n) if i < k - 1 else range(q, q + 1):
                z = following[s, j]
                if z >= 0 and ahead[i + 1, z] != -np.inf:
                    x = h[i, j] + ahead[i + 1, z]
                    if not x <= ahead[i, s]:
                        ahead[i, s] = known(x)
    bound = np.zeros(k + 1)
    state = np.zeros(k + 1, np.int64)
    mass = np.zeros(k + 1)
    sums = np.zeros((k + 1, m))
    chosen = np.full(k + 1, -1)
    state[0] = start
    i = 0
    seen = 0
    while i >= 0:
        j = chosen[i] + 1
        if i == k - 1 and j <= q:
            j = q
        if j >= n or (i == k - 1 and j > q):
            chosen[i] = -1
            i -= 1
            continue
        chosen[i] = j
        z = following[state[i], j]
        if z < 0 or ahead[i + 1, z] == -np.inf or (bound[i] + h[i, j]) + ahead[i + 1, z] < 0.0:
            continue
        mass[i + 1] = mass[i] + A[i, j]
        for x in range(m):
            sums[i + 1, x] = sums[i, x] + G[outputs[x], i, j]
        if i < k - 1:
            bound[i + 1] = bound[i] + h[i, j]
            state[i + 1] = z
            i += 1
            continue
        seen += 1
        if seen > most:
            return False
        margin = tolerance * mass[k] + k * floor
        possible = False
        certain = False
        for x in range(m):
            if not sums[k, x] < -margin:
                possible = True
                if sums[k, x] > margin:
                    certain = True
        if possible:
            result[UPPER] += 1
        if certain:
            result[LOWER] += 1
    return True
