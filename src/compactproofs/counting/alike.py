"""Counting where positions are alike: tokens other than the label have the same integers at every position but the last, the query's.

Sequences of max-of-K with label L and query q: n = k - 1 free positions, c of which hold L (at least one, unless q is L), the others
smaller tokens. With C the positions of L, their integers add up to at least zero exactly if those of the n - c smaller tokens add up to at
least -(start + D(q) + sum over C of D(i, L)). With N_j(z) the number of j-tuples of smaller tokens with a sum of at least z, the count is

    sum over C of N_{n-c}(-(start + D(q) + sum_{i in C} D(i, L))),

and for c > 1 all C of a size are taken for the worst, that of the c largest D(i, L). Tokens with the same integer are counted together. Up
to four free positions N_j is found by two pointers over the distinct integers; beyond, by N_j(z) = sum_t N_{j-1}(z - D(t)) over the window
of sums that matter. Integers beyond 2^62 are held in units of 2^E_j, rounded up, as in `count_up`. The result is at least the count; it is
the count, which `count_up` finds, if D(i, L) does not depend on i and nothing is rounded.

Every comparison, addition and product is charged.
"""

from __future__ import annotations

from math import comb
from typing import Any, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.counting.count_up import ascending, unit_exponents
from compactproofs.counting.grid import Grid, count_harms, initial_sum, on_grid

_FEW = 4
"""Up to so many free positions two pointers are used."""

_CAPACITY = (1 << 62) - 1

_WIDEST = 1 << 20
"""Where a window would be wider, every tuple is counted."""


def count_where_alike(h: Any, grid: Grid, masses: Any, automaton: Any) -> tuple[int, int]:
    """(mass, operations): of the accepted sequences whose harms (position, token) add up to at least zero; `count_up` if positions differ.

    Guarantee: at least the mass of the accepted sequences with sum_i h(i, x_i) >= 0.
    Assumes: as `count_up` and `on_grid`.
    Cost: what is returned as operations.
    """
    last, free = np.flatnonzero(masses[-1]), len(masses) - 1
    label = _label(automaton)
    alike = label >= 0 and len(last) == 1 and bool((masses[:-1] == 1).all()) and masses[-1, last[0]] == 1
    start = int(initial_sum(grid.offsets))
    D = on_grid(h, grid, start)[:, 0]
    others = np.arange(D.shape[1]) != label
    if not alike or bool((D[:-1, others] != D[:1, others]).any()):
        found, operations = count_harms(h, grid, masses, automaton, False)
        return int(found) << int(unit_exponents(masses).sum()), int(operations)
    needed = 0 if last[0] == label else 1
    row = np.ascontiguousarray(D[0] if free else D[0, :0])
    labels = np.ascontiguousarray(D[:-1, label])
    counts, ones, units, operations = count_tuples(row, h[0, : len(row)], label, labels, start + int(D[-1, last[0]]), needed)
    total = sum(comb(free, c) * (int(counts[c]) << int(units[free - c])) for c in range(needed, free + 1) if c != 1)
    return total + (sum(map(int, ones)) << int(units[free - 1]) if free else 0), int(operations)


def _label(automaton: Any) -> int:
    """The token that must occur, if that is all that the automaton asks for; else -1."""
    following, accepting, first = automaton
    if following.shape == (1, 1) and accepting[0] and following[0, 0] == 0:
        return 0
    if following.shape[0] != 2 or first != 0 or accepting[0] or not accepting[1] or not (following[1] == 1).all():
        return -1
    moving = np.flatnonzero(following[0] == 1)
    return int(moving[0]) if len(moving) == 1 and bool(((following[0] == 0) | (following[0] == 1)).all()) else -1


@kernel
@no_type_check
def count_tuples(D: Any, h: Any, label: int, labels: Any, base: int, needed: int) -> tuple[Any, Any, Any, int]:
    """(counts, ones, units, operations), in units of 2^units[n - c]: counts[c] is N_{n-c} at its threshold, for c from `needed` to n but 1;
    ones[x] is N_{n-1} for each place of a single label, the most harmful first.

    `h` are the harms that the integers D come from: neighbours with the same harm are known to be one group, and groups are sorted.
    """
    order = ascending(D)
    values = np.empty(D.shape[0], np.int64)
    copies = np.empty(D.shape[0], np.int64)
    groups, before = 0, np.nan
    for token in range(D.shape[0]):
        if token != label:
            if h[token] != before:
                groups += 1
            before = h[token]
    n_values, total = 0, 0
    for x in range(D.shape[0] - 1, -1, -1):  # from the greatest
        token = order[x]
        if token == label:
            continue
        total += 1
        if n_values > 0 and values[n_values - 1] == D[token]:
            copies[n_values - 1] += 1
        else:
            values[n_values] = D[token]
            copies[n_values] = 1
            n_values += 1
    values, copies = values[:n_values], copies[:n_values]
    n = labels.shape[0]
    mine = labels[ascending(labels)][::-1].copy()
    counts = np.zeros(n + 1, np.int64)
    ones = np.zeros(n, np.int64)
    units = np.zeros(n + 1, np.int64)
    operations = max(groups - 1, 0)
    for x in range(1, n):
        operations += 1 if mine[x] != mine[x - 1] else 0
    if n > _FEW or not float(total) ** n < 2.0**61:
        return counts, ones, units, operations + many((values, copies, total), base, mine, needed, (counts, ones, units))
    together = base
    for c in range(n + 1):
        if c > 0:
            together += mine[c - 1]
            operations += 1
        if c < needed:
            continue
        if c == 1:
            for x in range(n):
                if x > 0 and mine[x] == mine[x - 1]:
                    ones[x] = ones[x - 1]
                else:
                    ones[x], work = few(values, copies, total, n - 1, -(base + mine[x]))
                    operations += work + 1
                if ones[x] == 0:
                    break  # at other places the label takes off more
                operations += 1
            found = ones[0]
        else:
            counts[c], work = few(values, copies, total, n - c, -together)
            found = counts[c]
            operations += work
            if found > 0:
                operations += 2  # times a binomial, added up
        if found == 0 and n_values > 0 and c < n and mine[c] <= values[0]:
            break  # with one more label in place of another token, sums are smaller still
    return counts, ones, units, operations


@kernel
@no_type_check
def few(values: Any, copies: Any, total: int, j: int, z: int) -> tuple[int, int]:
    """N_j(z) and operations, for j up to four; values descend."""
    if j == 0:
        return (1 if z <= 0 else 0), 1
    if values.shape[0] == 0:
        return 0, 0
    most, least = j * values[0], j * values[-1]
    if z > most:
        return 0, 2
    if z <= least:
        return total**j, 4 + j - 1
    if j == 1:
        found, work = 0, 4
        for x in range(values.shape[0]):
            work += 1
            if values[x] < z:
                break
            work += 1
            found += copies[x]
        return found, work
    if j == 2:
        return pairs_at_least(values, copies, z)
    found, work = 0, 4
    for x in range(values.shape[0]):
        work += 2
        if values[x] + (j - 1) * values[0] < z:
            break
        if j == 3:
            inner, more = pairs_or_all(values, copies, total, z - values[x])
        else:
            inner, more = 0, 0
            for y in range(values.shape[0]):
                more += 2
                if values[x] + values[y] + 2 * values[0] < z:
                    break
                innermost, most_work = pairs_or_all(values, copies, total, z - values[x] - values[y])
                inner += copies[y] * innermost
                more += most_work + 2
        found += copies[x] * inner
        work += more + 2
    return found, work


@kernel
@no_type_check
def pairs_or_all(values: Any, copies: Any, total: int, z: int) -> tuple[int, int]:
    """N_2(z), with a look at the extremes first."""
    if z > 2 * values[0]:
        return 0, 1
    if z <= 2 * values[-1]:
        return total * total, 2
    found, work = pairs_at_least(values, copies, z)
    return found, work + 2


@kernel
@no_type_check
def pairs_at_least(values: Any, copies: Any, z: int) -> tuple[int, int]:
    """N_2(z) and operations: as the first of a pair goes down, fewer are enough for the second."""
    n = values.shape[0]
    found, work, y, enough = 0, 0, 0, 0
    while y < n:
        work += 2
        if values[0] + values[y] < z:
            break
        enough += copies[y]
        work += 1
        y += 1
    for x in range(n):
        while y > 0:
            if x > 0:
                work += 2
            if values[x] + values[y - 1] >= z:
                break
            y -= 1
            enough -= copies[y]
            work += 1
        if y == 0:
            break
        found += copies[x] * enough
        work += 2
    return found, work


@kernel
@no_type_check
def many(tokens: Any, base: int, mine: Any, needed: int, rooms: Any) -> int:
    """Fills counts, ones and units by windows, returns operations."""
    values, copies, total = tokens
    counts, ones, units = rooms
    n = mine.shape[0]
    top = n - needed
    if top < 0:
        return 0
    greatest = values[0] if values.shape[0] > 0 else 0
    least = values[-1] if values.shape[0] > 0 else 0
    threshold = np.empty(n + 1, np.int64)  # by how many are no labels
    threshold[n] = -base
    for c in range(1, n + 1):
        threshold[n - c] = threshold[n - c + 1] - mine[c - 1]
    # which sums are asked for at each level: from low[j] to high[j], none if low > high
    low = np.zeros(top + 1, np.int64)
    high = np.zeros(top + 1, np.int64)
    for j in range(top, -1, -1):
        low[j], high[j] = threshold[j], threshold[j]
        if j == n - 1:
            high[j] = -(base + mine[n - 1])
        if j < top and low[j + 1] <= high[j + 1]:
            low[j] = min(low[j], low[j + 1] - greatest)
            high[j] = max(high[j], high[j + 1] - least)
        low[j], high[j] = max(low[j], j * least + 1), min(high[j], j * greatest)
    exponents = np.zeros(top + 1, np.int64)
    all_of = np.zeros(top + 1, np.int64)
    all_of[0] = 1
    for j in range(1, top + 1):
        e = 0
        while total > 0 and (all_of[j - 1] + (1 << e) - 1) >> e > _CAPACITY // total:
            e += 1
        exponents[j] = e
        all_of[j] = total * ((all_of[j - 1] + (1 << e) - 1) >> e)
        units[j] = units[j - 1] + e
    cumulated = np.cumsum(copies)
    window = np.zeros(0, np.int64)
    operations = 0
    for j in range(top + 1):
        width = high[j] - low[j] + 1
        if width > _WIDEST:
            width = -1  # count everything
        new = np.zeros(max(width, 0), np.int64)
        if j > 0 and width > 0:
            e = exponents[j]
            up = (1 << e) - 1
            everything = (all_of[j - 1] + up) >> e
            for x in range(width):
                z = low[j] + x
                found, r = 0, 0
                # the greatest values: any rest will do
                while r < values.shape[0] and z - values[r] <= (j - 1) * least:
                    r += 1
                if r > 0:
                    found = cumulated[r - 1] * everything
                    operations += 2
                while r < values.shape[0] and z - values[r] <= (j - 1) * greatest:
                    at = z - values[r] - low[j - 1]
                    rest = everything if window.shape[0] == 0 else (window[at] + up) >> e
                    found += copies[r] * rest
                    operations += 1 if copies[r] == 1 else 2
                    r += 1
                new[x] = found
        for x in range(n if j == n - 1 else 1):
            z = -(base + mine[x]) if j == n - 1 else threshold[j]
            if x == 0 or mine[x] != mine[x - 1]:
                operations += 1
            if z > j * greatest or (j > 0 and values.shape[0] == 0):
                found = 0
            elif z <= j * least or width < 0:
                found = all_of[j]
            else:
                found = new[z - low[j]]
            if found > 0:
                operations += 2
            if j == n - 1:
                ones[x] = found
            else:
                counts[n - j] = found
        window = new
    return operations
