"""Covers of a leaf by two sums at once, compiled. Where no splits help: many outputs spoil the same sequences, in many ways.

Below, what fails is at most what the first output spoils, and what each other one spoils and one before it does not. Above, what fails is
at least what the first spoiler spoils, and what each other one spoils, less its overlap with those before it. Which output is taken off
which, and which spoilers are worth their overlaps, is seen from draws (`search.drawing`).
"""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.bounds.pairs import apart_harms, harmful_outputs, joint_harms, pair_for, spoiler_harms, walk_operations
from compactproofs.counting.count_both import MOST_REACH, count_both
from compactproofs.counting.count_up import ascending, mass_up, numbers
from compactproofs.counting.grid import initial_sum, on_grid
from compactproofs.search.covers import BOTH, COARSE, FINER, Ranking, balanced, joint_count, picked, put_apart, put_joint
from compactproofs.search.drawing import MOST_DRAWS, spoiled_draws
from compactproofs.search.grids import DEEPEST, Leaf, choose_grid, count_on_grid, natural_unit, occurring, one
from compactproofs.search.pairs import last_token
from compactproofs.search.spoiling import SPOILER_DEPTH
from compactproofs.search.writing import begin, put, put_all

SEVERAL = -2
"""Begins a record above of several spoilers."""
MOST_OUTPUTS = 48
"""So many outputs are looked at in twos."""
_REACH = 4
"""Sums are kept within so many units."""
_FINER = 40
"""Single sums are counted with so many times the steps,"""
_FINEST = 16000
"""but no more than these."""


class Twos(NamedTuple):
    """How to look at two sums at once."""

    steps: int
    """To a unit"""
    small: int
    """So much is too little to try for, in units of counts."""
    above: bool
    """Whether to bound what is right, and not what fails"""


class OnGrid(NamedTuple):
    """A sum in integers."""

    start: int
    D: Any
    written: Any
    """Its grid: mantissa, exponent, depth, offsets"""


def room_together(n_out: int, k: int, *, above: bool) -> int:
    """How long a record can get."""
    grid, few = 3 + k, min(n_out, MOST_OUTPUTS)
    return 5 + few * (11 + 2 * few + 3 * grid) if above else 3 + n_out * (8 + grid) + few * (15 + 2 * grid)


@kernel
@no_type_check
def in_integers(h: Any, unit: float, leaf: Any, steps: int) -> Any:
    """A sum on a grid with about so many steps to a unit."""
    grid = choose_grid(h, leaf.seen, unit, steps, leaf.token, DEEPEST)
    start = initial_sum(grid.offsets)
    written = np.empty(3 + h.shape[0], np.int64)
    written[0], written[1], written[2] = grid.mantissa, grid.exponent, grid.depth
    for i in range(h.shape[0]):
        written[3 + i] = grid.offsets[i]
    return OnGrid(start, on_grid(h, grid, start)[:, 0], written)


@kernel
@no_type_check
def count_two(one_sum: Any, other: Any, leaf: Any, reach: int) -> tuple[int, int]:
    """What two sums at once count, and operations."""
    starts = np.empty(2, np.int64)
    starts[0], starts[1] = one_sum.start, other.start
    return count_both(one_sum.D, other.D, leaf.masses, starts, leaf.automaton, reach)


@kernel
@no_type_check
def by_size(pair: Any, outputs: Any, leaf: Any) -> Any:
    """The outputs, those that spoil most by a rough count first."""
    m = outputs.shape[0]
    units, counts, key = np.empty(m), np.empty(m, np.int64), np.empty(m, np.int64)
    written = np.empty(3 + leaf.masses.shape[0], np.int64)
    for x in range(m):
        units[x] = natural_unit(pair.G[outputs[x]], leaf.seen, leaf.usual, leaf.token)
        counts[x], _ = count_on_grid(joint_harms(pair, outputs[x : x + 1], one()), leaf, units[x], COARSE, DEEPEST, False, written)
        key[x] = -counts[x]
    order = ascending(key)
    sorted_units = np.empty(m)
    for x in range(m):
        sorted_units[x] = units[order[x]]
    return Ranking(picked(outputs, order), sorted_units, balanced(sorted_units), picked(counts, order))


@kernel
@no_type_check
def how_many(ranking: Any, small: int) -> int:
    """How many outputs matter: the others together hardly spoil anything."""
    few, rest = ranking.outputs.shape[0], 0
    while few > 1 and rest + ranking.rough[few - 1] <= max(small, ranking.rough[0] >> 8):
        few -= 1
        rest += ranking.rough[few]
    return min(few, MOST_OUTPUTS)


@kernel
@no_type_check
def share(spoils: Any, weights: Any, among: Any) -> float:
    """Which part of the draws of an output is spoiled by none of some others."""
    found = 0.0
    for d in range(weights.shape[0]):
        if weights[d] > 0.0:
            outside = True
            for p in among:
                outside = outside and not spoils[d, p]
            if outside:
                found += weights[d]
    return found


@kernel
@no_type_check
def finer(effort: Any) -> int:
    """Steps to a unit of single sums."""
    return min(_FINER * effort.steps, _FINEST)


@kernel
@no_type_check
def cover_by_twos(pair: Any, ranking: Any, draws: Any, leaf: Any, effort: Any, record: Any) -> tuple[int, int]:
    """Cover all outputs: the mass that may fail, and the number of terms. These go to the record.

    Counts are below 2^62 and so is what is added up, which is at most the whole leaf: no sum of the two overflows.
    """
    spoils, weights = draws
    everything = mass_up(leaf.masses, leaf.automaton)
    outputs, m, k, few = ranking.outputs, ranking.outputs.shape[0], leaf.masses.shape[0], weights.shape[0]
    fine, reach = finer(effort), min(MOST_REACH, _REACH * effort.steps)
    grid, total, number = np.empty(3 + k, np.int64), 0, few
    for x in range(few):
        h = joint_harms(pair, outputs[x : x + 1], one())
        count, work = count_on_grid(h, leaf, ranking.units[x], fine, DEEPEST, False, grid)
        parent, least = -1, 1.0
        for p in range(x):
            outside = share(spoils[x], weights[x], numbers(p, p + 1))
            if outside < least:
                parent, least = p, outside
        if parent >= 0 and count > effort.small and least < 0.97:
            mine = in_integers(h, ranking.units[x], leaf, effort.steps)
            other = in_integers(apart_harms(pair, outputs[x], outputs[parent], 0, 1), ranking.units[parent], leaf, effort.steps)
            found, operations = count_two(mine, other, leaf, reach)
            if found < count:
                put(record, BOTH)
                put(record, reach)
                put_joint(record, outputs[x : x + 1], one(), mine.written)
                put_apart(record, outputs[x], outputs[parent], (0, 1), other.written)
                put(record, operations)
                total = min(total + found, everything)
                continue
        put_joint(record, outputs[x : x + 1], one(), grid)
        put(record, work)
        total = min(total + count, everything)
    if few < m:
        count, work = joint_count(pair, ranking, numbers(few, m), leaf, COARSE, grid)
        singly = 0
        for x in range(few, m):
            singly += ranking.rough[x]
        if count <= singly:
            put_joint(record, outputs[few:], ranking.weights[few:], grid)
            put(record, work)
            total, number = min(total + count, everything), number + 1
        else:
            number = m
            for x in range(few, m):
                h = joint_harms(pair, outputs[x : x + 1], one())
                count, work = count_on_grid(h, leaf, ranking.units[x], COARSE, DEEPEST, False, grid)
                put_joint(record, outputs[x : x + 1], one(), grid)
                put(record, work)
                total = min(total + count, everything)
    return total, number


@kernel
@no_type_check
def spoiled_by_several(pair: Any, ranking: Any, draws: Any, leaf: Any, effort: Any, record: Any) -> tuple[int, int]:
    """(what the spoilers and their overlaps count, less the leaf rounded up for all spoilers but one; number of spoilers).

    What is right is at most that, if the leaf was not rounded. To the record go SEVERAL, their number, outputs and grids, a reach, and of
    each overlap the output, its grid, outputs, weights and grid; or a single spoiler, as in `search.spoiling`. Counts are below 2^62: no
    sum of two of them overflows.
    """
    spoils, weights = draws
    outputs, k, few = ranking.outputs, leaf.masses.shape[0], weights.shape[0]
    everything = mass_up(leaf.masses, leaf.automaton)
    chosen, waiting = np.zeros(few, np.int64), np.zeros(few, np.bool_)
    singles, overlaps = np.empty(1 + few * (4 + k), np.int64), np.empty(1 + few * (10 + 2 * few + 2 * (3 + k)), np.int64)
    begin(singles)
    begin(overlaps)
    fine, reach, number, total = finer(effort), min(MOST_REACH, _REACH * effort.steps), 0, 0
    grid = np.empty(3 + k, np.int64)
    for x in range(few):
        waiting[x] = True
        h = joint_harms(pair, outputs[x : x + 1], one())
        count, _ = count_on_grid(h, leaf, ranking.units[x], min(fine, COARSE * FINER), DEEPEST, False, grid)
        ranking.rough[x] = min(ranking.rough[x], count)
    for _ in range(few):
        x, most = -1, -1.0
        for y in range(few):
            if waiting[y]:
                gain = ranking.rough[y] * (share(spoils[y], weights[y], chosen[:number]) if number > 0 else 1.0)
                if gain > most:
                    x, most = y, gain
        if x < 0 or (number > 0 and most <= max(effort.small, everything >> 24)):
            break
        waiting[x] = False
        count, _ = count_on_grid(spoiler_harms(pair, outputs[x]), leaf, ranking.units[x], fine, SPOILER_DEPTH, True, grid)
        if number > 0:
            before = chosen[:number]
            h = joint_harms(pair, picked(outputs, before), picked(ranking.weights, before))
            mine = in_integers(joint_harms(pair, outputs[x : x + 1], one()), ranking.units[x], leaf, effort.steps)
            other = in_integers(h, natural_unit(h, leaf.seen, leaf.usual, leaf.token), leaf, effort.steps)
            both, _ = count_two(mine, other, leaf, reach)
            if both >= everything - count:
                continue
            count += both - everything
            put(overlaps, outputs[x])
            for part in (mine.written, picked(outputs, before), picked(ranking.weights, before), other.written):
                put_all(overlaps, part)
        put(singles, outputs[x])
        put_all(singles, grid)
        total += count
        chosen[number] = x
        number += 1
    if number == 1:
        put(record, singles[1])
        put(record, -1)
        put(record, 1)
        put(record, 1)
        put_all(record, singles[2 : singles[0]])
        return total, number
    put(record, SEVERAL)
    put(record, number)
    put_all(record, singles[1 : singles[0]])
    put(record, reach)
    put_all(record, overlaps[1 : overlaps[0]])
    return total, number


@kernel
@no_type_check
def look_together(evaluation: Any, subject: Any, q: int, place: Any, effort: Any, record: Any) -> tuple[int, int]:
    """Bound a place of a query by two sums at once, from one side; the terms go to the record.

    Below: (mass that may fail, 1). Above: as in `spoiled_by_several`.
    """
    masses, automaton = last_token(subject.masses, q), place.automaton
    begin(record)
    pair = pair_for(evaluation, subject.tokens, subject.label, subject.tokens[q], place.candidates)
    leaf = Leaf(masses, occurring(masses, automaton), automaton, subject.usual, place.about)
    outputs = harmful_outputs(pair, place.candidates, masses, automaton)
    walking = walk_operations(masses, automaton) * (place.candidates.shape[0] - outputs.shape[0])
    everything = mass_up(masses, automaton)
    if outputs.shape[0] == 0:
        put(record, -1 if effort.above else 0)
        put(record, walking)
        return (everything if effort.above else 0), 1
    ranking = by_size(pair, outputs, leaf)
    draws = spoiled_draws(pair, ranking, how_many(ranking, effort.small), leaf, min(2 * effort.steps, MOST_DRAWS))
    if effort.above:
        return spoiled_by_several(pair, ranking, draws, leaf, effort, record)
    terms = np.empty(record.shape[0], np.int64)
    begin(terms)
    failing, number = cover_by_twos(pair, ranking, draws, leaf, effort, terms)
    put(record, number)
    put(record, walking)
    put_all(record, terms[1 : terms[0]])
    return failing, 1
