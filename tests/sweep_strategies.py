"""Strategies that misbehave on purpose. Workers of a sweep import them from here."""

import ctypes
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from compactproofs.cores import available_cores
from compactproofs.strategies.base import AbstractStrategy, Bound, ProofLength


class Probe(AbstractStrategy):
    family: ClassVar[str] = "test"
    complexity = "none"
    source = "tests"

    @property
    def parameters(self):
        return {name: str(value) for name, value in vars(self).items()}

    def length(self, weights, task):
        return ProofLength({}, 0, 0)


@dataclass(frozen=True)
class Raises(Probe):
    name: ClassVar[str] = "raises"

    def bound(self, request):
        raise ZeroDivisionError("on purpose")


@dataclass(frozen=True)
class Environment(Probe):
    """Reports the threads it may use."""

    name: ClassVar[str] = "environment"

    def bound(self, request):
        return Bound(available_cores(), None, f"OPENBLAS_NUM_THREADS={os.environ.get('OPENBLAS_NUM_THREADS')} BLAS={_blas_threads()}")


@dataclass(frozen=True)
class Slow(Probe):
    """Takes a while, and tells which process it ran in."""

    seconds: float
    name: ClassVar[str] = "slow"

    def bound(self, request):
        time.sleep(self.seconds)
        return Bound(0, None, str(os.getpid()))


@dataclass(frozen=True)
class Kills(Probe):
    """Kills its process if the model has this length: always, or (with a file to remember it) once."""

    n_ctx: int
    once: str = ""
    name: ClassVar[str] = "kills"

    def bound(self, request):
        if request.weights.n_ctx == self.n_ctx and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Bound(0, None, "none")


def _blas_threads():
    """How many threads numpy's OpenBLAS has been given, asked of the library itself."""
    libraries = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "openblas" in line}
    for library in libraries:
        for name in ("scipy_openblas_get_num_threads64_", "openblas_get_num_threads"):
            function = getattr(ctypes.CDLL(library), name, None)
            if function is not None:
                return function()
    return "unknown"
