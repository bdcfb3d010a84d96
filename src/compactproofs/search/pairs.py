"""The compiled search over one query and one label: it tries terms and classes, counts them, and writes down what it chose.

What it writes is a sequence of integers that `search.records` reads back into the ledger. The counts come from the very functions that
`verify` calls, so they are what the ledger proves.
"""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.bounds.pairs import apart_harms, harmful_outputs, joint_harms, walk_operations
from compactproofs.counting.count_up import ascending, mass_up
from compactproofs.search.grids import DEEPEST, count_on_grid, natural_unit, occurring, one
from compactproofs.search.spoiling import COARSE, FINER, HEAVIEST, spoiled, spoiled_by_two
from compactproofs.search.writing import begin, put, put_all

ANY = (1 << 62) - 1
"""More than any count in its units; the sum of two such still fits."""

JOINT, APART = 0, 1
"""Kinds of terms in records."""

MULTIPLIER, MULTIPLIERS = 0.7, (0.4, 0.9, 1.0)
RARE = 10
"""Two spoilers are tried where more than two to minus this of a leaf may be right."""
PARENTS = 3
RANKING_STEPS = 8
RANKED = 8
"""So many outputs are put in order by counting."""

DOUBT, SPLIT, TOLD = 0, 1, 2
"""Where `bound_leaf` tells what might help, and how much it tells."""


class Tries(NamedTuple):
    """What to try."""

    steps: int
    classes: int
    small: int
    """So much is too little to try for, in units of counts."""
    joint: bool
    apart: bool
    upper: bool


def rooms(tries: Tries, n_out: int, k: int, n: int) -> tuple[int, int]:
    """How long records below and above can get, for so many outputs, positions and tokens."""
    classes, grid = min(tries.classes, n), 3 + k
    terms = max(3 + 2 * n_out + grid, n_out * (6 + grid) if tries.apart else 0)
    return 3 + classes + (1 + classes) * (2 + terms), 2 + classes + (1 + classes) * (4 + grid)


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
def ranked(pair: Any, outputs: Any, units: Any, leaf: Any, seen: Any) -> Any:
    """Numbers of outputs, those that spoil most first: by how many tokens speak for them, and the first few by a rough count."""
    m = outputs.shape[0]
    k, n = seen.shape
    key = np.empty(m, np.int64)
    for x in range(m):
        support = 0.0
        for j in range(n):
            mean = 0.0
            for i in range(k - 1):
                if seen[i, j] > 0:
                    mean += pair.G[outputs[x], i, j]
            support += min(max(mean / (max(k - 1, 1) * units[x]), 0.0), 1.0)
        key[x] = -int(min(support, 1e6) * 1e9)
    order = ascending(key)
    written = np.empty(3 + k, np.int64)
    few = min(m, RANKED)
    rough = np.empty(few, np.int64)
    for y in range(few):
        x = order[y]
        h = joint_harms(pair, outputs[x : x + 1], one())
        rough[y] = -count_on_grid(h, leaf, units[x], RANKING_STEPS, DEEPEST, False, written)[0]
    first = order[:few].copy()
    by_count = ascending(rough)
    for y in range(few):
        order[y] = first[by_count[y]]
    return order


@kernel
@no_type_check
def apart_terms(pair: Any, ranking: Any, leaf: Any, steps: int, limits: Any, rooms: Any) -> int:
    """Bound failures by |F_1| + sum_j |F_j minus F_i| over outputs j, most harmful first, and an earlier i of each.

    What to take off is chosen by rough counts. Finer ones follow only where the rough one is more than the first output's own doubt:
    `limits` has what is right at most, everything, a bound that is known already (terms end as soon as they add up to that), and what
    is too little to matter.
    """
    outputs, units, order = ranking
    right, everything, enough, small = limits
    trial, counts = rooms
    k, seen = leaf.masses.shape[0], occurring(leaf)
    tried, grid = np.empty(3 + k, np.int64), np.empty(3 + k, np.int64)
    total = spare = 0
    for y in range(order.shape[0]):
        x = order[y]
        o = outputs[x]
        h = joint_harms(pair, outputs[x : x + 1], one())
        unit = units[x]
        parent, factor, less, taken = -1, 1, 0, -1
        now = steps if y == 0 else min(steps, COARSE)
        count, work = count_on_grid(h, leaf, unit, now, DEEPEST, False, grid)
        for attempt in range(min(y, PARENTS) + len(MULTIPLIERS)):  # the best of some parents, and the best factor for it
            if count <= spare or (attempt >= min(y, PARENTS) and parent < 0):
                break
            if attempt < min(y, PARENTS):
                p, mu = order[attempt], MULTIPLIER
            else:
                p, mu = taken, MULTIPLIERS[attempt - min(y, PARENTS)]
            ratio = mu * units[x] / units[p]
            n1 = HEAVIEST if ratio <= 1.0 else max(1, int(HEAVIEST / ratio))
            n2 = int(min(ratio, 1.0) * HEAVIEST)
            other = apart_harms(pair, o, outputs[p], n1, n2)
            own = natural_unit(other, seen, leaf.usual, leaf.token)
            found, worked = count_on_grid(other, leaf, own, now, DEEPEST, False, tried)
            if found < count:
                count, work, h, unit, parent, factor, less, taken = found, worked, other, own, outputs[p], n1, n2, p
                grid, tried = tried, grid
        while now < steps and count > spare:
            now = min(steps, now * FINER)
            found, worked = count_on_grid(h, leaf, unit, now, DEEPEST, False, tried)
            if found < count:
                count, work = found, worked
                grid, tried = tried, grid
        if y == 0:
            spare = max(max(count + right - everything, count >> 16) >> 3, small)
        counts[y] = count
        total = min(total + count, everything)
        if parent < 0:
            put_joint(trial, outputs[x : x + 1], one(), grid, work)
        else:
            put(trial, APART)
            put(trial, o)
            put(trial, parent)
            put(trial, factor)
            put(trial, less)
            put_all(trial, grid)
            put(trial, work)
        counts[y + 1 :] = 0
        if total >= enough:
            counts[order.shape[0]] = y + 1
            return total
    counts[order.shape[0]] = order.shape[0]
    return total


@kernel
@no_type_check
def telling_token(pair: Any, outputs: Any, units: Any, seen: Any, copies: Any) -> int:
    """The token about which outputs differ most, in units of each: what to split by. -1 if there is none; `copies` has how often a token
    is known to occur, -1 for those that are not asked about."""
    k, n = seen.shape
    best, score = -1, 0.02
    for j in range(n):
        if copies[j] < 0:
            continue
        low, high = np.inf, -np.inf
        for x in range(outputs.shape[0]):
            mean = 0.0
            for i in range(k - 1):
                if seen[i, j] > 0:
                    mean += pair.G[outputs[x], i, j]
            share = min(max(mean / (max(k - 1, 1) * units[x]), -4.0), 4.0)
            low, high = min(low, share), max(high, share)
        value = (high - low) / (1 + copies[j])
        if value > score:
            best, score = j, value
    return best


@kernel
@no_type_check
def failures(pair: Any, candidates: Any, leaf: Any, tries: Any, below: Any, above: Any) -> Any:
    """Bound one leaf: (mass that may fail, mass that may be right), both from above. Terms go to the records."""
    return bound_leaf(pair, candidates, leaf, tries, (below, above), np.full(leaf.masses.shape[1], -1), np.empty(TOLD, np.int64))


@kernel
@no_type_check
def bound_leaf(pair: Any, candidates: Any, leaf: Any, tries: Any, records: Any, copies: Any, told: Any) -> Any:
    """Bound one leaf: (mass that may fail, mass that may be right), both from above. Terms go to the records, below and above.

    Write F_o for the sequences that output o spoils. `joint` bounds their union by the sequences on which the worst output of each token
    would win. `apart` bounds it by |F_1| + sum_j min(|F_j|, |F_j minus F_i|) over outputs j and an earlier i of each; on F_j minus F_i the
    sum of n1 G_j - n2 G_i is not negative. Right answers are bounded by those on which one output loses.

    What might help is told: by how much the bounds of the first output alone differ, and a token to split by (`copies` as above).
    """
    masses, automaton, usual, token = leaf
    below, above = records
    told[DOUBT], told[SPLIT] = 0, -1
    everything = mass_up(masses, automaton)
    outputs = harmful_outputs(pair, candidates, masses, automaton)
    m = outputs.shape[0]
    walking = walk_operations(masses, automaton) * (candidates.shape[0] - m)
    if m == 0:
        put(below, 0)
        put(below, walking)
        put(above, -1)
        return 0, everything
    seen = occurring(leaf)
    units = np.empty(m)
    for x in range(m):
        units[x] = natural_unit(pair.G[outputs[x]], seen, usual, token)
    best = everything
    before = below[0]
    if tries.joint:
        tried = np.empty(3 + masses.shape[0], np.int64)
        weights = balanced(units)
        h = joint_harms(pair, outputs, weights)
        best, work = count_on_grid(h, leaf, natural_unit(h, seen, usual, token), tries.steps, DEEPEST, False, tried)
        put(below, 1)
        put(below, walking)
        put_joint(below, outputs, weights, tried, work)
    if best == 0 or (best <= tries.small and not tries.apart) or not (tries.apart or tries.upper):
        put(above, -1)
        return best, everything

    order = ranked(pair, outputs, units, leaf, seen)
    right, start = everything, above[0]
    if tries.upper:
        right = spoiled(pair, (outputs, units, order), leaf, tries.steps, above)
    else:
        put(above, -1)
    counts = np.zeros(m + 1, np.int64)
    doubt = 0
    if tries.apart:
        trial = np.empty(1 + m * (6 + 3 + masses.shape[0]), np.int64)
        begin(trial)
        enough = best if tries.joint else ANY
        limits = right, everything, enough, tries.small
        total = apart_terms(pair, (outputs, units, order), leaf, tries.steps, limits, (trial, counts))
        if total < best or not tries.joint:
            best = total
            below[0] = before
            put(below, counts[m])
            put(below, walking)
            put_all(below, trial[1 : trial[0]])
        doubt = min(counts[0] + right - everything, ANY)
        if tries.upper and m > 1 and best + right - everything > max(2 * doubt, tries.small) and right > everything >> RARE:
            end = above[0]
            above[0] = start
            less = spoiled_by_two(pair, (outputs, units, order), leaf, tries.steps, right, above)
            above[0] = above[0] if less < right else end
            right = less
    matter, theirs = np.empty(m, np.int64), np.empty(m)
    n = 0
    for y in range(min(m, RANKED)):
        if y == 0 or not tries.apart or counts[y] > doubt >> 3:
            matter[n], theirs[n] = outputs[order[y]], units[order[y]]
            n += 1
    told[DOUBT], told[SPLIT] = doubt, telling_token(pair, matter[:n], theirs[:n], seen, copies)
    return best, right


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
