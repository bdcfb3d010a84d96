"""The compiled search over one query and one label: it tries terms and classes, counts them, and writes down what it chose.

What it writes is a sequence of integers that `search.records` reads back into the ledger. The counts come from the very functions that
`verify` calls, so they are what the ledger proves.
"""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.bounds.pairs import harmful_outputs, joint_harms, walk_operations
from compactproofs.counting.count_up import mass_up
from compactproofs.search.covers import RANKED, balanced, cover, put_joint, ranked, supported
from compactproofs.search.grids import DEEPEST, count_on_grid, natural_unit
from compactproofs.search.spoiling import spoiled, spoiled_by_two
from compactproofs.search.writing import begin, put, put_all

ANY = (1 << 62) - 1
"""More than any count in its units; the sum of two such still fits."""

RARE = 10
"""Two spoilers are tried where more than two to minus this of a leaf may be right."""

DOUBT, SPLIT, OUTPUTS, TOLD = 0, 1, 2, 3
"""Where `bound_leaf` tells what might help, and how many outputs matter; from `TOLD` on it names them, those that spoil most first."""


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
    terms = n_out * (9 + grid) if tries.apart else 3 + 2 * n_out + grid
    return 3 + classes + (1 + classes) * (2 + terms), 2 + classes + (1 + classes) * (4 + grid)


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
    nothing, told = np.full(leaf.masses.shape[1], -1), np.empty(TOLD + candidates.shape[0], np.int64)
    return bound_leaf(pair, supported(pair, candidates, leaf), leaf, tries, (below, above), nothing, told)


@kernel
@no_type_check
def bound_leaf(pair: Any, candidates: Any, leaf: Any, tries: Any, records: Any, copies: Any, told: Any) -> Any:
    """Bound one leaf: (mass that may fail, mass that may be right), both from above. Terms go to the records, below and above.

    Candidates that spoil most should come first. With `joint` alone one term covers all outputs that may be harmful; with `apart`, those
    terms that `search.covers` finds. Right answers are bounded by those on which one output loses, or two.

    What might help is told: by how much the bounds of the first output alone differ; a token to split by (`copies` as above); and the
    outputs that may be harmful.
    """
    masses, automaton = leaf.masses, leaf.automaton
    below, above = records
    told[DOUBT], told[SPLIT], told[OUTPUTS] = 0, -1, 0
    everything = mass_up(masses, automaton)
    outputs = harmful_outputs(pair, candidates, masses, automaton)
    m = outputs.shape[0]
    walking = walk_operations(masses, automaton) * (candidates.shape[0] - m)
    if m == 0:
        put(below, 0)
        put(below, walking)
        put(above, -1)
        return 0, everything
    failing, right = everything, everything
    if not tries.apart:
        units, tried = np.empty(m), np.empty(3 + masses.shape[0], np.int64)
        for x in range(m):
            units[x] = natural_unit(pair.G[outputs[x]], leaf.seen, leaf.usual, leaf.token)
        weights = balanced(units)
        h = joint_harms(pair, outputs, weights)
        failing, work = count_on_grid(h, leaf, natural_unit(h, leaf.seen, leaf.usual, leaf.token), tries.steps, DEEPEST, False, tried)
        put(below, 1)
        put(below, walking)
        put_joint(below, outputs, weights, tried)
        put(below, work)
        if failing <= tries.small or not tries.upper:
            put(above, -1)
            return failing, everything
    ranking = ranked(pair, outputs, leaf)
    start = above[0]
    if tries.upper:
        right = spoiled(pair, ranking, leaf, tries.steps, above)
    else:
        put(above, -1)
    doubt = 0
    if tries.apart:
        terms = np.empty(1 + m * (9 + 3 + masses.shape[0]), np.int64)
        begin(terms)
        failing, number, doubt = cover(pair, ranking, leaf, tries, right, terms)
        put(below, number)
        put(below, walking)
        put_all(below, terms[1 : terms[0]])
        apart = failing + right - everything
        if tries.upper and m > 1 and apart > max(2 * doubt, tries.small, right >> 1) and right > everything >> RARE:
            end = above[0]
            above[0] = start
            less = spoiled_by_two(pair, ranking, leaf, tries.steps, right, above)
            above[0] = above[0] if less < right else end
            right = less
    matter = 0
    for x in range(m):
        told[TOLD + x] = ranking.outputs[x]
        if matter == x < RANKED and (x == 0 or ranking.rough[x] > doubt >> 3):
            matter += 1
    told[DOUBT], told[OUTPUTS] = doubt, m
    told[SPLIT] = telling_token(pair, ranking.outputs[:matter], ranking.units[:matter], leaf.seen, copies)
    return failing, right


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
