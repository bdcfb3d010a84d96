"""Keeping memory that was used: arrays of a megabyte would otherwise be given back, and had again page by page, at every operation."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""glibc's numbers for `mallopt`: how much may be free at the end of the heap, and what is not on the heap at all."""
_USUAL, _MUCH = 128 << 10, 1 << 30


@contextmanager
def kept_memory() -> Iterator[None]:
    """Within this, memory is kept for the next array. Elsewhere than with glibc nothing changes."""
    mallopt = _mallopt()
    if mallopt is None:
        yield
        return
    for what in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
        mallopt(what, _MUCH)
    try:
        yield
    finally:
        for what in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            mallopt(what, _USUAL)


def _mallopt() -> ctypes._FuncPointer | None:
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library.mallopt if hasattr(library, "gnu_get_libc_version") and hasattr(library, "mallopt") else None
