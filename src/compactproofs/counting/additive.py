"""How many sequences of one label have an additive score of at least zero: an integer dynamic programme over positions.

Each position i adds an integer H[i, t] for its token t. The programme walks over the positions with one histogram of partial sums per
automaton state. Sums are held in coarse steps of `coarse` units:

    up:    D[i, t] = ceil((H[i, t] - a_i) / coarse),   start = ceil (sum_i a_i / coarse)
    down:  D[i, t] = floor((H[i, t] - a_i) / coarse),  start = floor(sum_i a_i / coarse)

for any integers a_i. Then coarse (start + sum D) is at least (up) or at most (down) sum H, so counting start + sum D >= 0 gives an upper or
a lower bound of the number wanted, whatever the a_i are; good ones lose little. A sum that no rest of the sequence can bring below zero
is counted at once, one that none can lift to zero is dropped: only the undecided middle needs a histogram.

Numbers are 64-bit integers in units of 2^e, where e = 0 as long as k ceil(log2 n) <= 61 (as at 64^10 sequences); if not, e grows from
position to position and each histogram entry is rounded in the direction of the bound. No floating point anywhere.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel

FORBIDDEN = -(1 << 62)
"""Score of a token that cannot stand at a position (it is not counted)."""

LARGEST = 1 << 40
"""Scores must lie within plus and minus this."""

_MASS_BITS = 61
"""All counts together stay below 2^61 units, and what rounding up adds: at most one unit per entry and position, times the tokens."""


@kernel
@no_type_check
def _bits_per_position(n: int) -> int:
    bits = 0
    while (1 << bits) < n:
        bits += 1
    return bits


@kernel
@no_type_check
def count_exponent(k: int, n: int) -> int:
    """The e in "units of 2^e", for k positions with n tokens each; 0 if k ceil(log2 n) is at most 61."""
    return max(0, k * _bits_per_position(n) - _MASS_BITS)


@kernel
@no_type_check
def count_at_least_zero(H: Any, coarse: int, offsets: Any, following: Any, accepting: Any, start: int, up: bool) -> tuple[int, int]:
    """Bound the number of accepted sequences whose scores add up to at least zero.

    Returns (count, operations): the count is in units of 2^count_exponent(k, n); operations are the integer additions and
    multiplications that the histograms took. `following[s, t]` is the next automaton state, or -1 if no accepted sequence goes there.
    """
    k, n = H.shape
    n_states = following.shape[0]
    D = np.empty((k, n), np.int64)
    shift_total = 0
    for i in range(k):
        shift_total += offsets[i]
        for t in range(n):
            if H[i, t] == FORBIDDEN:
                D[i, t] = FORBIDDEN
            elif up:
                D[i, t] = -((offsets[i] - H[i, t]) // coarse)
            else:
                D[i, t] = (H[i, t] - offsets[i]) // coarse
    initial = -((-shift_total) // coarse) if up else shift_total // coarse

    # least and greatest sum that the rest can add from a state, over accepted sequences; alive: there is one
    least = np.zeros((k + 1, n_states), np.int64)
    greatest = np.zeros((k + 1, n_states), np.int64)
    alive = np.zeros((k + 1, n_states), np.bool_)
    for s in range(n_states):
        alive[k, s] = accepting[s]
    for i in range(k - 1, -1, -1):
        for s in range(n_states):
            for t in range(n):
                z = following[s, t]
                if z < 0 or D[i, t] == FORBIDDEN or not alive[i + 1, z]:
                    continue
                low = D[i, t] + least[i + 1, z]
                high = D[i, t] + greatest[i + 1, z]
                if not alive[i, s]:
                    alive[i, s] = True
                    least[i, s] = low
                    greatest[i, s] = high
                else:
                    least[i, s] = min(least[i, s], low)
                    greatest[i, s] = max(greatest[i, s], high)
    if not alive[0, start] or initial + greatest[0, start] < 0:
        return 0, 0

    operations = 0
    certain = np.zeros(n_states, np.int64)  # sequences so far that cannot fall below zero any more, by state
    new_certain = np.zeros(n_states, np.int64)
    base = initial  # sum that the first entry of the histograms stands for
    histogram = np.zeros((n_states, 1), np.int64)
    if initial + least[0, start] >= 0:
        certain[start] = 1
    else:
        histogram[start, 0] = 1
    bits_per_position = _bits_per_position(n)
    bits = 0
    for i in range(k):
        width = histogram.shape[1]
        # room for this position
        bits += bits_per_position
        shift = max(0, bits - _MASS_BITS)
        if shift > 0:
            bits -= shift
            extra = (1 << shift) - 1 if up else 0
            for s in range(n_states):
                certain[s] = (certain[s] + extra) >> shift
                for j in range(width):
                    histogram[s, j] = (histogram[s, j] + extra) >> shift
        # range of undecided sums after this position
        first = 1 << 61
        last = -(1 << 61)
        d_min = 1 << 61
        d_max = -(1 << 61)
        for t in range(n):
            if D[i, t] != FORBIDDEN:
                d_min = min(d_min, D[i, t])
                d_max = max(d_max, D[i, t])
        for s in range(n_states):
            if alive[i + 1, s]:
                first = min(first, -greatest[i + 1, s])
                last = max(last, -least[i + 1, s] - 1)
        first = max(first, base + d_min)
        last = min(last, base + width - 1 + d_max)
        new_width = max(last - first + 1, 1)
        new = np.zeros((n_states, new_width), np.int64)
        new_certain[:] = 0
        order = np.argsort(D[i])
        for s in range(n_states):
            if not alive[i, s]:
                continue
            operations += width
            tail = np.zeros(width + 1, np.int64)
            for j in range(width - 1, -1, -1):
                tail[j] = tail[j + 1] + histogram[s, j]
            for z in range(n_states):
                if not alive[i + 1, z]:
                    continue
                target = new[z]
                r = 0
                while r < n:
                    d = D[i, order[r]]
                    w = 0
                    while r < n and D[i, order[r]] == d:
                        if following[s, order[r]] == z:
                            w += 1
                        r += 1
                    if w == 0 or d == FORBIDDEN:
                        continue
                    new_certain[z] += w * certain[s]
                    decided = min(max(-least[i + 1, z] - base - d, 0), width)
                    new_certain[z] += w * tail[decided]
                    begin = min(max(-greatest[i + 1, z] - base - d, 0), decided)
                    move = base + d - first
                    if w == 1:
                        operations += decided - begin
                        for j in range(begin, decided):
                            target[j + move] += histogram[s, j]
                    else:
                        operations += 2 * (decided - begin)
                        for j in range(begin, decided):
                            target[j + move] += w * histogram[s, j]
        certain, new_certain = new_certain, certain
        histogram = new
        base = first
    total = 0
    for s in range(n_states):
        if accepting[s]:
            total += certain[s]
    return total, operations
