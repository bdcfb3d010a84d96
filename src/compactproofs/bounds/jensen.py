"""Theorem J: Jensen's inequality for averages of several heads.

Let f be convex and b_h > 0 numbers that add up to at most 1. Then

    f(x + sum_h mean_h(d_h)) <= f(x) + sum_h mean_h(b_h f(x + d_h / b_h) - b_h f(x)).

Proof. x + sum_h mean_h(d_h) is the combination of x with weight 1 - sum_h b_h and of the points x + d_h(i, x_i) / b_h with weights b_h
p^h_i, which are not negative and add up to 1. With one head and b = 1 this is Jensen's inequality itself, and x does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compactproofs.bounds.scene import Blend
from compactproofs.bounds.stream import UnprovenError

UNITS = 65536.0
"""Shares are whole multiples of 1 / UNITS: their sums are exact."""


def jensen(perspective: Callable[[Any, Any], Any], blend: Blend, shares: np.ndarray) -> Blend:
    """An upper bound of f(blend): column by column, or of all columns together if f takes vectors (..., column) to (..., 1).

    perspective(x, b) is b f(x / b), which many f have without dividing; shares are (head, column).
    """
    whole = shares * UNITS
    if not ((whole >= 1.0) & (whole <= UNITS) & (whole == np.rint(whole))).all() or not (whole.sum(axis=0) <= UNITS).all():
        raise UnprovenError("shares of heads are not positive, or add up to more than 1")
    b = shares[:, None, None, :]
    at = perspective(blend.constant[None], np.ones(1))
    return Blend(at.reshape(-1), perspective(blend.constant * b + blend.parts, b) - at * b)
