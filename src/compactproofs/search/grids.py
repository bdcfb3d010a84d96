"""Hints for counting: how large a step, which offsets, which classes. Compiled, because there are many to choose."""

from __future__ import annotations

from math import frexp
from typing import Any, NamedTuple, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.counting.count_up import Automaton, ascending
from compactproofs.counting.grid import FINE, MOST_EXPONENT, Grid, count_harms

DEEPEST = 16
"""Integers below so many negative units are raised."""

_MOST_STEPS = 1 << 14
_OFFSETS = 16
"""So many offsets are tried for each position."""


class Leaf(NamedTuple):
    """Some sequences of one query and label, and the token (besides the usual one) that they are about."""

    masses: Any
    seen: Any
    """The masses, without those of tokens that no accepted sequence has"""
    automaton: Any
    usual: int
    token: int


def leaf_of(masses: np.ndarray, automaton: Automaton, usual: int, token: int) -> Leaf:
    """A leaf, from Python."""
    return Leaf(masses, np.where(automaton.following.max(axis=0) >= 0, masses, 0), automaton, usual, token)


@kernel
@no_type_check
def one() -> Any:
    """The weight of a single output. A new array, since what is called with a constant one is compiled again for that."""
    weight = np.empty(1, np.int64)
    weight[0] = 1
    return weight


@kernel
@no_type_check
def occurring(masses: Any, automaton: Any) -> Any:
    """The masses, without those of tokens that no accepted sequence has."""
    following = automaton.following
    k, n = masses.shape
    found = np.zeros((k, n), np.int64)
    for j in range(n):
        moves = False
        for s in range(following.shape[0]):
            moves = moves or following[s, j] >= 0
        if moves:
            for i in range(k):
                found[i, j] = masses[i, j]
    return found


@kernel
@no_type_check
def natural_unit(h: Any, masses: Any, usual: int, token: int) -> float:
    """A scale for harms: what the usual token takes off, or what a single last token does, whichever is more.

    If `token` (that the class is about) is another one, its weight counts too. If the usual token does not help, a part of what the most
    helpful token takes off. Tokens without a mass count for nothing.
    """
    k, n = h.shape
    unit = 0.0
    deepest = 1e-240
    for i in range(k - 1):
        unit -= h[i, usual] / (k - 1)
    if token != usual:
        other = 0.0
        for i in range(k - 1):
            other += abs(h[i, token]) / (k - 1)
        unit = max(abs(unit) / 4, other)
    else:
        for i in range(k - 1):
            for j in range(n):
                if masses[i, j] > 0 and -h[i, j] > deepest:
                    deepest = -h[i, j]
        if not unit > 0.05 * deepest:
            unit = 0.3 * deepest
    allowed = 0
    at_last = 0.0
    for j in range(n):
        if masses[k - 1, j] > 0:
            allowed += 1
            at_last = abs(h[k - 1, j])
    if allowed == 1:
        unit = max(unit, at_last)
    return min(max(unit, 1e-240), 1e240)


@kernel
@no_type_check
def choose_grid(h: Any, masses: Any, unit: float, steps: int, usual: int, depth: int) -> Any:
    """About `steps` steps to a unit, `depth` units deep, and offsets that make rounding lose little, most of all for the usual token."""
    k, n = h.shape
    steps = min(max(steps, 1), _MOST_STEPS)
    fraction, exponent = frexp(unit / steps)
    mantissa = min(max(int(fraction * 65536), 32768), 65535)
    exponent = min(max(exponent - 16, -MOST_EXPONENT), MOST_EXPONENT)
    per_step = 2.0**-exponent / mantissa
    offsets = np.zeros(k, np.int64)
    above = np.empty(_OFFSETS)
    for i in range(k):
        # rounding loses (c / 16 - r) mod 1 of a step, r being what is left of a harm below it: c / 16 - r, and 1 where r is larger
        above[:] = 0.0
        weight = 0.0
        for j in range(n):
            y = h[i, j] * per_step
            if masses[i, j] > 0 and abs(y) <= 64.0:
                own = 1.0 + n // 8 if j == usual else 1.0
                weight += own
                c = int(np.ceil((y - np.floor(y)) * _OFFSETS)) - 1
                if c >= 0:
                    above[c] += own
        best = np.inf
        still = 0.0
        for c in range(_OFFSETS):
            still += above[c]
        for c in range(_OFFSETS):
            loss = weight * c / _OFFSETS + still
            still -= above[c]
            if loss < best:
                best = loss
                offsets[i] = c * (FINE // _OFFSETS)
    return Grid(mantissa, exponent, depth * steps, offsets)


@kernel
@no_type_check
def count_on_grid(h: Any, leaf: Any, unit: float, steps: int, depth: int, strict: bool, written: Any) -> tuple[int, int]:
    """What `count_harms` counts on the grid that `choose_grid` chooses. The grid is written as mantissa, exponent, depth, offsets."""
    grid = choose_grid(h, leaf.seen, unit, steps, leaf.token, depth)
    written[0], written[1], written[2] = grid.mantissa, grid.exponent, grid.depth
    for i in range(h.shape[0]):
        written[3 + i] = grid.offsets[i]
    return count_harms(h, grid, leaf.masses, leaf.automaton, strict)


@kernel
@no_type_check
def dominant_tokens(weight: Any, usual: int, most: int) -> Any:
    """The tokens with the largest weights, largest first; none that weighs much less than the usual one, which is left out.

    Weights are not negative: their bits, read as integers, are in the same order.
    """
    bits = weight.view(np.int64)
    key = np.empty(weight.shape[0], np.int64)
    for j in range(weight.shape[0]):
        key[j] = -bits[j]
    kept = np.empty(min(most, weight.shape[0]), np.int64)
    n = 0
    for j in ascending(key):
        if j != usual and n < kept.shape[0] and weight[j] * 1e4 > weight[usual]:
            kept[n] = j
            n += 1
    return kept[:n]
