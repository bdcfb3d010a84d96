"""Work that several strategies need of one model, done once. The caller decides how long it lives."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

Value = TypeVar("Value")


class Shared:
    """A memory for intermediate results of one model; pass the same one to several proofs of the same weights."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}
        self._lock = Lock()

    def known(self, key: Hashable) -> Any:
        """The value under this key if it has been computed, else None."""
        with self._lock:
            return self._values.get(key)

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """The value under this key, computed on first use. (Two threads may compute it twice; the results are equal.)"""
        with self._lock:
            if key in self._values:
                found: Value = self._values[key]
                return found
        value = compute()
        with self._lock:
            self._values[key] = value
        return value
