"""How many threads this process may run: the one place that decides it."""

import os
from contextlib import AbstractContextManager

from threadpoolctl import threadpool_limits

from compactproofs.errors import CompactProofsError

THREADS_VARIABLE = "COMPACTPROOFS_THREADS"
"""Environment variable with the largest number of threads. A sweep sets it to 1 in its workers."""


def available_cores() -> int:
    """Cores this process may use, and no more than `COMPACTPROOFS_THREADS` says."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    limit = os.environ.get(THREADS_VARIABLE)
    if limit is None:
        return cores
    if not limit.isascii() or not limit.isdigit() or int(limit) < 1:
        raise CompactProofsError(f"{THREADS_VARIABLE}={limit!r}: expected a positive integer")
    return min(cores, int(limit))


def one_blas_thread() -> AbstractContextManager[object]:
    """Within this, matrix products take one thread each: the threads are ours."""
    limits: AbstractContextManager[object] = threadpool_limits(limits=1, user_api="blas")
    return limits
