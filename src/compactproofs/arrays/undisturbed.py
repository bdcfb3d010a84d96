"""What costs compiling time and does not serve it is put aside meanwhile: looking for garbage, and events about every call of LLVM.

A compiler makes many objects that live as long as it works; to look through all of them for what can be freed, every few hundred new
ones, takes a tenth of the time. numba tells whoever listens of each of its calls of LLVM, fifty thousand in a first proof: nearly as much.
"""

from __future__ import annotations

import gc
from contextlib import nullcontext
from typing import Any

from llvmlite.binding import ffi

THRESHOLD = 500_000
"""So many new objects before garbage is looked for."""


class Undisturbed:
    """What was put aside; only for one compilation at a time."""

    def __init__(self) -> None:
        self._thresholds = gc.get_threshold()
        self._callbacks: list[Any] = []

    def begin(self) -> None:
        """Compiling begins."""
        self._thresholds = gc.get_threshold()
        if 0 < self._thresholds[0] < THRESHOLD:
            gc.set_threshold(THRESHOLD, *self._thresholds[1:])
        lock, callbacks = _lock_of_llvm()
        with lock:
            self._callbacks = callbacks[:]
            callbacks.clear()

    def end(self) -> None:
        """Nothing is being compiled any more: as it was before."""
        if gc.get_threshold()[0] == THRESHOLD:
            if gc.get_freeze_count() == 0:  # what is left counts as old, without a look at each object
                gc.freeze()
                gc.unfreeze()
            gc.set_threshold(*self._thresholds)
        lock, callbacks = _lock_of_llvm()
        with lock:
            callbacks[:0] = self._callbacks


def _lock_of_llvm() -> tuple[Any, list[Any]]:
    """The lock, and the list of what is called whenever it is taken; an empty list where this llvmlite has none."""
    outer = getattr(ffi.lib, "_lock", None)
    lock, callbacks = getattr(outer, "_lock", None), getattr(outer, "_cblist", None)
    if not hasattr(lock, "__enter__") or not isinstance(callbacks, list):
        return nullcontext(), []
    return lock, callbacks
