"""Phantom: an array without values that counts what computing it would cost, by the paper's conventions.

Running a proof on phantoms gives its length. The conventions (paper, appendix on FLOPs; the authors' counter):

- an elementwise operation costs one FLOP per output entry: arithmetic, comparison, absolute value, exponential, square root, selection;
- a reduction over n entries costs n - 1 per output; a mean one division more; sorting n entries is checked in n - 1 comparisons;
- a product (r x n)(n x c) costs r c (2 n - 1);
- indexing, reshaping, transposing, joining and broadcasting are free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from compactproofs.arrays.protocol import METHOD_FUNCTIONS

Shape = tuple[int, ...]


@dataclass(eq=False)
class FlopCounter:
    """Adds up FLOPs by named step."""

    steps: dict[str, int] = field(default_factory=dict)
    _current: str = "other"

    _free: bool = False

    def charge(self, flops: int) -> None:
        if not self._free:
            self.steps[self._current] = self.steps.get(self._current, 0) + flops

    @contextmanager
    def step(self, name: str, *, repeated: bool = False) -> Iterator[None]:
        """Charge everything inside to one name, or to nobody if it is a repetition."""
        previous = self._current, self._free
        self._current, self._free = name, self._free or repeated
        try:
            yield
        finally:
            self._current, self._free = previous


@dataclass(frozen=True, eq=False)
class Phantom:
    """A shape and the counter that operations on it charge."""

    shape: Shape
    counter: FlopCounter

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def T(self) -> Phantom:
        return self._with(self.shape[::-1])

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        raise TypeError("a phantom has no values; a proof may not branch on them")

    def __getitem__(self, index: Any) -> Phantom:
        return self._with(np.broadcast_to(np.zeros((), np.uint8), self.shape)[index].shape)

    def reshape(self, *shape: int) -> Phantom:
        return self._with(np.broadcast_to(np.zeros((), np.uint8), self.shape).reshape(*shape).shape)

    def max(self, axis: Any = None) -> Phantom:
        return self._reduced(axis)

    def min(self, axis: Any = None) -> Phantom:
        return self._reduced(axis)

    def sum(self, axis: int) -> Phantom:
        return self._reduced(axis)

    def mean(self, axis: int) -> Phantom:
        return self._reduced(axis) / 1.0

    def cumsum(self, axis: int) -> Phantom:
        return self._scanned(axis)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "accumulate":
            return self._scanned(kwargs.get("axis", 0))
        if method != "__call__" or kwargs:
            return NotImplemented
        if ufunc is np.matmul:
            return _product(self.counter, np.shape(inputs[0]), np.shape(inputs[1]))
        return self._elementwise(*inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        implementation = _FUNCTIONS.get(function)
        return NotImplemented if implementation is None else implementation(*args, **kwargs)

    def _with(self, shape: Shape) -> Phantom:
        return Phantom(tuple(int(n) for n in shape), self.counter)

    def _elementwise(self, *operands: Any) -> Phantom:
        result = self._with(np.broadcast_shapes(*(np.shape(x) for x in operands)))
        self.counter.charge(result.size)
        return result

    def _reduced(self, axis: Any) -> Phantom:
        axes = range(self.ndim) if axis is None else [axis % self.ndim] if isinstance(axis, int) else [a % self.ndim for a in axis]
        result = self._with(tuple(n for i, n in enumerate(self.shape) if i not in axes))
        self.counter.charge(self.size - result.size)
        return result

    def _scanned(self, axis: int) -> Phantom:
        self.counter.charge(self.size - self.size // max(1, self.shape[axis]))
        return self

    def _binary(self, other: Any) -> Phantom:
        return self._elementwise(self, other)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _binary
    __lt__ = __gt__ = __le__ = __ge__ = _binary

    def __neg__(self) -> Phantom:
        return self._elementwise(self)

    __abs__ = __neg__

    def __matmul__(self, other: Any) -> Phantom:
        return _product(self.counter, self.shape, np.shape(other))

    def __rmatmul__(self, other: Any) -> Phantom:
        return _product(self.counter, np.shape(other), self.shape)


def _product(counter: FlopCounter, left: Shape, right: Shape) -> Phantom:
    shape = np.matmul(np.broadcast_to(np.zeros((), np.uint8), left), np.broadcast_to(np.zeros((), np.uint8), right)).shape
    counter.charge(prod(shape) * (2 * left[-1] - 1))
    return Phantom(shape, counter)


def _joined(function: Callable[..., Any]) -> Callable[..., Phantom]:
    def join(parts: Any, axis: int = 0) -> Phantom:
        shape = function([np.broadcast_to(np.zeros((), np.uint8), np.shape(p)) for p in parts], axis=axis).shape
        return Phantom(shape, _first(parts).counter)

    return join


def _where(condition: Any, x: Any, y: Any) -> Phantom:
    return _first([condition, x, y])._elementwise(condition, x, y)


def _first(operands: Any) -> Phantom:
    return next(x for x in operands if isinstance(x, Phantom))


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **METHOD_FUNCTIONS,
    np.where: _where,
    np.sort: lambda x, axis=-1: x._scanned(axis),
    np.concatenate: _joined(np.concatenate),
    np.stack: _joined(np.stack),
    np.shape: lambda x: x.shape,
    np.moveaxis: lambda x, source, target: x._with(np.moveaxis(np.broadcast_to(np.zeros((), np.uint8), x.shape), source, target).shape),
}
