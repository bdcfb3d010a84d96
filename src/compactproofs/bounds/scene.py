"""The sequences of one leaf as attention sees them, and how large a number that heads average can be on them.

A `Blend` is a number that depends on the sequence: a constant, plus for each head the attention-weighted average of a table,

    X(x) = constant + sum_h sum_i p^h_i(x) parts[h, i, x_i],      p^h_i(x) = a_h(i, x_i) / Z_h(x),   Z_h(x) = sum_i a_h(i, x_i).

One head. X(x) <= 0 exactly if sum_i a(i, x_i) (constant + parts(i, x_i)) <= 0: Z is positive, and averages of a constant are the constant.

Several heads (Theorem P). Let low and high bound p^h_i over the sequences of the leaf with x_i = t: a_h(i, t) over the greatest and the
least Z_h of such sequences. Then X(x) <= constant + sum_i F(i, x_i) with F(i, t) = sum_h max(low X_h, high X_h), X_h = parts[h, i, t]: each
p^h_i X_h is linear in p^h_i, so it is at most the larger of its values at the two ends.

In either case X is bounded by a sum over positions, which a walk maximises and `count_up` counts. Source: docs/explanation/blocks.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from compactproofs.arrays.interval import Interval
from compactproofs.arrays.phantom import Phantom
from compactproofs.arrays.rounding import gamma_upper
from compactproofs.arrays.uniform import Uniform
from compactproofs.counting.walks import Moves, heaviest_product, heaviest_shares, heaviest_through

_TINY = 2.0**-1000
"""More than what underflows in sums of harms."""


@dataclass(frozen=True)
class Blend:
    """A number for each column; see the module."""

    constant: Any
    """(column,)"""
    parts: Any
    """(head, position, token, column)"""

    def __neg__(self) -> Blend:
        return Blend(-self.constant, -self.parts)

    def minus(self, numbers: Any) -> Blend:
        """Less numbers, one for each column."""
        return Blend(self.constant - numbers, self.parts)


@dataclass(frozen=True, eq=False)
class Scene:
    """Attention on the sequences of a leaf that end in one query."""

    moves: Moves
    attention: tuple[np.ndarray, np.ndarray]
    """(head, position, token): lower bounds, not negative, and upper bounds"""

    @property
    def n_heads(self) -> int:
        return len(self.attention[0])

    @cached_property
    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """(head, position, token): low and high of Theorem P; 0 where a token cannot stand.

        Rounding: sums of k numbers that are not negative, and a quotient, err by at most a factor 1 +- gamma_{k+2}.
        """
        low, high = self.attention
        heads, k, _ = low.shape
        sums = heaviest_through(np.ascontiguousarray(np.moveaxis(np.concatenate([high, -low]), 0, 2)), self.moves)
        greatest, least = np.moveaxis(sums[..., :heads], 2, 0), -np.moveaxis(sums[..., heads:], 2, 0)
        slack = 1.0 + 4.0 * gamma_upper(k + 4)
        with np.errstate(all="ignore"):
            lower, upper = low / (greatest * slack) / slack, high / least * (slack * slack)
        possible = np.isfinite(greatest)
        bound = np.where(least > 0.0, np.minimum(upper, 1.0), 1.0)
        lower = np.where(possible & np.isfinite(lower), lower, 0.0)
        upper = np.where(possible, np.where(np.isnan(bound), 1.0, bound), 0.0)
        return np.ascontiguousarray(lower), np.ascontiguousarray(upper)

    def range_of(self, blend: Blend) -> tuple[np.ndarray, np.ndarray]:
        """(column,): at most and at least X on every sequence of the leaf, for several heads.

        Rounding: what parts are off, averages are at most off too, for each head. Harms of H heads err by at most gamma_{H+2} sum_h |X_h|,
        as shares are at most 1, and sums over k positions by gamma_k k times that.
        """
        constant, error = _values(blend.constant)
        parts, off = _values(blend.parts)
        k, heads = parts.shape[1], self.n_heads
        least, most = heaviest_shares(parts, *self.shares, self.moves)
        largest = np.abs(parts).max(axis=(1, 2)).sum(axis=0)
        room = error + heads * off + 8.0 * gamma_upper(k + heads + 8) * (k * largest + np.abs(constant)) + _TINY
        return constant - least - room, constant + most + room

    def nowhere_positive(self, blend: Blend) -> np.ndarray:
        """(column,): whether X certainly is at most zero on every sequence of the leaf. NaN is never certain.

        Rounding, for one head: the product with attention and the sum over k positions err by at most gamma_{k+2} k times the largest.
        """
        if self.n_heads > 1:
            return np.asarray(self.range_of(blend)[1] <= 0.0)
        constant, error = _values(blend.constant)
        parts, off = _values(blend.parts)
        low, high = self.attention
        more = constant + (error + off) * (1.0 + 2.0**-40)
        more = more + (np.abs(more) + np.abs(constant) + np.abs(parts[0]).max(axis=(0, 1))) * 2.0**-49 + _TINY
        most, size = heaviest_product(np.ascontiguousarray(parts[0]), more, low[0], high[0], self.moves)
        room = 4.0 * gamma_upper(len(low[0]) + 8) * len(low[0]) * size + _TINY
        return np.asarray(most + room <= 0.0)


def _values(x: Any) -> tuple[np.ndarray, float]:
    """Entries, and how far they are off at most; what is not known is off infinitely."""
    if isinstance(x, Uniform):
        return x.value, x.error
    if isinstance(x, Interval):
        middle, radius = x.midpoint_radius()
        error = float(radius.max(initial=0.0))
        return middle, error if np.isfinite(middle).all() and error < np.inf else np.inf
    return np.asarray(x), 0.0


def middles(x: Any) -> np.ndarray:
    """About the entries of an array, in float64; of phantoms zeros."""
    return np.zeros(x.shape) if isinstance(x, Phantom) else _values(x)[0]
