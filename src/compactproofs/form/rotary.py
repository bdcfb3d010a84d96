"""Rotary positions: queries and keys turned by an angle for each pair of coordinates, in any arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Int

from compactproofs.arrays.arithmetic import AbstractArithmetic
from compactproofs.model.forward import rotary_pairs
from compactproofs.model.network import Rotary


def turned(x: Any, rotary: Rotary, positions: Int[np.ndarray, "rows"], arithmetic: AbstractArithmetic) -> Any:
    """The rows of x (rows, d_head), each turned as at its position.

    Guarantee: in a rigorous arithmetic, encloses the real-number rotation by the exact angles i / base^(2 j / dim).
    Cost: O(rows dim).
    """
    cos, sin = (table[positions] for table in arithmetic.turns(int(positions.max()) + 1, rotary.base, rotary.dim // 2))
    first, second = rotary_pairs(rotary)
    rest = np.arange(rotary.dim, x.shape[1])
    a, b = x[:, first], x[:, second]
    parts = np.concatenate([a * cos - b * sin, b * cos + a * sin, x[:, rest]], axis=1)
    return parts[:, np.argsort(np.concatenate([first, second, rest]))]
