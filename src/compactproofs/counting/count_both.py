"""`count_both`: the mass of the sequences on which two sums at once are at least zero.

It is `count_up` for an automaton that remembers the second sum. Both sums are kept between -reach and reach: below it they are raised to
-reach, and what has come to reach stays there, whatever follows. Both only add to what is counted, so any reach is sound. With z and y
the two sums, D and E what token t adds to them,

    f_k(s, z, y) = 1 if s accepts, z >= 0 and y >= 0, else 0
    f_i(s, z, y) = sum_t M(i, t) ceil(f_{i+1}(delta(s, t), z + D(i, t), y + E(i, t)) / 2^e_i)

and the result is f_0(first state, start, other) in units of 2^(e_0 + ... + e_{k-1}), the e_i being the least that keep all numbers below
2^53: what is added up are integers that float64 holds exactly, in any order. f is monotone in D and E, which may be rounded up and raised.

f_i(s, ., .) is 0 where a sum is below what the rest can make up for, and does not depend on a sum that the rest cannot bring below zero;
only what lies between is held.
"""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.counting.count_up import ascending, exponents_below, token_kinds

MOST_REACH = 1 << 10
"""Sums are kept within plus and minus this, at most."""

_EXACT = (1 << 53) - 1
"""float64 holds all integers up to this."""

_NEVER = 1 << 60


class Moves(NamedTuple):
    """What tokens do: those of a position that move every state alike and add the same to both sums are one move."""

    many: Any
    """(position,): how many there are"""
    token: Any
    """(position, move): one of its tokens"""
    added: Any
    """(sum, position, move): what it adds"""
    masses: Any
    """(position, move)"""


@kernel
@no_type_check
def moves_of_both(D: Any, E: Any, masses: Any, automaton: Any, reach: int) -> Any:
    """The moves. More than twice the reach is as good as twice the reach."""
    k, n = masses.shape
    kinds = token_kinds(automaton)
    most = 2 * reach
    many = np.zeros(k, np.int64)
    token, weight, added = np.zeros((k, n), np.int64), np.zeros((k, n), np.int64), np.zeros((2, k, n), np.int64)
    keys = np.empty(n, np.int64)
    for i in range(k):
        for t in range(n):
            d, e = min(max(D[i, t], -most), most), min(max(E[i, t], -most), most)
            keys[t] = (kinds[t] * (2 * most + 1) + d + most) * (2 * most + 1) + e + most
        last = -1
        for t in ascending(keys):
            if masses[i, t] == 0:
                continue
            if keys[t] != last:
                last = keys[t]
                at = many[i]
                token[i, at] = t
                added[0, i, at], added[1, i, at] = min(max(D[i, t], -most), most), min(max(E[i, t], -most), most)
                many[i] += 1
            weight[i, many[i] - 1] += masses[i, t]
    return Moves(many, token, added, weight)


class Windows(NamedTuple):
    """Which sums are held: from `low` to `high`, for each of the two, position and state. Sums of `high` and more are counted for good."""

    alive: Any
    """(position, state): whether an accepted rest follows a beginning"""
    low: Any
    high: Any
    raised: Any
    """Whether sums below `low` are raised to it; else nothing is counted there"""


@kernel
@no_type_check
def windows_of(moves: Any, starts: Any, automaton: Any, reach: int) -> Any:
    """What can be reached before a position, and what the rest can add."""
    following, accepting, first = automaton
    k, n_states = moves.many.shape[0], following.shape[0]
    below, above = np.full((2, k + 1, n_states), _NEVER), np.full((2, k + 1, n_states), -_NEVER)
    below[:, 0, first] = starts
    above[:, 0, first] = starts
    for i in range(k):
        for s in range(n_states):
            if below[0, i, s] == _NEVER:
                continue
            for x in range(moves.many[i]):
                z = following[s, moves.token[i, x]]
                for c in range(2):
                    if z >= 0:
                        below[c, i + 1, z] = min(below[c, i + 1, z], max(below[c, i, s] + moves.added[c, i, x], -reach))
                        above[c, i + 1, z] = max(above[c, i + 1, z], max(min(above[c, i, s] + moves.added[c, i, x], reach), -reach))
    # from which sum on the rest can end at zero or more, and from which on it cannot end below
    alive = np.zeros((k + 1, n_states), np.bool_)
    need, sure = np.zeros((2, k + 1, n_states), np.int64), np.zeros((2, k + 1, n_states), np.int64)
    alive[k] = accepting
    for i in range(k - 1, -1, -1):
        for s in range(n_states):
            if below[0, i, s] == _NEVER:
                continue
            for x in range(moves.many[i]):
                z = following[s, moves.token[i, x]]
                if z < 0 or not alive[i + 1, z]:
                    continue
                for c in range(2):
                    low, high = need[c, i + 1, z], sure[c, i + 1, z]
                    low = min(max(low - moves.added[c, i, x], -reach), reach) if low > -reach else low
                    high = min(max(high - moves.added[c, i, x], -reach), reach) if high > -reach else high
                    need[c, i, s] = min(need[c, i, s], low) if alive[i, s] else low
                    sure[c, i, s] = max(sure[c, i, s], high) if alive[i, s] else high
                alive[i, s] = True
    low, high = np.zeros((2, k + 1, n_states), np.int64), np.zeros((2, k + 1, n_states), np.int64)
    raised = np.zeros((2, k + 1, n_states), np.bool_)
    for c in range(2):
        for i in range(k):
            for s in range(n_states):
                if alive[i, s]:
                    low[c, i, s] = max(need[c, i, s], below[c, i, s])
                    high[c, i, s] = max(min(sure[c, i, s], above[c, i, s] + 1), low[c, i, s])
                    raised[c, i, s] = need[c, i, s] == -reach or low[c, i, s] > need[c, i, s]
    return Windows(alive, low, high, raised)


@kernel
@no_type_check
def count_both(D: Any, E: Any, masses: Any, starts: Any, automaton: Any, reach: int) -> tuple[int, int]:
    """(count, operations): the count in the units of `count_up`, and how many additions and products the windows took.

    D and E are (k, n), starts two integers, masses (k, n).

    Guarantee: the count is at least the mass of the accepted sequences with starts[0] + sum_i D >= 0 and starts[1] + sum_i E >= 0.
    Assumes: 1 <= reach <= MOST_REACH; masses not negative, at most MOST_MASS at each position.
    Cost: what is returned as operations.
    """
    following, accepting, first = automaton
    k, n_states = masses.shape[0], following.shape[0]
    begins = np.empty(2, np.int64)
    for c in range(2):
        begins[c] = min(max(starts[c], -reach), reach)
    moves = moves_of_both(D, E, masses, automaton, reach)
    windows = windows_of(moves, begins, automaton, reach)
    if not windows.alive[0, first]:
        return 0, 0
    exponents, units = exponents_below(masses, _EXACT), exponents_below(masses, (1 << 62) - 1)
    sizes = windows.high - windows.low + 1
    place = np.zeros(n_states, np.int64)
    held = np.zeros(n_states)
    for s in range(n_states):
        place[s] = s
        held[s] = 1.0 if accepting[s] else 0.0
    operations = 0
    for i in range(k - 1, -1, -1):
        if exponents[i] > 0:
            part = 2.0 ** -exponents[i]
            for j in range(held.shape[0]):
                held[j] = np.ceil(held[j] * part)
        new_place, size = np.zeros(n_states, np.int64), 0
        for s in range(n_states):
            new_place[s] = size
            if windows.alive[i, s]:
                size += sizes[0, i, s] * sizes[1, i, s]
        new = np.zeros(size)
        rising = np.empty(2 * MOST_REACH + 2)
        for s in range(n_states):
            if not windows.alive[i, s]:
                continue
            rows, columns = sizes[0, i, s], sizes[1, i, s]
            for row in range(rows):
                into = new[new_place[s] + row * columns : new_place[s] + (row + 1) * columns]
                rising[: columns + 1] = 0.0
                for x in range(moves.many[i]):
                    z = following[s, moves.token[i, x]]
                    if z < 0 or not windows.alive[i + 1, z]:
                        continue
                    there, top = row, sizes[0, i + 1, z] - 1
                    if row == rows - 1:
                        there = top
                    else:
                        there = min(windows.low[0, i, s] + row + moves.added[0, i, x] - windows.low[0, i + 1, z], top)
                    if there < 0:
                        if not windows.raised[0, i + 1, z]:
                            continue
                        there = 0
                    last = sizes[1, i + 1, z] - 1
                    source = held[place[z] + there * (last + 1) : place[z] + (there + 1) * (last + 1)]
                    weight = float(moves.masses[i, x])
                    move = windows.low[1, i, s] + moves.added[1, i, x] - windows.low[1, i + 1, z]
                    begin = min(max(-move, 0), columns - 1)
                    end = min(max(last - move, begin), columns - 1)
                    if begin > 0 and windows.raised[1, i + 1, z]:
                        rising[0] += weight * source[0]
                        rising[begin] -= weight * source[0]
                    rising[end] += weight * source[last]
                    if end > begin:
                        operations += 2 * (end - begin)
                        some, others = into[begin:end], source[begin + move : end + move]
                        for j in range(end - begin):
                            some[j] += weight * others[j]
                above = 0.0
                for j in range(columns):
                    above += rising[j]
                    into[j] += above
                operations += 2 * columns
        held, place = new, new_place
    row, column = begins[0] - windows.low[0, 0, first], begins[1] - windows.low[1, 0, first]
    if (row < 0 and not windows.raised[0, 0, first]) or (column < 0 and not windows.raised[1, 0, first]):
        return 0, operations
    row, column = min(max(row, 0), sizes[0, 0, first] - 1), min(max(column, 0), sizes[1, 0, first] - 1)
    found = int(held[place[first] + row * sizes[1, 0, first] + column])
    more = exponents.sum() - units.sum()
    return (found << more if more >= 0 else (found + (1 << -more) - 1) >> -more), operations
