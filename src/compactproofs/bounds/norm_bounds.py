"""Theorem N: what a norm divides by, bounded over a leaf by blends.

z = C x / sqrt(d), C being the centring matrix (or the identity), and sigma = sqrt(|z|^2 + eps).

- Below: sigma >= <e, z> for every e with |e| <= 1.
- Above, bent: sigma is convex in x, so Theorem J bounds it; b sigma(x / b) = sqrt(|C x|^2 / d + eps b^2).
- Above, flat: let |e| <= 1, t = <e, z> >= least > 0 and z' = z - e t. Then <z', e> = (1 - |e|^2) t, so |z|^2 = |z'|^2 + (2 - |e|^2) t^2,
  and with k^2 >= 2 - |e|^2 >= 1 and |z'|^2 + eps <= S: sigma <= sqrt(k^2 t^2 + S) <= k t + S / (2 k t) <= k t + S / (2 least). With e = 0:
  sigma <= sqrt S.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import inf, sqrt
from typing import Any

import numpy as np

from compactproofs.arrays.arithmetic import AbstractArithmetic
from compactproofs.bounds.jensen import jensen
from compactproofs.bounds.relaxation import NormHints
from compactproofs.bounds.scene import Blend
from compactproofs.bounds.stream import Stream, UnprovenError
from compactproofs.form.whole_block import Sigma

MORE = 1.0 + 2.0**-40
"""More than the rounding of a few hundred operations on numbers that are not negative."""
LEAST = 2.0**-1000
"""More than what underflows in them."""


def along(e: np.ndarray, sigma: Sigma, arithmetic: AbstractArithmetic) -> Any:
    """(d, 1): the column that takes x to <e, z>."""
    column = arithmetic.array(e[:, None])
    column = column - column.mean(axis=0) if sigma.centred else column
    return column * arithmetic.inverse_sqrt(Fraction(len(e)))


def across(e: np.ndarray, sigma: Sigma, arithmetic: AbstractArithmetic) -> Any:
    """(d, d): the columns that take x to z'."""
    whole = arithmetic.array(np.eye(len(e)))
    whole = whole - arithmetic.number(Fraction(1, len(e))) if sigma.centred else whole
    return whole * arithmetic.inverse_sqrt(Fraction(len(e))) - along(e, sigma, arithmetic) @ arithmetic.array(e[None])


def perspective(sigma: Sigma, arithmetic: AbstractArithmetic) -> Callable[[Any, np.ndarray], Any]:
    """b sigma(x / b) of vectors x (..., d), as (..., 1)."""

    def scaled(x: Any, b: np.ndarray) -> Any:
        d = x.shape[-1]
        ones, over_d = arithmetic.array(np.ones((d, 1))), arithmetic.number(Fraction(1, d))
        x = x - (x @ ones) * over_d if sigma.centred else x
        squares = ((abs(x) * abs(x)) @ ones) * over_d  # magnitudes: an interval times itself does not know that it is a square
        return arithmetic.sqrt(squares + arithmetic.array(b * b) * arithmetic.number(Fraction(sigma.eps)))

    return scaled


def require_direction(e: np.ndarray) -> None:
    """Raise unless |e| <= 1."""
    if not float((e * e).sum()) * MORE <= 1.0:
        raise UnprovenError("a direction is longer than 1")


def flat(hints: NormHints, eps: float) -> tuple[float, float]:
    """k, 0 if e is, and what is added to k t."""
    square = (float((hints.spread * hints.spread).sum()) + eps) * MORE + LEAST
    if not hints.up.any():
        return 0.0, sqrt(square) * MORE
    require_direction(hints.up)
    if not 0.0 < hints.least < inf:
        raise UnprovenError("a norm is bounded along a direction whose least value is not positive")
    length = float((hints.up * hints.up).sum()) / MORE  # at most |e|^2
    return sqrt(2.0 - length) * MORE, square / (2.0 * hints.least) * MORE


@dataclass(frozen=True, eq=False)
class Divisor:
    """What a norm of the stream divides by: blends below and above it."""

    stream: Stream
    sigma: Sigma
    hints: NormHints

    def within(self, low: tuple[float, float], high: tuple[float, float]) -> Divisor:
        """The same, with ranges of both bounds."""
        found = Divisor(self.stream, self.sigma, replace(self.hints, low=low, high=high))
        found.__dict__.update({name: self.__dict__[name] for name in ("lower", "upper") if name in self.__dict__})  # ranges change neither
        return found

    @cached_property
    def lower(self) -> Blend:
        require_direction(self.hints.down)
        return self.stream.linear(along(self.hints.down, self.sigma, self.stream.arithmetic))

    @cached_property
    def upper(self) -> Blend:
        """Assumes: `premises`."""
        stream, hints = self.stream, self.hints
        if hints.bent:
            everything = Blend(stream.centre, stream.spread)
            return jensen(perspective(self.sigma, stream.arithmetic), everything, hints.shares[:, None])
        factor, rest = flat(hints, self.sigma.eps)
        if factor == 0.0:
            return stream.constant(rest)
        t = stream.linear(along(hints.up, self.sigma, stream.arithmetic))
        return Blend(t.constant * factor + rest, t.parts * factor)

    def premises(self) -> Iterator[tuple[Blend, str]]:
        """What must be nowhere positive for `upper`."""
        if self.hints.bent:
            return
        stream, hints = self.stream, self.hints
        columns = stream.linear(across(hints.up, self.sigma, stream.arithmetic))
        for side in (columns, -columns):
            yield side.minus(hints.spread), "a coordinate may be farther from zero"
        if hints.up.any():
            t = stream.linear(along(hints.up, self.sigma, stream.arithmetic))
            yield Blend(hints.least - t.constant, -t.parts), "a norm may be smaller along its direction"
