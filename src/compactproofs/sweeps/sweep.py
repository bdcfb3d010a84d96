"""Run a plan: skip what is there, submit what is missing, keep each model's rows as soon as they come."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compactproofs.errors import SweepError
from compactproofs.model.config import Told
from compactproofs.model.files import whole
from compactproofs.model.kinds import Model
from compactproofs.results.schema import FAILED, Row
from compactproofs.results.store import (
    SHOWN,
    UNREADABLE,
    content_of,
    open_results,
    remove_leftovers,
    require_results,
    write_part,
    writing_to,
)
from compactproofs.strategies.base import AbstractStrategy
from compactproofs.sweeps.executors import AbstractWorkers, require_ready, workers_of
from compactproofs.sweeps.plan import Plan, plan_sweep
from compactproofs.sweeps.survey import Missing, adopt_twins, survey
from compactproofs.sweeps.work import compile_kernels, failed_model, run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

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
    """Digest of the options and the version: the column `plan`."""

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
    n_heads: int | None = None,
    normalization: str | None = None,
    n_ctx: int | None = None,
    progress: Progress | None = None,
) -> SweepSummary:
    """Prove about every model in a folder, on all cores or on a cluster. Interrupt it at any moment and run it again to go on.

    Args:
        models: folder of model files.
        out: folder for the results, Parquet parts of one store; what is there is not computed again.
        strategies: names or objects; by default everything there is.
        upper: prove upper bounds too.
        seconds: limit for a single strategy, and for exact accuracy by brute force (beyond it, accuracy is sampled).
        workers: processes, each with one thread; by default one per core.
        scheduler: address of a dask scheduler to use instead.
        retry_failed: compute failed rows again.
        n_heads: as for `load`, of all files that cannot tell.
        normalization: likewise.
        n_ctx: as for `load`, of all files.
        progress: called with (models finished, models to do).
    """
    source = workers_of(workers, scheduler)
    plan = plan_sweep(Path(models), strategies, Told(n_heads, normalization, n_ctx), upper=upper, seconds=seconds)
    return run_plan(plan, Path(out), source, retry_failed=retry_failed, progress=progress)


def run_plan(
    plan: Plan, out: Path, workers: AbstractWorkers, *, retry_failed: bool = False, progress: Progress | None = None
) -> SweepSummary:
    """Carry out a plan. Only this process writes parts, so that no accident of a worker can lose or double a row."""
    started = time.perf_counter()
    require_results(out)
    out.mkdir(parents=True, exist_ok=True)
    remove_leftovers(out)
    found = survey(plan, out, retry_failed=retry_failed)
    looked = time.perf_counter()
    keeper = _Keeper(plan, out, len(found.missing), progress)
    _run_all(plan, found.missing, workers, keeper)
    adopt_twins(plan, out, found.twins)
    with results_of(plan, out) as results:
        rows = results.execute("SELECT count(*) FROM sweep WHERE status = ?", [FAILED]).fetchall()[0][0]
    skipped = len(plan.models) - len(found.missing) - found.unreadable
    elapsed = time.perf_counter() - started
    io_seconds = looked - started + keeper.io_seconds
    return SweepSummary(keeper.done, skipped, found.unreadable + keeper.failed, elapsed, rows, io_seconds, plan.work.plan)


def results_of(plan: Plan, out: Path) -> DuckDBPyConnection:
    """A connection to the results with one more table, `sweep`: the rows of this plan, of earlier runs too."""
    connection = open_results(out)
    connection.execute("CREATE TEMP TABLE wanted (label VARCHAR, variant VARCHAR)")
    names = [(s.label, s.variant) for s in plan.work.strategies]
    connection.executemany("INSERT INTO wanted VALUES (?, ?)", names or [(None, None)])
    connection.execute(
        f"""CREATE TEMP TABLE sweep AS SELECT {", ".join(SHOWN)} FROM part AS p
            WHERE folder = ? AND plan = ? AND kind = 'proof' AND (label IS NULL OR EXISTS
                (SELECT 1 FROM wanted AS w WHERE w.label = p.label AND w.variant IS NOT DISTINCT FROM p.variant))
            QUALIFY row_number() OVER (PARTITION BY model, place, label, variant ORDER BY written DESC, filename) = 1""",  # noqa: S608
        [plan.place(plan.folder).folder, plan.work.plan],
    )
    return connection


def export_csv(plan: Plan, out: Path, path: Path) -> int:
    """Write the results of a plan as one CSV file, sorted by model and strategy; returns the number of rows."""
    with results_of(plan, out) as connection, whole(path) as temporary, writing_to(path.parent):
        rows = connection.sql("SELECT * FROM sweep ORDER BY model, label NULLS FIRST, variant NULLS FIRST")
        rows.write_csv(str(temporary), header=True)
        count: int = connection.sql("SELECT count(*) FROM sweep").fetchall()[0][0]
    return count


def _run_all(plan: Plan, missing: Iterable[Missing], workers: AbstractWorkers, keeper: _Keeper) -> None:
    """Run every model. When a worker dies and takes its pool along, those in flight are tried again one by one in new pools,
    so that only the one that kills a worker when alone is recorded as failed."""
    waiting = deque(missing)
    suspects: deque[Missing] = deque()
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


def _run_some(plan: Plan, missing: deque[Missing], executor: Executor, in_flight: int, keeper: _Keeper) -> list[Missing]:
    """Run models, a bounded number at a time, until there are no more or the pool breaks; returns those lost with it."""
    pending: dict[Future[list[Row]], Missing] = {}
    lost: list[Missing] = []
    while (missing and not lost) or pending:
        while missing and not lost and len(pending) < in_flight:
            item = missing.popleft()
            try:
                pending[executor.submit(run, item.work, plan.load(item.model), item.measured)] = item
            except BrokenExecutor:
                lost.append(item)
            except Exception as error:  # the file was readable a moment ago
                keeper.keep_failure(item, error)
        for future in wait(pending, return_when=FIRST_COMPLETED).done:
            item = pending.pop(future)
            try:
                rows = future.result()
            except BrokenExecutor:
                lost.append(item)
            except CancelledError:
                raise SweepError("the scheduler went away; what was finished is kept, run the sweep again to go on") from None
            except SweepError:
                raise
            except Exception as error:
                keeper.keep_failure(item, error)
            else:
                keeper.keep(item, rows)
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

    def keep(self, item: Missing, rows: list[Row]) -> None:
        """Keep the rows of a model under the name of its file; if the file has changed since it was read, under nobody's."""
        try:
            weights = self.plan.load(item.model)
        except Exception as error:
            self.keep_failure(item, error)
            return
        if weights.sha256 != rows[0]["weights_sha256"]:
            self.keep_failure(item, SweepError("the file was changed while it was proven about; run the sweep again"))
            return
        self._write(item, weights, rows)

    def keep_failure(self, item: Missing, error: BaseException) -> None:
        try:
            weights: Model | None = self.plan.load(item.model)
        except Exception:
            weights = None
        self._write(item, weights, failed_model(item.work, error, weights))

    def _write(self, item: Missing, weights: Model | None, rows: list[Row]) -> None:
        started = time.perf_counter()
        place = self.plan.place(item.model)
        path = self.out / place.part(UNREADABLE if weights is None else content_of(weights), item.work.digest)
        write_part(path, place.named(rows))
        for part in item.obsolete:
            if part != path:
                part.unlink(missing_ok=True)
        self.io_seconds += time.perf_counter() - started
        if any(row["status"] == FAILED for row in rows):
            self.failed += 1
        else:
            self.done += 1
        if self.progress is not None:
            self.progress(self.done + self.failed, self.total)
