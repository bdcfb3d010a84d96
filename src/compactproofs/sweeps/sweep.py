"""Run a plan: skip what is there, submit what is missing, keep each model's rows as soon as they come."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compactproofs.errors import ModelError, SweepError
from compactproofs.model.weights import Weights
from compactproofs.strategies.base import AbstractStrategy
from compactproofs.sweeps import parts
from compactproofs.sweeps.executors import AbstractWorkers, DaskScheduler, LocalPool, require_ready
from compactproofs.sweeps.plan import Plan, plan_sweep
from compactproofs.sweeps.schema import FAILED, Row
from compactproofs.sweeps.work import compile_kernels, failed_model, run

Progress = Callable[[int, int], None]
"""Called with (models finished, models to do) of those that are not skipped."""


@dataclass(frozen=True)
class SweepSummary:
    """What became of the models: done + skipped + failed of them."""

    done: int
    """Models proven about in this run, every strategy without an error. (A proof may still be infeasible: that is an answer.)"""
    skipped: int
    """Models whose results were there already, or that have the same weights as another file."""
    failed: int
    """Models of this run with a row that says `failed`."""
    seconds: float
    """Wall time."""
    failed_rows: int
    """Rows in the results, of this run or an earlier one, that say `failed`."""
    io_seconds: float
    """Part of `seconds`: looking for what is there, reading models and writing parts. Workers go on meanwhile."""
    plan: str
    """Digest of the strategies, parameters and version: the column `plan`."""

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


def sweep(
    models: str | Path,
    out: str | Path,
    strategies: Sequence[str | AbstractStrategy] | None = None,
    *,
    upper: bool = False,
    seconds: float = 60.0,
    workers: int | None = None,
    scheduler: str | None = None,
    retry_failed: bool = False,
    progress: Progress | None = None,
) -> SweepSummary:
    """Prove about every model in a folder, on all cores or on a cluster. Interrupt it at any moment and run it again to go on.

    Args:
        models: folder of model files.
        out: folder for the results, one Parquet part per model; a part that is there is not computed again.
        strategies: names or objects; by default everything there is.
        upper: prove upper bounds too.
        seconds: limit for a single strategy, and for exact accuracy by brute force (beyond it, accuracy is sampled).
        workers: processes, each with one thread; by default one per core.
        scheduler: address of a dask scheduler to use instead.
        retry_failed: compute parts with failed rows again.
        progress: called with (models finished, models to do).
    """
    if workers is not None and scheduler is not None:
        raise SweepError("workers are processes of this machine and a scheduler has its own: give one or the other")
    plan = plan_sweep(Path(models), strategies, upper=upper, seconds=seconds)
    source = LocalPool(workers) if scheduler is None else DaskScheduler(scheduler)
    return run_plan(plan, Path(out), source, retry_failed=retry_failed, progress=progress)


def run_plan(
    plan: Plan, out: Path, workers: AbstractWorkers, *, retry_failed: bool = False, progress: Progress | None = None
) -> SweepSummary:
    """Carry out a plan. Only this process writes parts, so that no accident of a worker can lose or double a row."""
    started = time.perf_counter()
    parts.import_duckdb()
    parts.require_utf8(out)
    out.mkdir(parents=True, exist_ok=True)
    parts.remove_leftovers(out)
    missing, twins, failed = _missing(plan, out, retry_failed)
    looked = time.perf_counter()
    keeper = _Keeper(plan, out, len(missing), progress)
    _run_all(plan, missing, workers, keeper)
    for model in twins:
        with suppress(ModelError):  # the file was readable a moment ago; the next sweep records what became of it
            parts.rows_for(out, plan, model, plan.load(model))
    with parts.open_results(out, plan.work) as results:
        rows = results.execute("SELECT count(*) FROM results WHERE status = ?", [FAILED]).fetchall()[0][0]
    skipped = len(plan.models) - len(missing) - failed
    elapsed = time.perf_counter() - started
    io_seconds = looked - started + keeper.io_seconds
    return SweepSummary(keeper.done, skipped, failed + keeper.failed, elapsed, rows, io_seconds, plan.work.digest)


def _missing(plan: Plan, out: Path, retry_failed: bool) -> tuple[list[Path], list[Path], int]:
    """Models without results; more files of the same content; and how many are not models (recorded here). What is stale is put aside."""
    missing: list[Path] = []
    twins: list[Path] = []
    present: set[Path] = set()
    seen: set[str] = set()
    unreadable = 0
    for model in plan.models:
        try:
            weights = plan.load(model)
        except Exception as error:
            present.add(parts.part_of_model(out, plan, model, None))
            parts.write_part(parts.part_of_model(out, plan, model, None), failed_model(plan, model, error))
            unreadable += 1
            continue
        present.add(parts.part_of_model(out, plan, model, weights))
        rows = parts.rows_for(out, plan, model, weights)
        again = retry_failed and any(row["status"] == FAILED for row in rows or ())
        if again or rows is None:
            (twins if parts.content_of(weights) in seen else missing).append(model)
            seen.add(parts.content_of(weights))
    parts.put_aside(out, plan, present)
    return missing, twins, unreadable


def _run_all(plan: Plan, missing: Iterable[Path], workers: AbstractWorkers, keeper: _Keeper) -> None:
    """Run every model. When a worker dies and takes its pool along, those in flight are tried again one by one in new pools,
    so that only the one that kills a worker when alone is recorded as failed."""
    waiting = deque(missing)
    suspects: deque[Path] = deque()
    compiled = not workers.local
    while waiting or suspects:
        alone = bool(suspects)
        with workers.open() as executor:
            require_ready(executor)
            if not compiled:
                compiled = True
                if isinstance(executor.submit(compile_kernels, plan.work).exception(), BrokenExecutor):
                    continue
            lost = _run_some(plan, suspects if alone else waiting, executor, 1 if alone else workers.in_flight, keeper)
        if alone and lost:
            error = SweepError("the worker process died twice with this model: out of memory, killed, or a crash in compiled code")
            keeper.keep_failure(lost[0], error)
        else:
            suspects.extend(lost)


def _run_some(plan: Plan, models: deque[Path], executor: Executor, in_flight: int, keeper: _Keeper) -> list[Path]:
    """Run models, a bounded number at a time, until there are no more or the pool breaks; returns those lost with it."""
    pending: dict[Future[list[Row]], Path] = {}
    lost: list[Path] = []
    while (models and not lost) or pending:
        while models and not lost and len(pending) < in_flight:
            model = models.popleft()
            try:
                pending[executor.submit(run, plan.work, plan.load(model))] = model
            except BrokenExecutor:
                lost.append(model)
            except Exception as error:  # the file was readable a moment ago
                keeper.keep_failure(model, error)
        for future in wait(pending, return_when=FIRST_COMPLETED).done:
            model = pending.pop(future)
            try:
                rows = future.result()
            except BrokenExecutor:
                lost.append(model)
            except CancelledError:
                raise SweepError("the scheduler went away; what was finished is kept, run the sweep again to go on") from None
            except SweepError:
                raise
            except Exception as error:
                keeper.keep_failure(model, error)
            else:
                keeper.keep(model, rows)
    return lost


@dataclass
class _Keeper:
    """Writes parts and counts them."""

    plan: Plan
    out: Path
    total: int
    progress: Progress | None
    done: int = field(default=0, init=False)
    failed: int = field(default=0, init=False)
    io_seconds: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        if self.progress is not None:
            self.progress(0, self.total)

    def keep(self, model: Path, rows: list[Row]) -> None:
        """Keep the rows of a model under the name of its file; if the file has changed since it was read, under nobody's."""
        try:
            weights = self.plan.load(model)
        except Exception as error:
            self.keep_failure(model, error)
            return
        if weights.sha256 != rows[0]["weights_sha256"]:
            self.keep_failure(model, SweepError("the file was changed while it was proven about; run the sweep again"))
            return
        self._write(parts.part_of_model(self.out, self.plan, model, weights), parts.renamed(rows, self.plan, model))

    def keep_failure(self, model: Path, error: BaseException) -> None:
        try:
            weights: Weights | None = self.plan.load(model)
        except Exception:
            weights = None
        self._write(parts.part_of_model(self.out, self.plan, model, weights), failed_model(self.plan, model, error, weights))

    def _write(self, path: Path, rows: list[Row]) -> None:
        started = time.perf_counter()
        parts.write_part(path, rows)
        self.io_seconds += time.perf_counter() - started
        if any(row["status"] == FAILED for row in rows):
            self.failed += 1
        else:
            self.done += 1
        if self.progress is not None:
            self.progress(self.done + self.failed, self.total)
