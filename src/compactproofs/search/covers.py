"""Which terms cover the outputs of a leaf, compiled: a joint term of those that resemble the first, terms apart, a joint term of the rest.

Write F_o for the sequences that output o spoils; the first output is the one that spoils most. A joint term bounds the union of the F_o of
its outputs by the sequences on which the worst output of each token would win. A term apart bounds F_j minus F_i, on which the sum of
n1 G_j - n2 G_i is not negative. Each output goes where it adds least by a rough count; finer counts follow for what matters.
"""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.bounds.pairs import apart_harms, joint_harms
from compactproofs.counting.count_up import ascending, mass_up, numbers
from compactproofs.search.grids import DEEPEST, count_on_grid, natural_unit, one
from compactproofs.search.writing import begin, put, put_all

JOINT, APART, BOTH = 0, 1, 2
"""Kinds of terms in records."""
COARSE, FINER = 100, 10
"""Steps of rough counts, and by how much finer those are that follow."""
HEAVIEST = 1 << 30
"""The largest weight of an output."""
RANKED = 8
"""So many outputs are put in order by counting."""
MULTIPLIER, MULTIPLIERS = 0.7, (0.4, 0.9, 1.0)
PARENTS = 3


class Ranking(NamedTuple):
    """Outputs of a leaf, those that spoil most first."""

    outputs: Any
    units: Any
    weights: Any
    """They make the units of all outputs about equal."""
    rough: Any
    """Rough counts of what each spoils; -1 of those that were not counted"""


@kernel
@no_type_check
def put_joint(record: Any, outputs: Any, weights: Any, grid: Any) -> None:
    """JOINT, number of outputs, outputs, weights, grid"""
    put(record, JOINT)
    put(record, outputs.shape[0])
    put_all(record, outputs)
    put_all(record, weights)
    put_all(record, grid)


@kernel
@no_type_check
def put_apart(record: Any, output: int, parent: int, factors: tuple[int, int], grid: Any) -> None:
    """APART, output, parent, n1, n2, grid"""
    put(record, APART)
    put(record, output)
    put(record, parent)
    put(record, factors[0])
    put(record, factors[1])
    put_all(record, grid)


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
def picked(values: Any, chosen: Any) -> Any:
    """Integers with these numbers."""
    found = np.empty(chosen.shape[0], np.int64)
    for x in range(chosen.shape[0]):
        found[x] = values[chosen[x]]
    return found


@kernel
@no_type_check
def supported(pair: Any, outputs: Any, leaf: Any) -> Any:
    """The outputs in the order of how many tokens speak for them, most first."""
    m = outputs.shape[0]
    k, n = leaf.seen.shape
    key = np.empty(m, np.int64)
    for x in range(m):
        unit = natural_unit(pair.G[outputs[x]], leaf.seen, leaf.usual, leaf.token)
        support = 0.0
        for j in range(n):
            mean = 0.0
            for i in range(k - 1):
                if leaf.seen[i, j] > 0:
                    mean += pair.G[outputs[x], i, j]
            support += min(max(mean / (max(k - 1, 1) * unit), 0.0), 1.0)
        key[x] = -int(min(support, 1e6) * 1e9)
    return picked(outputs, ascending(key))


@kernel
@no_type_check
def ranked(pair: Any, outputs: Any, leaf: Any) -> Any:
    """A ranking of outputs that are about in order: the first few are put in the order of what they spoil by a rough count."""
    m = outputs.shape[0]
    few = min(m, RANKED)
    written = np.empty(3 + leaf.masses.shape[0], np.int64)
    found = np.empty(m)
    counts, key = np.empty(m, np.int64), np.empty(few, np.int64)
    for x in range(m):
        counts[x] = -1
        found[x] = natural_unit(pair.G[outputs[x]], leaf.seen, leaf.usual, leaf.token)
    for x in range(few):
        h = joint_harms(pair, outputs[x : x + 1], one())
        counts[x] = count_on_grid(h, leaf, found[x], COARSE, DEEPEST, False, written)[0]
        key[x] = -counts[x]
    order, first, units = numbers(0, m), ascending(key), np.empty(m)
    for x in range(few):
        order[x] = first[x]
    for x in range(m):
        units[x] = found[order[x]]
    return Ranking(picked(outputs, order), units, balanced(units), picked(counts, order))


@kernel
@no_type_check
def joint_count(pair: Any, ranking: Any, members: Any, leaf: Any, steps: int, grid: Any) -> tuple[int, int]:
    """What one joint term of some outputs counts, and operations. The grid is written."""
    h = joint_harms(pair, picked(ranking.outputs, members), picked(ranking.weights, members))
    return count_on_grid(h, leaf, natural_unit(h, leaf.seen, leaf.usual, leaf.token), steps, DEEPEST, False, grid)


@kernel
@no_type_check
def factors(ranking: Any, x: int, parent: int, share: float) -> tuple[int, int]:
    """n1 and n2 of a term apart, n2 / n1 being a share of the ratio of their units."""
    ratio = share * ranking.units[x] / ranking.units[parent]
    return HEAVIEST if ratio <= 1.0 else max(1, int(HEAVIEST / ratio)), int(min(ratio, 1.0) * HEAVIEST)


@kernel
@no_type_check
def least_apart(pair: Any, ranking: Any, x: int, leaf: Any, steps: int, least: int) -> tuple[int, int, int, int]:
    """(count, parent, n1, n2) of a term apart that counts less than `least` by a rough count; the parent is -1 if none was found."""
    tried = np.empty(3 + leaf.masses.shape[0], np.int64)
    parent, factor, less = -1, 1, 0
    tries = min(x, PARENTS)
    for attempt in range(tries + len(MULTIPLIERS)):  # the best of some parents, and the best factor for it
        if attempt >= tries and parent < 0:
            break
        p = attempt if attempt < tries else parent
        n1, n2 = factors(ranking, x, p, MULTIPLIER if attempt < tries else MULTIPLIERS[attempt - tries])
        h = apart_harms(pair, ranking.outputs[x], ranking.outputs[p], n1, n2)
        unit = natural_unit(h, leaf.seen, leaf.usual, leaf.token)
        count, _ = count_on_grid(h, leaf, unit, steps, DEEPEST, False, tried)
        if count < least:
            least, parent, factor, less = count, p, n1, n2
    return least, parent, factor, less


@kernel
@no_type_check
def put_single(pair: Any, ranking: Any, x: int, apart: Any, leaf: Any, steps: tuple[int, int], spare: int, record: Any) -> int:
    """Put a term of one output, apart from another if that is given (parent, n1, n2), and return what it counts. It is counted on finer
    grids, from the first number of steps to the second, for as long as it counts more than what may be spared."""
    tried, grid = np.empty(3 + leaf.masses.shape[0], np.int64), np.empty(3 + leaf.masses.shape[0], np.int64)
    parent, factor, less = apart
    if parent < 0:
        h, unit = joint_harms(pair, ranking.outputs[x : x + 1], one()), ranking.units[x]
    else:
        h = apart_harms(pair, ranking.outputs[x], ranking.outputs[parent], factor, less)
        unit = natural_unit(h, leaf.seen, leaf.usual, leaf.token)
    now, most = steps
    count, work = count_on_grid(h, leaf, unit, now, DEEPEST, False, grid)
    while now < most and count > spare:
        now = min(most, now * FINER)
        found, worked = count_on_grid(h, leaf, unit, now, DEEPEST, False, tried)
        if found < count:
            count, work = found, worked
            grid, tried = tried, grid
    if parent < 0:
        put_joint(record, ranking.outputs[x : x + 1], one(), grid)
    else:
        put_apart(record, ranking.outputs[x], ranking.outputs[parent], (factor, less), grid)
    put(record, work)
    return count


@kernel
@no_type_check
def cover(pair: Any, ranking: Any, leaf: Any, tries: Any, right: int, record: Any) -> tuple[int, int, int]:
    """Cover the outputs: (mass that may fail, number of terms, by how much the bounds of the first output alone differ if so much is right
    at most). Terms go to the record. `ranking.rough` becomes what each output adds.

    Counts are below 2^62, and so is what others add up to, at most the whole leaf: no sum of two of these overflows.
    """
    outputs, weights, rough = ranking.outputs, ranking.weights, ranking.rough
    m, k = outputs.shape[0], leaf.masses.shape[0]
    everything, coarse = mass_up(leaf.masses, leaf.automaton), min(tries.steps, COARSE)
    rest, grid, tried = np.empty(1 + m * (9 + 3 + k), np.int64), np.empty(3 + k, np.int64), np.empty(3 + k, np.int64)
    begin(rest)
    group, joined, size = np.zeros(m, np.int64), rough[0], 1
    total, work = joint_count(pair, ranking, group[:1], leaf, tries.steps, grid)
    doubt = total + right - everything
    spare = max(max(doubt, total >> 16) >> 3, tries.small)
    terms, others = 1, 0
    for x in range(1, m):
        apart = joined + others - everything + right
        if apart >= right:  # nothing is proven right
            count, work = joint_count(pair, ranking, numbers(0, m), leaf, coarse, grid)
            put_joint(record, outputs, weights, grid)
            put(record, work)
            return min(count, everything), 1, doubt
        enough = max(spare, apart >> 4)
        if tries.joint and (x & (x - 1) == 0 or x == m - 1):  # all that are left in one term, if it hardly counts anything
            known = 0
            for y in range(x, m):
                known += max(rough[y], 0)
            if known <= enough:
                count, operations = joint_count(pair, ranking, numbers(x, m), leaf, coarse, tried)
                if count <= enough:
                    put_joint(rest, outputs[x:], weights[x:], tried)
                    put(rest, operations)
                    terms, others = terms + 1, min(others + count, everything)
                    rough[x:] = 0
                    break
        if rough[x] < 0:
            rough[x], _ = joint_count(pair, ranking, numbers(x, x + 1), leaf, coarse, tried)
        least, joins = rough[x], False
        if tries.joint and least > enough:
            group[size] = x
            together, _ = joint_count(pair, ranking, group[: size + 1], leaf, coarse, tried)
            if together - joined < least:
                least, joins = max(together - joined, 0), True
        parent, factor, less = -1, 1, 0
        if least > enough:
            least, parent, factor, less = least_apart(pair, ranking, x, leaf, coarse, least)
            joins = joins and parent < 0
        rough[x] = least
        if joins:
            joined, size = together, size + 1
        else:
            count = put_single(pair, ranking, x, (parent, factor, less), leaf, (coarse, tries.steps), spare, rest)
            terms, others = terms + 1, min(others + count, everything)
    if size > 1:
        total, work = joint_count(pair, ranking, group[:size], leaf, tries.steps, grid)
    put_joint(record, picked(outputs, group[:size]), picked(weights, group[:size]), grid)
    put(record, work)
    put_all(record, rest[1 : rest[0]])
    return min(total + others, everything), terms, doubt
