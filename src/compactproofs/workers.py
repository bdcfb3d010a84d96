"""Worker processes, of sweeps and of training: how they start, and how they end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from compactproofs.errors import CompactProofsError

LOST = (
    "a worker process ended before its work was done. In a script of your own, put what starts workers under if __name__ == '__main__': "
    "every worker imports the script first, and would start workers itself. Otherwise it was killed, perhaps for want of memory: use fewer "
    "workers"
)


@contextmanager
def pool_of(workers: int, initializer: Callable[..., None], *initargs: object) -> Iterator[ProcessPoolExecutor]:
    """A pool of spawned processes: nothing of this process's threads and locks is copied into them.

    Leaving the context by an exception ends what is running: nobody waits for what is half done.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.exit(1)  # a worker that imports a script; the parent says what is wrong
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer, initargs)
    try:
        yield pool
    except BaseException as error:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        if isinstance(error, BrokenProcessPool):
            raise CompactProofsError(LOST) from None
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def start_worker() -> None:
    """What a worker does first. Leave Ctrl-C, which reaches the whole group, to the parent; and end with it, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """A worker whose parent was killed would work, or wait for work, for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
