"""What somebody may want to be told about while a function of the package runs. Nobody is told anything unless they ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_waiting: list[Callable[[], None]] = []


@contextmanager
def told_of_compiling(callback: Callable[[], None]) -> Iterator[None]:
    """Inside, the callback is called once, when this process begins to compile something: what is cached is not compiled."""
    _waiting.append(callback)
    try:
        yield
    finally:
        if callback in _waiting:
            _waiting.remove(callback)


def compiling_begins() -> None:
    """Tell everybody who asked."""
    while _waiting:
        _waiting.pop()()
