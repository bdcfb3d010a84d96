"""Interval: a numpy-like array whose every entry is a closed interval that contains the exact value.

Numpy code run on `Interval` operands becomes a proof about real numbers: each operation returns an
enclosure of the exact result for every choice of exact inputs. Operations without a known enclosure
raise `TypeError`; none falls back to floating point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from compactproofs.arrays import exponential, rounding

Endpoint = Float[np.ndarray, "..."]


@dataclass(frozen=True, eq=False)
class Interval:
    """Array of intervals [lower, upper]; the two ends have the same shape.

    Law: for every operation f that is defined here and all reals x in X, y in Y, f(x, y) lies in f(X, Y).
    """

    lower: Endpoint
    """Entrywise lower ends, float64."""
    upper: Endpoint
    """Entrywise upper ends, float64."""

    def __post_init__(self) -> None:
        if self.lower.dtype != np.float64 or self.upper.dtype != np.float64:
            raise TypeError(f"Interval ends must be float64, got {self.lower.dtype} and {self.upper.dtype}; see Interval.exact")
        if self.lower.shape != self.upper.shape:
            raise ValueError(f"Interval ends differ in shape: {self.lower.shape} and {self.upper.shape}")
        if bool(np.any(self.lower > self.upper)):
            raise ValueError("Interval with a lower end above its upper end")

    @classmethod
    def exact(cls, values: np.ndarray | float) -> Interval:
        """The degenerate interval of float64 (or exactly convertible) values."""
        array = np.asarray(values)
        if array.dtype not in (np.float64, np.float32, np.float16):
            raise TypeError(f"Interval.exact expects floating-point values, got dtype {array.dtype}")
        as_double = array.astype(np.float64)
        return cls(as_double, as_double)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.lower.shape

    @property
    def ndim(self) -> int:
        return self.lower.ndim

    @property
    def T(self) -> Interval:
        return Interval(self.lower.T, self.upper.T)

    def __len__(self) -> int:
        return len(self.lower)

    def __getitem__(self, index: Any) -> Interval:
        return Interval(np.asarray(self.lower[index]), np.asarray(self.upper[index]))

    def __repr__(self) -> str:
        return f"Interval(lower={self.lower!r}, upper={self.upper!r})"

    def __bool__(self) -> bool:
        raise TypeError("the truth of an interval is not defined; compare it with `certainly_less`")

    def midpoint_radius(self) -> tuple[Endpoint, Endpoint]:
        """Floats (midpoint, radius) with |x - midpoint| <= radius for every x in the interval."""
        with np.errstate(invalid="ignore"):
            midpoint = np.where(self.lower == self.upper, self.lower, 0.5 * self.lower + 0.5 * self.upper)
        radius = np.maximum(rounding.add_up(self.upper, -midpoint), rounding.add_up(midpoint, -self.lower))
        return np.asarray(midpoint), np.asarray(np.maximum(radius, 0.0))

    def magnitude_upper(self) -> Endpoint:
        """Upper-bound |x| over each interval."""
        return np.asarray(np.maximum(np.abs(self.lower), np.abs(self.upper)))

    def certainly_less(self, other: Interval | np.ndarray | float) -> Bool[np.ndarray, ...]:
        """True exactly where every x of this interval is below every y of the other; NaN is never certain."""
        return np.asarray(self.upper < _as_interval(other).lower)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        operation = _UFUNCS.get(ufunc)
        if operation is None or method != "__call__" or kwargs:
            return NotImplemented
        return operation(*(_as_interval(x) for x in inputs))

    def __add__(self, other: Any) -> Interval:
        return _add(self, _as_interval(other))

    __radd__ = __add__

    def __neg__(self) -> Interval:
        return _negative(self)

    def __sub__(self, other: Any) -> Interval:
        return _add(self, _negative(_as_interval(other)))

    def __rsub__(self, other: Any) -> Interval:
        return _add(_as_interval(other), _negative(self))

    def __mul__(self, other: Any) -> Interval:
        return _multiply(self, _as_interval(other))

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> Interval:
        return _matmul(self, _as_interval(other))

    def __rmatmul__(self, other: Any) -> Interval:
        return _matmul(_as_interval(other), self)


def _as_interval(value: Any) -> Interval:
    if isinstance(value, Interval):
        return value
    if not isinstance(value, np.ndarray | np.generic | int | float):
        raise TypeError(f"cannot mix an Interval with a {type(value).__name__}; make it an array first")
    array = np.asarray(value)
    if array.dtype.kind in "iu":
        if bool(np.any(np.abs(array) > 2**53)):
            raise TypeError("integers above 2^53 are not exact in float64; enclose them first")
        return Interval.exact(array.astype(np.float64))
    return Interval.exact(array)


def _add(x: Interval, y: Interval) -> Interval:
    return Interval(rounding.add_down(x.lower, y.lower), rounding.add_up(x.upper, y.upper))


def _negative(x: Interval) -> Interval:
    return Interval(np.asarray(-x.upper), np.asarray(-x.lower))


def _subtract(x: Interval, y: Interval) -> Interval:
    return _add(x, _negative(y))


def _multiply(x: Interval, y: Interval) -> Interval:
    corners = ((x.lower, y.lower), (x.lower, y.upper), (x.upper, y.lower), (x.upper, y.upper))
    # numpy's minimum and maximum propagate NaN (0 * inf at a corner), so a poisoned entry stays poisoned.
    lower = np.minimum.reduce([rounding.multiply_down(a, b) for a, b in corners])
    upper = np.maximum.reduce([rounding.multiply_up(a, b) for a, b in corners])
    return Interval(np.asarray(lower), np.asarray(upper))


def _exp(x: Interval) -> Interval:
    return Interval(exponential.exp_lower(x.lower), exponential.exp_upper(x.upper))


def _matmul(x: Interval, y: Interval) -> Interval:
    """Midpoint-radius product.

    Guarantee: contains A @ B for all matrices A in x, B in y.
    Cost: four floating-point products.
    Source: Rump, Fast and parallel interval arithmetic (1999), with gamma_n in place of directed rounding.

    With A = a + E, B = b + F, |E| <= r, |F| <= s entrywise and n the inner dimension:
    |A B - a b| <= r |b| + (|a| + r) s, and the computed product c of the midpoints satisfies
    |c - a b| <= gamma_n |a| |b| + n * 2^-1074 for any order of summation. The three non-negative products below are
    themselves computed with relative error gamma_{n+4} and absolute error n * 2^-1074; the final factor and summand cover that.
    """
    a, r = x.midpoint_radius()
    b, s = y.midpoint_radius()
    n = a.shape[-1]
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        product = a @ b
        magnitude = np.abs(a) @ np.abs(b)
        spread = r @ np.abs(b) + (np.abs(a) + r) @ s
        gamma = rounding.gamma_upper(n + 8)
        radius = (spread + gamma * magnitude) * (1.0 + 4.0 * gamma) + 8 * (n + 8) * rounding.SMALLEST_SUBNORMAL
        return Interval(rounding.add_down(product, -radius), rounding.add_up(product, radius))


_UFUNCS: dict[np.ufunc, Callable[..., Interval]] = {
    np.add: _add,
    np.subtract: _subtract,
    np.multiply: _multiply,
    np.negative: _negative,
    np.matmul: _matmul,
    np.exp: _exp,
}
