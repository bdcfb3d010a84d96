"""Compiled functions whose cache on disk knows all the code it was made from.

numba compiles callees into their callers, but its cache looks only at the caller's own file: after a change to a callee, an old machine
code of the caller would still be used, and a repaired proof would go on being wrong. Here the cache's stamp is a hash of every file of
the package that holds compiled functions. Where this numba has no such stamp, nothing is cached.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from numba import njit
from numba.core import event, types

from compactproofs.arrays import linking
from compactproofs.arrays.undisturbed import Undisturbed
from compactproofs.notices import compiling_begins

FILES = (
    "arrays/compiling.py",
    "arrays/linking.py",
    "bounds/pairs.py",
    "counting/alike.py",
    "counting/block_kernels.py",
    "counting/classes.py",
    "counting/count_both.py",
    "counting/count_up.py",
    "counting/gap_kernels.py",
    "counting/grid.py",
    "counting/kernels.py",
    "counting/levels.py",
    "counting/walks.py",
    "interpretation/ablation_kernel.py",
    "search/compact.py",
    "search/covers.py",
    "search/drawing.py",
    "search/grids.py",
    "search/listing.py",
    "search/looking.py",
    "search/outputs.py",
    "search/pairs.py",
    "search/pools.py",
    "search/spoiling.py",
    "search/together.py",
    "search/writing.py",
    "strategies/subcubic/published_search.py",
)
"""Files of the package with compiled functions, and this one."""

CONSTANTS = ("arrays/elementary.py", "arrays/error_function.py", "arrays/exponential.py", "form/block_evaluation.py")
"""Files with numbers that are compiled into such functions."""


@cache
def fingerprint() -> str:
    """A hash of all compiled functions' sources, and of the constants in them."""
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for name in (*FILES, *CONSTANTS):
        digest.update((package / name).read_bytes())
    return digest.hexdigest()


class _CompileClock(event.Listener):
    """Wall time during which any thread of this process was compiling."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._undisturbed = Undisturbed()
        self._active = 0
        self._since = 0.0
        self._seconds = 0.0

    def on_start(self, event: Any) -> None:
        compiling_begins()
        with self._lock:
            if self._active == 0:
                self._since = time.perf_counter()
                self._undisturbed.begin()
            self._active += 1

    def on_end(self, event: Any) -> None:
        with self._lock:
            self._active -= 1
            if self._active == 0:
                self._seconds += time.perf_counter() - self._since
                self._undisturbed.end()

    def read(self) -> float:
        with self._lock:
            return self._seconds + (time.perf_counter() - self._since if self._active else 0.0)


_clock = _CompileClock()
event.register("numba:compile", _clock)  # type: ignore[no-untyped-call]


def compile_seconds() -> float:
    """How long this process has been compiling so far: time that a budget does not count."""
    return _clock.read()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first call, without the interpreter lock, cached on disk for as long as no kernel changes.

    What a kernel calls is compiled without the code that Python would need to call it, most of which is about unpacking arguments, and
    which would be compiled again into every caller; and once for all constants that it is called with.
    """
    compiled = _compiled(function, False)

    @cache
    def inner() -> Any:
        return _compiled(_named(function, f"{function.__name__}_inner"), True)

    def template(args: Any, kws: Any) -> Any:
        return inner().get_call_template(tuple(map(_plain, args)), {name: _plain(each) for name, each in kws.items()})

    compiled.get_call_template, compiled.get_overload = template, lambda signature: inner().get_overload(signature)
    return compiled


def _plain(numba_type: Any) -> Any:
    """The type of a constant, without the constant."""
    return types.unliteral(numba_type)  # type: ignore[no-untyped-call]


def _compiled(function: Callable[..., Any], part: bool) -> Any:
    options: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": part}
    if linking.AVAILABLE:
        options["pipeline_class"] = linking.Part if part else linking.Whole
    compiled: Any = njit(cache=True, **options)(function)
    if part and linking.AVAILABLE:
        compiled._cache = linking.PartCache(function)  # type: ignore[no-untyped-call]
    index = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if index is None or not hasattr(index, "_source_stamp"):
        return njit(**options)(function)
    index._source_stamp = fingerprint()
    return compiled


def _named(function: Any, name: str) -> Any:
    """The same function under another name, which has a cache of its own."""
    renamed = FunctionType(function.__code__, function.__globals__, name, function.__defaults__, function.__closure__)
    renamed.__qualname__, renamed.__module__ = name, function.__module__
    return renamed
