"""How long a proof may take. Compiling does not count, and anybody may ask it to stop."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TypeVar

from compactproofs.arrays.compiling import compile_seconds
from compactproofs.arrays.environment import require_ieee754
from compactproofs.cores import available_cores

_POLL = 0.05
"""Seconds between two looks at whether the time is up."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Budget:
    """Time from now on; used up when `seconds` have passed (compiling aside), or when `stop` is set."""

    def __init__(self, seconds: float | None = None, stop: threading.Event | None = None) -> None:
        self._stop = threading.Event() if stop is None else stop
        self._seconds = math.inf if seconds is None else seconds
        self._started, self._compiled = time.perf_counter(), compile_seconds()

    @property
    def event(self) -> threading.Event:
        """Set by whoever wants it to end."""
        return self._stop

    @property
    def compiling(self) -> float:
        """Seconds of compiling since the budget was made."""
        return compile_seconds() - self._compiled

    @property
    def used(self) -> float:
        """Seconds since the budget was made, compiling aside."""
        return max(0.0, time.perf_counter() - self._started - self.compiling)

    @property
    def left(self) -> float:
        """Seconds that are left, 0 if somebody asked to stop."""
        return 0.0 if self._stop.is_set() else max(0.0, self._seconds - self.used)

    @property
    def over(self) -> bool:
        return self.left <= 0.0

    @property
    def stopped(self) -> bool:
        """Whether somebody asked to stop."""
        return self._stop.is_set()


def in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], budget: Budget | None = None, threads: int | None = None
) -> Iterator[tuple[Item, Result]]:
    """Items and their results, in order, from as many threads as there are cores (kernels release the interpreter lock).

    Only a few items are on their way at a time. Once the budget is used up the iterator ends early; it waits only for what is running, so
    that nothing goes on behind the caller's back. Items should therefore take a tenth of a second or so.
    """

    def checked(item: Item) -> Result:
        require_ieee754()  # a mode of the processor that each thread has for itself
        return function(item)

    waiting = iter(items)
    threads = threads or available_cores()
    pool = ThreadPoolExecutor(threads)
    try:
        pending: list[tuple[Item, Future[Result]]] = []
        while budget is None or not budget.over:
            pending += [(item, pool.submit(checked, item)) for item in islice(waiting, 2 * threads - len(pending))]
            if not pending:
                return
            item, future = pending.pop(0)
            while not wait([future], timeout=_POLL).done:
                if budget is not None and budget.over:
                    return
            yield item, future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
