"""Rotary positions: queries and keys turned by an angle for each pair of coordinates, in any arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from compactproofs.arrays.arithmetic import AbstractArithmetic
from compactproofs.arrays.trigonometry import cos_sin_enclosure
from compactproofs.model.forward import rotary_pairs
from compactproofs.model.network import Rotary


def turned(x: Any, rotary: Rotary, positions: Sequence[int], arithmetic: AbstractArithmetic) -> Any:
    """x (1 or positions, rows, d_head) as it is at these positions: (positions, rows, d_head).

    Guarantee: in intervals, encloses the real-number rotation by the exact angles i / base^(2 j / dim).
    Cost: O(positions rows d_head).
    """
    half = rotary.dim // 2
    ends = np.array([[cos_sin_enclosure(i, rotary.base, Fraction(j, half)) for j in range(half)] for i in positions])
    cos, sin = (arithmetic.enclosed(ends[:, None, :, which, 0], ends[:, None, :, which, 1]) for which in (0, 1))
    first, second = rotary_pairs(rotary)
    a, b = x[..., first], x[..., second]
    one, other = a * cos - b * sin, b * cos + a * sin
    rest = np.arange(rotary.dim, x.shape[-1])
    unturned = x[..., rest] + np.zeros((len(positions), 1, 1)) if len(rest) else None
    joined = np.concatenate([part for part in (one, other, unturned) if part is not None], axis=-1)
    return joined[..., np.argsort(np.concatenate([first, second, rest]))]
