"""Processes that help with a long search: Python code in threads would wait for the interpreter's lock.

A helper is this package in another process, with an object of its own made from the same arguments. It does what it is told, method by
method, and sends back the result. It is started only if work goes on for a while, ends with this process whatever happens, and if it fails
the work is done here. Nothing that a helper finds is trusted more than what is found here: `verify` decides what a ledger proves.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any

from compactproofs.cores import THREADS_VARIABLE, available_cores
from compactproofs.errors import CompactProofsError

_PATIENCE = 1.0
"""Seconds of work before helpers are started."""
_LOOK = 0.02
"""Seconds between two looks whether a helper is free."""
_SERVE = "import sys; from compactproofs.search.crew import serve; serve(int(sys.argv[1]))"


class _Helper:
    """One process and the pipe to it."""

    def __init__(self, make: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.pipe, other = Pipe()
        environment = {**os.environ, THREADS_VARIABLE: "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        self.process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", _SERVE, str(other.fileno())],
            pass_fds=[other.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for this process, which ends its helpers
        )
        other.close()
        self.ready = False
        try:
            self.pipe.send((make, arguments))
        except BaseException:
            self.end()
            raise

    def is_ready(self) -> bool:
        """Whether it has said that it can be told what to do."""
        if not self.ready and self.pipe.poll():
            self.ready = self.pipe.recv() is True
        return self.ready

    def call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        self.pipe.send((name, arguments))
        return self.pipe.recv()

    def end(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.wait()


class Crew:
    """This process and its helpers. `make(*arguments)` makes the object whose methods are called; `own` is the one that is here."""

    def __init__(self, own: object, make: Callable[..., Any], *arguments: Any) -> None:
        self._own, self._make, self._arguments = own, make, arguments
        self._idle: list[_Helper] = []
        self._hired: list[_Helper] | None = None
        self._started, self._lock = time.perf_counter(), Lock()
        self._here = Lock()

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            for helper in self._hired or ():
                helper.end()
            self._hired, self._idle = [], []

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a method by its name, with arguments that can be sent: in a helper if one is free, else here, where one call follows the
        other: two at once would wait for the interpreter's lock and take longer together."""
        while True:
            helper = self._free()
            if helper is not None:
                try:
                    done, result = helper.call(name, arguments)
                except (OSError, EOFError, ValueError):  # it has ended
                    continue
                with self._lock:
                    self._idle.append(helper)
                if not done:
                    raise result
                return result
            if self._here.acquire(timeout=_LOOK):
                try:
                    return getattr(self._own, name)(*arguments)
                finally:
                    self._here.release()

    def _free(self) -> _Helper | None:
        with self._lock, suppress(OSError, EOFError):
            if self._hired is None and time.perf_counter() - self._started > _PATIENCE:
                self._hired = self._hire()
                self._idle = list(self._hired)
            for helper in self._idle:
                if helper.is_ready():
                    self._idle.remove(helper)
                    return helper
        return None

    def _hire(self) -> list[_Helper]:
        if os.name != "posix" or not sys.executable or getattr(sys, "frozen", False):
            return []
        found: list[_Helper] = []
        with suppress(Exception):  # no process can be had, or somebody's task cannot be sent to one
            for _ in range(available_cores() - 1):
                found.append(_Helper(self._make, self._arguments))
        return found


def serve(descriptor: int) -> None:
    """What a helper does until the pipe is closed."""
    from compactproofs.arrays.environment import require_ieee754
    from compactproofs.cores import one_blas_thread
    from compactproofs.heap import kept_memory

    require_ieee754()
    with Connection(descriptor) as pipe, suppress(EOFError, OSError), one_blas_thread(), kept_memory():
        make, arguments = pipe.recv()
        own = make(*arguments)
        pipe.send(True)
        while True:
            name, arguments = pipe.recv()
            try:
                answer: tuple[bool, Any] = True, getattr(own, name)(*arguments)
            except CompactProofsError as error:
                answer = False, error
            pipe.send(answer)
