"""Interval: a numpy-like array whose every entry is a closed interval that contains the exact value.

Numpy code run on `Interval` operands becomes a proof about real numbers: each operation returns an enclosure of the exact result for
every choice of exact inputs. Operations without a known enclosure raise `TypeError`; none falls back to floating point. Order-dependent
operations return enclosures of the exact order statistics; comparisons know three answers (see `Comparison`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from compactproofs.arrays import error_function, exponential, rounding
from compactproofs.arrays.protocol import METHOD_FUNCTIONS

Endpoint = Float[np.ndarray, "..."]
Axis = int | tuple[int, ...] | None


@dataclass(frozen=True, eq=False)
class Comparison:
    """The outcome of comparing intervals entry by entry: certainly true, certainly false, or uncertain."""

    certain: Bool[np.ndarray, "..."]
    """True where the comparison holds for all values in the intervals."""
    possible: Bool[np.ndarray, "..."]
    """False where it fails for all values in the intervals."""

    def __bool__(self) -> bool:
        if self.certain.size == 1 and bool(self.certain.all()):
            return True
        if self.certain.size == 1 and not bool(self.possible.any()):
            return False
        raise TypeError("the truth of an uncertain comparison of intervals is not defined; use its `certain` entries")


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
        return _on_ends(self, lambda end: end[index])

    def __repr__(self) -> str:
        return f"Interval(lower={self.lower!r}, upper={self.upper!r})"

    def __bool__(self) -> bool:
        raise TypeError("the truth of an interval is not defined; compare it with `certainly_less`")

    def reshape(self, *shape: int) -> Interval:
        return _on_ends(self, lambda end: end.reshape(*shape))

    def max(self, axis: Axis = None) -> Interval:
        return _on_ends(self, lambda end: np.max(end, axis=axis))

    def min(self, axis: Axis = None) -> Interval:
        return _on_ends(self, lambda end: np.min(end, axis=axis))

    def sum(self, axis: int) -> Interval:
        return _summed(self, axis, np.sum)

    def mean(self, axis: int) -> Interval:
        return self.sum(axis) / float(self.shape[axis])

    def cumsum(self, axis: int) -> Interval:
        return _summed(self, axis, np.cumsum)

    def midpoint_radius(self) -> tuple[Endpoint, Endpoint]:
        """Floats (midpoint, radius) with |x - midpoint| <= radius for every x in the interval."""
        with np.errstate(invalid="ignore"):
            midpoint = np.where(self.lower == self.upper, self.lower, 0.5 * self.lower + 0.5 * self.upper)
        radius = np.maximum(rounding.add_up(self.upper, -midpoint), rounding.add_up(midpoint, -self.lower))
        return np.asarray(midpoint), np.asarray(np.maximum(radius, 0.0))

    def magnitude_upper(self) -> Endpoint:
        """Upper-bound |x| over each interval."""
        return np.asarray(np.maximum(np.abs(self.lower), np.abs(self.upper)))

    def certainly_less(self, other: Interval | np.ndarray | float) -> Bool[np.ndarray, "..."]:
        """True exactly where every x of this interval is below every y of the other; NaN is never certain."""
        return (self < other).certain

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "accumulate" and ufunc in (np.maximum, np.minimum):
            return _on_ends(inputs[0], lambda end: ufunc.accumulate(end, **kwargs))
        operation = _UFUNCS.get(ufunc)
        if operation is None or method != "__call__" or kwargs:
            return NotImplemented
        return operation(*(_as_interval(x) for x in inputs))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        implementation = _FUNCTIONS.get(function)
        return NotImplemented if implementation is None else implementation(*args, **kwargs)

    def __add__(self, other: Any) -> Interval:
        return _add(self, _as_interval(other))

    __radd__ = __add__

    def __neg__(self) -> Interval:
        return _negative(self)

    def __sub__(self, other: Any) -> Interval:
        return _subtract(self, _as_interval(other))

    def __rsub__(self, other: Any) -> Interval:
        return _subtract(_as_interval(other), self)

    def __mul__(self, other: Any) -> Interval:
        return _multiply(self, _as_interval(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Interval:
        return _divide(self, _as_interval(other))

    def __rtruediv__(self, other: Any) -> Interval:
        return _divide(_as_interval(other), self)

    def __matmul__(self, other: Any) -> Interval:
        return _matmul(self, _as_interval(other))

    def __rmatmul__(self, other: Any) -> Interval:
        return _matmul(_as_interval(other), self)

    def __abs__(self) -> Interval:
        return _absolute(self)

    def __lt__(self, other: Any) -> Comparison:
        return _less(self, _as_interval(other))

    def __gt__(self, other: Any) -> Comparison:
        return _less(_as_interval(other), self)


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


def _on_ends(x: Interval, function: Callable[[Endpoint], Any]) -> Interval:
    """Apply a function that is monotone in every entry (or only moves entries) to both ends."""
    return Interval(np.asarray(function(x.lower)), np.asarray(function(x.upper)))


def _less(x: Interval, y: Interval) -> Comparison:
    return Comparison(np.asarray(x.upper < y.lower), np.asarray(~(x.lower >= y.upper)))


def _add(x: Interval, y: Interval) -> Interval:
    return Interval(rounding.add_down(x.lower, y.lower), rounding.add_up(x.upper, y.upper))


def _negative(x: Interval) -> Interval:
    return Interval(np.asarray(-x.upper), np.asarray(-x.lower))


def _subtract(x: Interval, y: Interval) -> Interval:
    return _add(x, _negative(y))


def _multiply(x: Interval, y: Interval) -> Interval:
    if y.lower is y.upper and bool(((y.lower > 0) & (y.lower < np.inf)).all()):
        return _scale(x, y.lower)
    for factor, other in ((x, y), (y, x)):
        if bool((factor.lower >= 0).all()):
            return _times_nonnegative(other, factor)
    exact_zero = ((x.lower == 0) & (x.upper == 0)) | ((y.lower == 0) & (y.upper == 0))
    corners = ((x.lower, y.lower), (x.lower, y.upper), (x.upper, y.lower), (x.upper, y.upper))
    return _hull_of_corners([rounding.rounded_product(a, b) for a, b in corners], exact_zero)


def _times_nonnegative(x: Interval, factor: Interval) -> Interval:
    """Product with intervals that are not negative: the sign of an end of x says which end of the factor is the worse one.

    The same corners as those that `_hull_of_corners` would find, two products instead of four; a NaN on either side poisons the entry.
    """
    lower = rounding.rounded_product(x.lower, np.where(x.lower >= 0, factor.lower, factor.upper))
    upper = rounding.rounded_product(x.upper, np.where(x.upper >= 0, factor.upper, factor.lower))
    poisoned = np.isnan(lower) | np.isnan(upper) | np.isnan(factor.upper)
    exact_zero = ((x.lower == 0) & (x.upper == 0)) | (factor.upper == 0)
    lower = np.where(exact_zero, 0.0, rounding.step_down(lower))
    upper = np.where(exact_zero, 0.0, rounding.step_up(upper))
    if not bool(poisoned.any()):
        return Interval(lower, upper)
    return Interval(np.where(poisoned, np.nan, lower), np.where(poisoned, np.nan, upper))


def _scale(x: Interval, factor: Endpoint) -> Interval:
    """Product with positive finite numbers: monotone, so each end by itself, one step outward; an end that is exactly zero stays."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        lower, upper = x.lower * factor, x.upper * factor
    lower, upper = np.where(x.lower == 0, lower, rounding.step_down(lower)), np.where(x.upper == 0, upper, rounding.step_up(upper))
    return Interval(lower, upper)


def _divide(x: Interval, y: Interval) -> Interval:
    """Quotient; everything where the divisor may be zero (a NaN quotient at a corner poisons the entry)."""
    with np.errstate(all="ignore"):
        corners = [a / b for a in (x.lower, x.upper) for b in (y.lower, y.upper)]
    quotient = _hull_of_corners(corners, (x.lower == 0) & (x.upper == 0))
    unsafe = ~((y.lower > 0) | (y.upper < 0))
    return Interval(np.where(unsafe, -np.inf, quotient.lower), np.where(unsafe, np.inf, quotient.upper))


def _hull_of_corners(corners: Sequence[Any], exact_zero: Any) -> Interval:
    """Smallest and largest corner, one step outward. numpy's minimum and maximum propagate NaN, so poison stays."""
    a, b, c, d = corners
    lower = rounding.step_down(np.minimum(np.minimum(a, b), np.minimum(c, d)))
    upper = rounding.step_up(np.maximum(np.maximum(a, b), np.maximum(c, d)))
    if not np.any(exact_zero):
        return Interval(lower, upper)
    finite = exact_zero & ~np.isnan(lower)
    return Interval(np.where(finite, 0.0, lower), np.where(finite, 0.0, upper))


def _absolute(x: Interval) -> Interval:
    magnitude = x.magnitude_upper()
    smallest = np.where((x.lower <= 0) & (x.upper >= 0), 0.0, np.minimum(np.abs(x.lower), np.abs(x.upper)))
    return Interval(np.asarray(smallest), magnitude)


def _sqrt(x: Interval) -> Interval:
    """Square root of an exact value that is not negative; a lower end below zero is rounding and is cut off there."""
    if bool(np.any(x.upper < 0)):
        raise ValueError("square root of a negative interval")
    with np.errstate(invalid="ignore"):
        lower = np.maximum(np.nextafter(np.sqrt(np.maximum(x.lower, 0.0)), -np.inf), 0.0)
        upper = np.nextafter(np.sqrt(x.upper), np.inf)
    return Interval(np.asarray(lower), np.asarray(upper))


def _exp(x: Interval) -> Interval:
    return Interval(exponential.exp_lower(x.lower), exponential.exp_upper(x.upper))


def _tanh(x: Interval) -> Interval:
    """Hyperbolic tangent, monotone and odd: each end by itself."""
    return Interval(_tanh_lower(x.lower), -_tanh_lower(-x.upper))


def _tanh_lower(x: Endpoint) -> Endpoint:
    """Lower-bound tanh(x).

    tanh(x) = (1 - e) / (1 + e) with e = exp(-2 x), which decreases in e; the three operations err by a factor within 1 +- 4 u. For e so
    large that it is infinite, tanh(x) > -1. Near zero this is off by 2^-46, so there also x - x^3 / 3 for x >= 0, and x itself for x < 0.
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        e = exponential.exp_upper(-2.0 * x)
        quotient = (1.0 - e) / (1.0 + e)
        general = np.where(np.isfinite(e), quotient - np.abs(quotient) * 2.0**-50, np.where(np.isnan(x), np.nan, -1.0))
        small = np.where(x < 0, x, x * (1.0 - x * x) * (1.0 - 2.0**-50) - rounding.SMALLEST_SUBNORMAL)
        return np.asarray(np.maximum(np.where(np.abs(x) <= 1 / 64, np.maximum(general, small), general), -1.0))


def erf(x: Interval) -> Interval:
    """The error function, which is monotone: each end by itself."""
    return Interval(error_function.erf_lower(x.lower), error_function.erf_upper(x.upper))


def _maximum(x: Interval, y: Interval) -> Interval:
    return Interval(np.asarray(np.maximum(x.lower, y.lower)), np.asarray(np.maximum(x.upper, y.upper)))


def _minimum(x: Interval, y: Interval) -> Interval:
    return Interval(np.asarray(np.minimum(x.lower, y.lower)), np.asarray(np.minimum(x.upper, y.upper)))


def _summed(x: Interval, axis: int, summation: Callable[..., Any]) -> Interval:
    """A sum or running sums: |computed - exact| <= gamma_n sum |x_i| for any order, with n the number of terms.

    No absolute error: if sum |x_i| < 2^-1021, all partial sums are exact; if not, gamma_{n+2} sum |x_i| is at least (n + 2) 2^-1074, so
    that its own underflow, half of 2^-1074, leaves more than gamma_{n+1} sum |x_i|.
    """
    gamma = rounding.gamma_upper(x.shape[axis] + 2)
    with np.errstate(invalid="ignore", over="ignore"):
        slack_lower = gamma * summation(np.abs(x.lower), axis=axis)
        slack_upper = gamma * summation(np.abs(x.upper), axis=axis)
        lower, upper = summation(x.lower, axis=axis), summation(x.upper, axis=axis)
    widen = 1.0 + 2.0**-20  # covers the rounding of the slack itself
    return Interval(rounding.add_down(lower, -widen * slack_lower), rounding.add_up(upper, widen * slack_upper))


def _matmul(x: Interval, y: Interval) -> Interval:
    """Midpoint-radius product.

    Guarantee: contains A @ B for all matrices A in x, B in y.
    Cost: four floating-point products.
    Source: Rump, Fast and parallel interval arithmetic (1999), with gamma_n in place of directed rounding.

    With A = a + E, B = b + F, |E| <= r, |F| <= s entrywise and n the inner dimension:
    |A B - a b| <= r |b| + (|a| + r) s, and the computed product c of the midpoints satisfies
    |c - a b| <= gamma_n |a| |b| + n * 2^-1074 for any order of summation. The three non-negative products below are themselves
    computed with relative error gamma_{n+4} and absolute error n * 2^-1074; the final factor and summand cover that.
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
        finite = np.isfinite(product)  # an overflowing product says nothing
        lower = np.where(finite, rounding.add_down(product, -radius), -np.inf)
        return Interval(lower, np.where(finite, rounding.add_up(product, radius), np.inf))


def _where(condition: Any, x: Any, y: Any) -> Interval:
    """Selection; where the condition is uncertain, the hull of both."""
    X, Y = _as_interval(x), _as_interval(y)
    if isinstance(condition, Comparison):
        certain, impossible = condition.certain, ~condition.possible
    else:
        certain = np.asarray(condition, dtype=bool)
        impossible = ~certain
    lower = np.where(certain, X.lower, np.where(impossible, Y.lower, np.minimum(X.lower, Y.lower)))
    upper = np.where(certain, X.upper, np.where(impossible, Y.upper, np.maximum(X.upper, Y.upper)))
    return Interval(lower, upper)


def _joined(function: Callable[..., Any]) -> Callable[..., Interval]:
    def join(parts: Sequence[Any], axis: int = 0) -> Interval:
        intervals = [_as_interval(part) for part in parts]
        return Interval(function([i.lower for i in intervals], axis=axis), function([i.upper for i in intervals], axis=axis))

    return join


def _sort(x: Interval, axis: int = -1) -> Interval:
    """Order statistics: the i-th smallest exact value lies between the i-th smallest ends. A NaN poisons its whole row."""
    poisoned = np.isnan(x.lower + x.upper).any(axis=axis, keepdims=True)
    return _on_ends(x, lambda end: np.where(poisoned, np.nan, np.sort(end, axis=axis)))


_UFUNCS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: _add,
    np.subtract: _subtract,
    np.multiply: _multiply,
    np.divide: _divide,
    np.negative: _negative,
    np.absolute: _absolute,
    np.sqrt: _sqrt,
    np.matmul: _matmul,
    np.exp: _exp,
    np.tanh: _tanh,
    np.maximum: _maximum,
    np.minimum: _minimum,
    np.less: _less,
    np.greater: lambda x, y: _less(y, x),
}

_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **METHOD_FUNCTIONS,
    np.where: _where,
    np.sort: _sort,
    np.concatenate: _joined(np.concatenate),
    np.stack: _joined(np.stack),
    np.moveaxis: lambda x, source, target: _on_ends(x, lambda end: np.moveaxis(end, source, target)),
}
