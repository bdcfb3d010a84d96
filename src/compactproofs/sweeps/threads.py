"""One thread per worker process. Processes provide the parallelism of a sweep; threads inside them would fight for the same cores.

`COMPACTPROOFS_THREADS` is the one limit that this package obeys (`available_cores` reads it). The other variables are for the libraries
that multiply matrices; these read them when they are loaded, so they must be in the environment before a worker starts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from compactproofs.cores import THREADS_VARIABLE

LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def limit_threads() -> None:
    """Hold this process to one thread for the rest of its life. (Libraries that are loaded already keep what they have.)"""
    for name in (THREADS_VARIABLE, *LIBRARIES, "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"


@contextmanager
def limited_children() -> Iterator[None]:
    """Processes started inside this block have one thread each, whatever they import first."""
    names = (THREADS_VARIABLE, *LIBRARIES)
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
