"""Strategies that misbehave on purpose. Workers of a sweep import them from here."""

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
        return Bound(available_cores(), None, f"OPENBLAS_NUM_THREADS={os.environ.get('OPENBLAS_NUM_THREADS')} threads={_blas_threads()}")


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
    """Threads of this process after a large matrix product: a BLAS with a pool of its own would show."""
    import numpy as np

    before = len(list(Path("/proc/self/task").iterdir()))
    matrix = np.ones((600, 600))
    for _ in range(3):
        matrix @ matrix
    return len(list(Path("/proc/self/task").iterdir())) - before
