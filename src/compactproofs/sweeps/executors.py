"""Who does the work: processes of this machine, or the workers of a dask scheduler. A sweep sees an `Executor` either way."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compactproofs.bounds_version import code_version
from compactproofs.cores import available_cores
from compactproofs.errors import MissingExtraError, SweepError
from compactproofs.sweeps.threads import limit_threads, limited_children
from compactproofs.version import __version__
from compactproofs.workers import pool_of, start_worker

if TYPE_CHECKING:
    from distributed import Client

_ADDRESS = re.compile(r"((tcp|tls|ws|wss)://)?(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):([0-9]{1,5})")
"""An address that dask knows, with or without its protocol."""


class AbstractWorkers(ABC):
    """Where executors come from."""

    local: bool
    """Whether workers share this machine's cache of compiled kernels."""

    @property
    @abstractmethod
    def in_flight(self) -> int:
        """How many models may be with the executor at a time: enough to keep it busy."""

    @abstractmethod
    def open(self) -> AbstractContextManager[Executor]:
        """A new executor. Leaving the context by an exception abandons what is running."""


@dataclass(frozen=True)
class LocalPool(AbstractWorkers):
    """Processes of this machine, each with one thread."""

    workers: int | None = None
    """How many; by default one per core."""

    local = True

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise SweepError(f"workers={self.workers} must be at least 1")

    @property
    def in_flight(self) -> int:
        return 2 * (self.workers or available_cores())

    @contextmanager
    def open(self) -> Iterator[Executor]:
        """A pool of processes."""
        with limited_children(), pool_of(self.workers or available_cores(), _start_worker) as pool:
            yield pool


@dataclass(frozen=True)
class DaskScheduler(AbstractWorkers):
    """The workers of a dask scheduler, on any number of machines. They need this package, but no files in common."""

    address: str
    """Such as `tcp://10.0.0.1:8786`."""
    patience: float = 60.0
    """Seconds to wait for the scheduler, and for its first worker."""

    local = False

    def __post_init__(self) -> None:
        found = _ADDRESS.fullmatch(self.address)
        if found is None or not 0 < int(found[4]) < 2**16:
            raise SweepError(f"the scheduler {self.address!r} is not an address; expected one such as tcp://HOST:8786")

    @property
    def in_flight(self) -> int:
        return 1024

    @contextmanager
    def open(self) -> Iterator[Executor]:
        """An executor of a new client. A task whose worker dies is given to another one by the scheduler."""
        try:
            client = _connected(self.address, timeout=self.patience, set_as_default=False)
        except MissingExtraError:
            raise
        except Exception as error:  # dask has its own for each way in which a server can be no scheduler
            raise SweepError(f"no dask scheduler answers at {self.address} ({error})") from None
        with client:
            try:
                client.wait_for_workers(1, timeout=self.patience)
            except TimeoutError:
                message = f"the scheduler at {self.address} has no workers; start some with 'dask worker {self.address} --nthreads 1'"
                raise SweepError(message) from None
            executor = client.get_executor(pure=False)
            try:
                yield executor
            finally:
                executor.shutdown(wait=False)


def _connected(address: str, **options: Any) -> Client:
    """A client of the scheduler there. One that fails to connect is closed at once: dask would try for minutes when the process ends."""
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("--scheduler needs dask", "sweep") from None

    class ClosedIfNotConnected(Client):
        def __init__(self) -> None:
            try:
                super().__init__(address, **options)  # type: ignore[no-untyped-call]
            except BaseException:
                with suppress(Exception):
                    self.close(timeout=1)  # type: ignore[no-untyped-call]
                raise

    return ClosedIfNotConnected()


def workers_of(workers: int | None, scheduler: str | None) -> AbstractWorkers:
    """Processes of this machine, or the workers of a scheduler."""
    if workers is not None and scheduler is not None:
        raise SweepError("--workers are processes of this machine and --scheduler has its own: give one or the other")
    return LocalPool(workers) if scheduler is None else DaskScheduler(scheduler)


def require_ready(executor: Executor) -> None:
    """Raise unless a worker starts and has this version of the package: the fault would otherwise be laid on the models."""
    try:
        version = executor.submit(_versions).result()
    except Exception as error:
        raise SweepError(
            f"no worker can run compactproofs ({type(error).__name__}: {error}). In a script, start the sweep under "
            "if __name__ == '__main__':; for dask, install the package where the workers run"
        ) from None
    if version != _versions():
        raise SweepError(f"a worker has compactproofs {version}, this is {_versions()}; install the same version")


def _versions() -> str:
    return f"{__version__} (bounds {code_version()})"


def _start_worker() -> None:
    """Runs first in every process of the local pool."""
    limit_threads()
    start_worker()
