"""`count_up`: the mass of the sequences whose integer harms add up to at least zero. One of the two programmes that a proof rests on.

A sequence x of k tokens runs through an automaton; token x_i adds the integer D(i, s, x_i), s being the state before it, and has a mass
M(i, x_i) >= 0: 0 where the token cannot stand, 1 if all inputs are equally likely. Wanted is the sum, over the sequences that end in an
accepting state and have start + sum_i D >= 0, of the product of their masses. The programme goes backwards over positions:

    f_k(s, z) = 1 if s accepts and z >= 0, else 0
    f_i(s, z) = sum_t M(i, t) ceil(f_{i+1}(delta(s, t), z + D(i, s, t)) / 2^e_i)

and the result is f_0(first state, start) in units of 2^(e_0 + ... + e_{k-1}). Rounding is upwards and masses are not negative, so the
result is at least the mass wanted. It is monotone: a larger D never gives a smaller result, so D may be rounded up and raised at will.

The e_i keep all numbers below 2^62 and depend on the masses only: with most_k = 1 and M_i = sum_t M(i, t), e_i is the least e >= 0 with
M_i ceil(most_{i+1} / 2^e) < 2^62, and most_i is that product, a bound on f_i.

f_i(s, .) is 0 below and constant above a window of sums z; only what lies between is held. Nothing here is floating point. The stand-alone
checker runs the same programme.
"""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel

LARGEST = 1 << 40
"""Entries of D lie within plus and minus this."""

MOST_MASS = 1 << 40
"""The masses of one position add up to at most this."""

_CAPACITY = (1 << 62) - 1

_NEVER = 1 << 60

_FEW = 15
"""So few are sorted by insertion."""

_WIDEST = 1 << 24
"""Where a window would be wider, everything is counted instead."""


class Automaton(NamedTuple):
    """Which sequences are meant: `following[s, t]` is the next state, or -1 if no accepted sequence goes there."""

    following: Any
    accepting: Any
    first: int


@kernel
@no_type_check
def unit_exponents(masses: Any) -> Any:
    """The e_i."""
    return exponents_below(masses, _CAPACITY)


@kernel
@no_type_check
def exponents_below(masses: Any, most_of_all: int) -> Any:
    """The least exponents such that no number is larger than this."""
    k = masses.shape[0]
    exponents = np.zeros(k, np.int64)
    most = 1
    for i in range(k - 1, -1, -1):
        total = 0
        for t in range(masses.shape[1]):
            total += masses[i, t]
        e = 0
        while total > 0 and (most + (1 << e) - 1) >> e > most_of_all // total:
            e += 1
        exponents[i] = e
        most = total * ((most + (1 << e) - 1) >> e)
    return exponents


@kernel
@no_type_check
def numbers(first: int, end: int) -> Any:
    """The integers from the first to the end."""
    found = np.empty(end - first, np.int64)
    for x in range(end - first):
        found[x] = first + x
    return found


@kernel
@no_type_check
def ascending(values: Any) -> Any:
    """Indices that sort integers: what numba's `np.argsort` gives, of equal integers too, which takes four times as long to compile."""
    order = np.empty(values.shape[0], np.int64)
    for x in range(values.shape[0]):
        order[x] = x
    waiting = np.empty(128, np.int64)  # the larger parts, each at most half as long as the one before
    waiting[0], waiting[1] = 0, values.shape[0] - 1
    n = 2
    while n > 0:
        n -= 2
        low, high = waiting[n], waiting[n + 1]
        while high - low >= _FEW:
            mid = (low + high) >> 1
            for a, b in ((low, mid), (mid, high), (low, mid)):  # the median of three
                if values[order[b]] < values[order[a]]:
                    order[a], order[b] = order[b], order[a]
            pivot = values[order[mid]]
            order[high], order[mid] = order[mid], order[high]
            i, j = low, high - 1
            while True:
                while i < high and values[order[i]] < pivot:
                    i += 1
                while j >= low and pivot < values[order[j]]:
                    j -= 1
                if i >= j:
                    break
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
            order[i], order[high] = order[high], order[i]
            if high - i > i - low:
                waiting[n], waiting[n + 1] = i + 1, high
                high = i - 1
            else:
                waiting[n], waiting[n + 1] = low, i - 1
                low = i + 1
            n += 2
        for x in range(low + 1, high + 1):
            moved = order[x]
            y = x
            while y > low and values[moved] < values[order[y - 1]]:
                order[y] = order[y - 1]
                y -= 1
            order[y] = moved
    return order


@kernel
@no_type_check
def by_size(values: Any) -> Any:
    """Indices that sort integers. Where they differ little, each goes where the number of smaller ones says."""
    least = most = values[0] if values.shape[0] > 0 else 0
    for value in values:
        least, most = min(least, value), max(most, value)
    if most - least > 4 * values.shape[0] + 64:
        return ascending(values)
    before = np.zeros(most - least + 2, np.int64)
    for value in values:
        before[value - least + 1] += 1
    for x in range(1, before.shape[0]):
        before[x] += before[x - 1]
    order = np.empty(values.shape[0], np.int64)
    for x in range(values.shape[0]):
        order[before[values[x] - least]] = x
        before[values[x] - least] += 1
    return order


@kernel
@no_type_check
def token_kinds(automaton: Any) -> Any:
    """Numbers of the tokens such that those with the same number move every state alike."""
    following = automaton.following
    n_states, n = following.shape
    kinds, firsts = np.empty(n, np.int64), np.empty(n, np.int64)
    found = 0
    for j in range(n):
        kinds[j] = found
        for c in range(found):
            same = True
            for s in range(n_states):
                if following[s, j] != following[s, firsts[c]]:
                    same = False
                    break
            if same:
                kinds[j] = c
                break
        if kinds[j] == found:
            firsts[found] = j
            found += 1
    return kinds


@kernel
@no_type_check
def how_many(kinds: Any) -> int:
    """The largest number, plus one; 0 if there are none."""
    most = -1
    for c in kinds:
        most = max(most, c)
    return most + 1


class Moves(NamedTuple):
    """What tokens add, for each row (a position; or a position and a state, if what they add depends on the state) and kind of tokens."""

    steps: Any
    """(row, place): the different integers of a kind, in ascending order"""
    masses: Any
    """(row, place): how much has each of them"""
    first: Any
    """(kind,): the place of the first one"""
    many: Any
    """(row, kind): how many there are"""


@kernel
@no_type_check
def moves_of(D: Any, masses: Any, kinds: Any, n_kinds: int) -> Any:
    """Tokens that move every state alike and add the same are one move."""
    k, n_rows, n = D.shape
    first = np.zeros(n_kinds + 1, np.int64)
    for c in kinds:
        first[c + 1] += 1
    for c in range(n_kinds):
        first[c + 1] += first[c]
    many = np.zeros((k * n_rows, n_kinds), np.int64)
    steps, weights = np.empty((k * n_rows, n), np.int64), np.empty((k * n_rows, n), np.int64)
    for i in range(k):
        for s in range(n_rows):
            r = i * n_rows + s
            for t in by_size(D[i, s]):
                if masses[i, t] == 0:
                    continue
                c = kinds[t]
                at = first[c] + many[r, c]
                if many[r, c] > 0 and steps[r, at - 1] == D[i, s, t]:
                    weights[r, at - 1] += masses[i, t]
                else:
                    steps[r, at], weights[r, at] = D[i, s, t], masses[i, t]
                    many[r, c] += 1
    return Moves(steps, weights, first, many)


@kernel
@no_type_check
def reachable(moves: Any, target: Any, shape: tuple[int, int], first: int, start: int) -> tuple[Any, Any]:
    """The least and the greatest sum before each position in each state; _NEVER where no sequence comes."""
    k, n_rows = shape
    n_states, n_kinds = target.shape
    reach_low = np.full((k + 1, n_states), _NEVER)
    reach_high = np.full((k + 1, n_states), -_NEVER)
    reach_low[0, first] = start
    reach_high[0, first] = start
    for i in range(k):
        for s in range(n_states):
            if reach_low[i, s] == _NEVER:
                continue
            r = i * n_rows + (s if n_rows > 1 else 0)
            for c in range(n_kinds):
                z = target[s, c]
                if z >= 0 and moves.many[r, c] > 0:
                    lowest, highest = moves.first[c], moves.first[c] + moves.many[r, c] - 1
                    reach_low[i + 1, z] = min(reach_low[i + 1, z], reach_low[i, s] + moves.steps[r, lowest])
                    reach_high[i + 1, z] = max(reach_high[i + 1, z], reach_high[i, s] + moves.steps[r, highest])
    return reach_low, reach_high


@kernel
@no_type_check
def addable(moves: Any, target: Any, shape: tuple[int, int], accepting: Any, reach_low: Any) -> tuple[Any, Any, Any]:
    """The least and the greatest sum that an accepted rest adds, and whether there is one, from each position and state on."""
    k, n_rows = shape
    n_states, n_kinds = target.shape
    least = np.zeros((k + 1, n_states), np.int64)
    greatest = np.zeros((k + 1, n_states), np.int64)
    alive = np.zeros((k + 1, n_states), np.bool_)
    for s in range(n_states):
        alive[k, s] = accepting[s]
    for i in range(k - 1, -1, -1):
        for s in range(n_states):
            if reach_low[i, s] == _NEVER:
                continue
            r = i * n_rows + (s if n_rows > 1 else 0)
            for c in range(n_kinds):
                z = target[s, c]
                if z < 0 or moves.many[r, c] == 0 or not alive[i + 1, z]:
                    continue
                low = moves.steps[r, moves.first[c]] + least[i + 1, z]
                high = moves.steps[r, moves.first[c] + moves.many[r, c] - 1] + greatest[i + 1, z]
                if not alive[i, s]:
                    alive[i, s] = True
                    least[i, s] = low
                    greatest[i, s] = high
                else:
                    least[i, s] = min(least[i, s], low)
                    greatest[i, s] = max(greatest[i, s], high)
    return least, greatest, alive


class After(NamedTuple):
    """f(s, .) for all states s of a position: f(s, base[s] + j) = window[place[s] + j] for j < held[s]; below that 0, above it total[s]."""

    alive: Any
    """Whether there is an accepted rest"""
    total: Any
    base: Any
    held: Any
    place: Any
    window: Any


@kernel
@no_type_check
def fill(into: Any, begin: int, moves: Any, r: int, target: Any, after: Any, rising: Any) -> tuple[int, int]:
    """Fill the window of a state, zeros that stand for sums from `begin` on: (f above it, operations). `rising` is room."""
    alive, total, base, held, place, window = after
    width = into.shape[0]
    rising[: width + 1] = 0
    everything, operations = 0, 2 * width
    for c in range(target.shape[0]):
        z = target[c]
        if z < 0 or not alive[z]:
            continue
        for at in range(moves.first[c], moves.first[c] + moves.many[r, c]):
            w = moves.masses[r, at]
            everything += w * total[z]
            move = begin + moves.steps[r, at] - base[z]
            low = min(max(-move, 0), width)
            high = min(max(held[z] - move, low), width)
            rising[high] += w * total[z]
            if high > low:
                source, sums = window[place[z] + low + move :], into[low:]
                operations += (high - low) if w == 1 else 2 * (high - low)
                if w == 1:
                    for j in range(high - low):
                        sums[j] += source[j]
                else:
                    for j in range(high - low):
                        sums[j] += w * source[j]
    above = 0
    for j in range(width):
        above += rising[j]
        into[j] += above
    return everything, operations


@kernel
@no_type_check
def count_up(D: Any, masses: Any, start: int, automaton: Any) -> tuple[int, int]:
    """(count, operations): the count in units of 2^sum(unit_exponents), and how many integer additions and products the windows took.

    D is (k, S, n), with S = 1 if it does not depend on the state; masses are (k, n).

    Guarantee: the count is at least the mass of the accepted sequences with start + sum_i D >= 0.
    Assumes: |D|, |start| <= LARGEST; masses not negative, at most MOST_MASS at each position.
    Cost: what is returned as operations.
    """
    k, n = masses.shape
    following, accepting, first = automaton
    n_states, n_rows = following.shape[0], D.shape[1]
    kinds = token_kinds(automaton)
    n_kinds = how_many(kinds)
    target = np.full((n_states, n_kinds), -1)
    for t in range(n):
        for s in range(n_states):
            target[s, kinds[t]] = following[s, t]
    moves = moves_of(D, masses, kinds, n_kinds)
    reach_low, reach_high = reachable(moves, target, (k, n_rows), first, start)
    least, greatest, alive = addable(moves, target, (k, n_rows), accepting, reach_low)
    if not alive[0, first] or start + greatest[0, first] < 0:
        return 0, 0

    exponents = unit_exponents(masses)
    operations = 0
    base = np.zeros(n_states, np.int64)
    held = np.zeros(n_states, np.int64)
    place = np.zeros(n_states, np.int64)
    window = np.zeros(0, np.int64)
    total = np.zeros(n_states, np.int64)
    for s in range(n_states):
        total[s] = 1 if accepting[s] else 0
    for i in range(k - 1, -1, -1):
        e = exponents[i]
        if e > 0:
            for s in range(n_states):
                total[s] = (total[s] + (1 << e) - 1) >> e
            for j in range(window.shape[0]):
                window[j] = (window[j] + (1 << e) - 1) >> e
        begin = np.zeros(n_states, np.int64)
        width = np.zeros(n_states, np.int64)
        new_place = np.zeros(n_states, np.int64)
        widest = size = 0
        for s in range(n_states):
            if alive[i, s]:
                begin[s] = max(-greatest[i, s], reach_low[i, s])
                width[s] = max(min(-least[i, s], reach_high[i, s] + 1) - begin[s], 0)
                if width[s] > _WIDEST:  # count everything
                    width[s] = 0
                    begin[s] = reach_low[i, s]
                widest = max(widest, width[s])
                new_place[s] = size
                size += width[s]
        new = np.zeros(size, np.int64)
        new_total = np.zeros(n_states, np.int64)
        rising = np.empty(widest + 1, np.int64)
        after = After(alive[i + 1], total, base, held, place, window)
        for s in range(n_states):
            if not alive[i, s]:
                continue
            r = i * n_rows + (s if n_rows > 1 else 0)
            into = new[new_place[s] : new_place[s] + width[s]]
            new_total[s], work = fill(into, begin[s], moves, r, target[s], after, rising)
            operations += work
        window, base, held, place, total = new, begin, width, new_place, new_total
    z = start - base[first]
    if z < 0:
        return 0, operations
    return (window[place[first] + z] if z < held[first] else total[first]), operations


@kernel
@no_type_check
def mass_up(masses: Any, automaton: Any) -> int:
    """The mass of all accepted sequences, in the units of `count_up` and rounded like it: its result if every D is 0."""
    following, accepting, first = automaton
    k, n = masses.shape
    n_states = following.shape[0]
    reached = np.zeros((k, n_states), np.bool_)
    reached[0, first] = True
    for i in range(k - 1):
        for s in range(n_states):
            if reached[i, s]:
                for t in range(n):
                    if following[s, t] >= 0 and masses[i, t] > 0:
                        reached[i + 1, following[s, t]] = True
    exponents = unit_exponents(masses)
    total = np.zeros(n_states, np.int64)
    for s in range(n_states):
        total[s] = 1 if accepting[s] else 0
    for i in range(k - 1, -1, -1):
        new = np.zeros(n_states, np.int64)
        for s in range(n_states):
            total[s] = (total[s] + (1 << exponents[i]) - 1) >> exponents[i]
        for s in range(n_states):
            if reached[i, s]:
                for t in range(n):
                    if following[s, t] >= 0:
                        new[s] += masses[i, t] * total[following[s, t]]
        total = new
    return total[first]
