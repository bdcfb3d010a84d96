"""Uniform: a numpy-like array whose entries are all within one number of the exact ones.

Interval arithmetic keeps a radius for every entry. Here one number serves a whole array, so numpy code runs nearly as fast as in float64
and is still a proof about real numbers. It suits tables whose entries are of similar size and whose margins are far above rounding.

Law: if every entry x of the exact operands has |x - value| <= error, then so has every entry of the exact result of each operation here.

u = 2^-53. A computed operation is exact (1 + e) + f with |e| <= u and |f| <= 2^-1074. `size` is at least every |value|. Errors and sizes
are computed in float64 from numbers that are not negative, with fewer than twenty operations each: the factor SLACK covers their relative
rounding, and TINY, added last, every underflow, that of the operation itself included (matrices have fewer than 2^40 columns). Nothing is
scaled after TINY is added without a TINY of its own. Beyond LARGEST nothing is known: the error is infinite; below it nothing overflows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from compactproofs.arrays import error_function
from compactproofs.arrays.exponential import RELATIVE_ERROR, exp_approximation, exp_upper
from compactproofs.arrays.interval import Interval
from compactproofs.arrays.protocol import METHOD_FUNCTIONS
from compactproofs.arrays.rounding import UNIT_ROUNDOFF, gamma_upper

SLACK = 1.0 + 2.0**-40
TINY = 2.0**-1000
LARGEST = 2.0**1000
"""Sizes beyond this, and errors beyond this, are not followed."""
_ORDINARY = 2.0**400
"""Numbers below this cannot overflow in one operation."""


@dataclass(frozen=True, eq=False)
class Uniform:
    """An array of numbers that are known up to `error`."""

    value: np.ndarray
    error: float
    size: float
    """At least the largest |value|."""

    def __post_init__(self) -> None:
        if not (self.error <= LARGEST and self.size <= LARGEST):  # NaN too
            object.__setattr__(self, "error", inf)

    @classmethod
    def exact(cls, values: np.ndarray | float) -> Uniform:
        """These float64 numbers."""
        array = np.asarray(values, dtype=np.float64)
        return cls(array, 0.0, largest(array))

    @classmethod
    def enclosing(cls, x: Interval) -> Uniform:
        """The middles of intervals, with the largest radius."""
        middle, radius = x.midpoint_radius()
        known = bool(np.isfinite(middle).all()) and bool(np.isfinite(radius).all())
        return cls(middle, largest(radius) if known else inf, largest(middle) if known else inf)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def T(self) -> Uniform:
        return self._moved(self.value.T)

    @property
    def known(self) -> bool:
        """Whether anything is known."""
        return self.error < inf

    @property
    def lower(self) -> np.ndarray:
        """Lower bounds of all entries."""
        return -self._upper(-self.value)

    @property
    def upper(self) -> np.ndarray:
        """Upper bounds of all entries."""
        return self._upper(self.value)

    def _upper(self, value: np.ndarray) -> np.ndarray:
        return value + (self.error + 2 * UNIT_ROUNDOFF * self.size) * SLACK if self.known else np.full(self.shape, inf)

    def tight(self) -> Uniform:
        """The same with the true size."""
        return Uniform(self.value, self.error, largest(self.value)) if self.known else self

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: Any) -> Uniform:
        return self._moved(np.asarray(self.value[index]))

    def __repr__(self) -> str:
        return f"Uniform({self.value!r}, error={self.error})"

    def __bool__(self) -> bool:
        raise TypeError("the truth of numbers that are known up to an error is not defined; compare their bounds")

    def _moved(self, value: np.ndarray) -> Uniform:
        return Uniform(value, self.error, self.size)

    def reshape(self, *shape: int) -> Uniform:
        return self._moved(self.value.reshape(*shape))

    def max(self, axis: Any = None) -> Uniform:
        return self._moved(np.asarray(self.value.max(axis=axis)))

    def min(self, axis: Any = None) -> Uniform:
        return self._moved(np.asarray(self.value.min(axis=axis)))

    def sum(self, axis: int) -> Uniform:
        n = self.shape[axis]
        return _made(self.value.sum(axis=axis), n * self.error + gamma_upper(n) * n * self.size, n * self.size)

    def mean(self, axis: int) -> Uniform:
        return self.sum(axis) / float(self.shape[axis])

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        operation = _UFUNCS.get(ufunc)
        if operation is None or method != "__call__" or kwargs:
            return NotImplemented
        return _quietly(operation, *map(_as_uniform, inputs))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        implementation = _FUNCTIONS.get(function)
        return NotImplemented if implementation is None else implementation(*args, **kwargs)

    def __add__(self, other: Any) -> Uniform:
        return _quietly(_add, self, _as_uniform(other))

    __radd__ = __add__

    def __neg__(self) -> Uniform:
        return self._moved(-self.value)

    def __sub__(self, other: Any) -> Uniform:
        return _quietly(_subtract, self, _as_uniform(other))

    def __rsub__(self, other: Any) -> Uniform:
        return _quietly(_subtract, _as_uniform(other), self)

    def __mul__(self, other: Any) -> Uniform:
        return _quietly(_multiply, self, _as_uniform(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Uniform:
        return _quietly(_divide, self, _as_uniform(other))

    def __matmul__(self, other: Any) -> Uniform:
        return _quietly(_matmul, self, _as_uniform(other))

    def __rmatmul__(self, other: Any) -> Uniform:
        return _quietly(_matmul, _as_uniform(other), self)

    def __abs__(self) -> Uniform:
        return self._moved(np.abs(self.value))


def largest(x: np.ndarray) -> float:
    """The largest magnitude; infinite if there is one that is not a number."""
    if x.size == 0:
        return 0.0
    found = abs(float(x)) if x.ndim == 0 else max(float(x.max()), -float(x.min()))
    return found if isfinite(found) else inf


def _quietly(operation: Callable[..., Uniform], *operands: Uniform) -> Uniform:
    """An operation without warnings where something may overflow: its error is infinite then."""
    if all(x.size < _ORDINARY and x.error < _ORDINARY for x in operands):
        return operation(*operands)
    with np.errstate(all="ignore"):
        return operation(*operands)


def _made(value: Any, error: float, size: float) -> Uniform:
    """A result, with what errors and sizes lose by being computed."""
    return Uniform(np.asarray(value), error * SLACK + TINY, size * SLACK + TINY)


def _as_uniform(value: Any) -> Uniform:
    if isinstance(value, Uniform):
        return value
    if isinstance(value, Interval):
        return Uniform.enclosing(value)
    if isinstance(value, float):
        return Uniform(np.asarray(value), 0.0, abs(value))
    if not isinstance(value, np.ndarray | np.generic | int):
        raise TypeError(f"cannot mix a Uniform with a {type(value).__name__}; make it an array first")
    return Uniform.exact(np.asarray(value))


def _add(x: Uniform, y: Uniform) -> Uniform:
    size = x.size + y.size
    return _made(x.value + y.value, x.error + y.error + 2 * UNIT_ROUNDOFF * size, size)


def _subtract(x: Uniform, y: Uniform) -> Uniform:
    return _add(x, -y)


def _multiply(x: Uniform, y: Uniform) -> Uniform:
    """|x y - x~ y~| <= |x~| |y - y~| + |x - x~| |y~| + |x - x~| |y - y~|"""
    size = x.size * y.size
    return _made(x.value * y.value, x.size * y.error + x.error * y.size + x.error * y.error + 2 * UNIT_ROUNDOFF * size, size)


def _divide(x: Uniform, y: Uniform) -> Uniform:
    """By numbers whose sign is certain: with |y|, |y~| >= d, |x / y - x~ / y~| <= |x - x~| / d + |x~| |y - y~| / d^2."""
    least = float(np.abs(y.value).min(initial=inf)) - y.error
    if not least > 0.0:
        return Uniform(np.full(np.broadcast_shapes(x.shape, y.shape), np.nan), inf, inf)
    least *= 1.0 - 2.0**-40
    size = x.size / least
    with np.errstate(all="ignore"):
        quotient = x.value / y.value
    return _made(quotient, x.error / least + size * (y.error / least) + 2 * UNIT_ROUNDOFF * size, size)


def _sqrt(x: Uniform) -> Uniform:
    """Of numbers that are not negative: |sqrt x - sqrt x~| is at most sqrt |x - x~|, and at most |x - x~| / sqrt x~; computed values
    below zero are cut off there, which takes them nearer to the exact ones."""
    cut = np.maximum(x.value, 0.0)
    least, size = sqrt(float(cut.min(initial=inf))) if x.known else 0.0, sqrt(max(x.size, 0.0))
    slope = x.error / least if least > 0.0 else inf
    return _made(np.sqrt(cut), min(sqrt(x.error), slope) + 2 * UNIT_ROUNDOFF * size, size)


def _exp(x: Uniform) -> Uniform:
    """|exp x - exp x~| <= exp(max(x, x~)) |x - x~|; `exp_approximation` has its own relative and absolute error."""
    top = float(x.value.max(initial=-inf)) + x.error
    size = float(exp_upper(np.asarray(top))) if top < 600.0 else inf
    return _made(exp_approximation(x.value), size * (x.error + 2 * RELATIVE_ERROR), size)


def erf(x: Uniform) -> Uniform:
    """The error function, whose slope is at most 2 / sqrt(pi) < 1.2."""
    return _made(error_function.erf_approximation(x.value), 1.2 * x.error + error_function.ABSOLUTE_ERROR, 1.0)


def sigmoid(x: Uniform) -> Uniform:
    """1 / (1 + exp(-x)), whose slope is at most 1/4: s = 1 / (1 + e) or e / (1 + e) with e = exp(-|x|) <= 1, computed with two relative
    errors of at most 2^-45 in all."""
    e = exp_approximation(-np.abs(x.value))
    return _made(np.where(x.value >= 0, 1.0, e) / (1.0 + e), 0.25 * x.error + 2.0**-44, 1.0)


def _matmul(x: Uniform, y: Uniform) -> Uniform:
    n = x.shape[-1]
    size = n * x.size * y.size
    error = n * (x.size * y.error + x.error * y.size + x.error * y.error) + gamma_upper(n + 2) * size
    return _made(x.value @ y.value, error, size).tight()


def _chosen(function: Callable[..., Any]) -> Callable[..., Uniform]:
    """Of two numbers that are each known up to an error, the larger (or smaller) is known up to the larger error."""

    def choose(x: Uniform, y: Uniform) -> Uniform:
        return Uniform(function(x.value, y.value), max(x.error, y.error), max(x.size, y.size))

    return choose


def _where(condition: Any, x: Any, y: Any) -> Uniform:
    if not isinstance(condition, np.ndarray):
        raise TypeError("a selection among Uniform arrays needs a condition of booleans")
    X, Y = _as_uniform(x), _as_uniform(y)
    return Uniform(np.where(condition, X.value, Y.value), max(X.error, Y.error), max(X.size, Y.size))


def _joined(function: Callable[..., Any]) -> Callable[..., Uniform]:
    def join(parts: Sequence[Any], axis: int = 0) -> Uniform:
        found = [_as_uniform(part) for part in parts]
        return Uniform(function([x.value for x in found], axis=axis), max(x.error for x in found), max(x.size for x in found))

    return join


_UFUNCS: dict[np.ufunc, Callable[..., Uniform]] = {
    np.add: _add,
    np.subtract: _subtract,
    np.multiply: _multiply,
    np.divide: _divide,
    np.negative: lambda x: -x,
    np.absolute: abs,
    np.sqrt: _sqrt,
    np.exp: _exp,
    np.matmul: _matmul,
    np.maximum: _chosen(np.maximum),
    np.minimum: _chosen(np.minimum),
}

_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **METHOD_FUNCTIONS,
    np.where: _where,
    np.concatenate: _joined(np.concatenate),
    np.stack: _joined(np.stack),
    np.moveaxis: lambda x, source, target: x._moved(np.moveaxis(x.value, source, target)),
    np.shape: lambda x: x.shape,
}
