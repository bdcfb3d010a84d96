"""From harms, real numbers, to small integers that `count_up` adds.

A step is mantissa 2^exponent, and position i has an offset of offsets[i] / 256 steps. With

    D(i, t) = ceil(h(i, t) / step - offsets[i] / 256),   start = ceil(sum_i offsets[i] / 256)

start + sum D >= (sum h) / step, for any step > 0 and any offsets: where harms add up to at least zero, so do the integers (Lemma G). Good
offsets lose little. `depth` bounds the integers: D is raised to -depth (-4 depth at the last position), and a D so large that no others can
make up for it becomes just that large. Every number here is a hint.

The division is exact: X = ceil(h 2^(8 - exponent)) is an integer, and D = ceil((X - offsets[i] mantissa) / (256 mantissa)), because
a ceiling inside a ceiling of an integer quotient changes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple, no_type_check

import numpy as np

from compactproofs.arrays.compiling import kernel
from compactproofs.counting.count_up import count_up

FINE = 256
"""Offsets are so many to a step."""

DEEPER = 4
"""The last position may be so many times deeper."""

MOST_MANTISSA, MOST_EXPONENT, MOST_DEPTH = 1 << 16, 900, 1 << 24


class Grid(NamedTuple):
    """A step, its offsets, and how deep integers may be."""

    mantissa: int
    exponent: int
    depth: int
    offsets: Any
    """(position,): 0 .. 255"""


@kernel
@no_type_check
def initial_sum(offsets: Any) -> int:
    """ceil(sum of offsets / 256)"""
    total = 0
    for offset in offsets:
        total += offset
    return -((-total) // FINE)


@kernel
@no_type_check
def on_grid(h: Any, grid: Any, start: int) -> Any:
    """D as above, (position, 1, token), for sums that begin with `start`.

    Guarantee: Lemma G; a NaN counts as infinite.
    Assumes: mantissa 1 .. MOST_MANTISSA, |exponent| <= MOST_EXPONENT, depth 1 .. MOST_DEPTH, offsets 0 .. 255.
    """
    k, n = h.shape
    D = np.empty((k, 1, n), np.int64)
    scale = 2.0 ** (8 - grid.exponent)
    whole = FINE * grid.mantissa
    floors = (k - 1 + DEEPER) * grid.depth
    for i in range(k):
        floor = grid.depth if i < k - 1 else DEEPER * grid.depth
        ceiling = floors - floor - start
        shift = grid.offsets[i] * grid.mantissa
        for j in range(n):
            y = h[i, j] * scale  # exact, but for underflow and overflow
            if y >= float(ceiling) * whole + shift or y != y:
                D[i, 0, j] = ceiling
            elif y <= float(-floor) * whole:
                D[i, 0, j] = -floor
            else:
                X = int(np.ceil(y)) if y != 0.0 or h[i, j] <= 0.0 else 1
                D[i, 0, j] = min(max(-((shift - X) // whole), -floor), ceiling)
    return D


@kernel
@no_type_check
def count_harms(h: Any, grid: Any, masses: Any, automaton: Any, strict: bool) -> tuple[int, int]:
    """Count, with operations, where harms add up to at least zero, or (`strict`) to more: `count_up` on a grid.

    Guarantee: at least the mass of the accepted sequences with sum_i h(i, x_i) >= 0, or > 0. In the latter case start + sum D > 0, that is,
    start - 1 + sum D >= 0.
    """
    start = initial_sum(grid.offsets) - (1 if strict else 0)
    return count_up(on_grid(h, grid, start), masses, start, automaton)
