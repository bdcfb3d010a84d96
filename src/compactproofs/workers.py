"""What every worker process does first, of sweeps and of training."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading


def start_worker() -> None:
    """Leave Ctrl-C, which reaches the whole group, to the parent; and end with it, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """A worker whose parent was killed would work, or wait for work, for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
