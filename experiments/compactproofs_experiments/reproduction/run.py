"""Train, prove, measure: everything a reproduction computes. Each step skips what is there, so an interrupted run goes on."""

from __future__ import annotations

import json
import platform
import resource
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from compactproofs.cores import available_cores
from compactproofs.results.schema import RUN, STATISTICS, row
from compactproofs.results.store import write_part
from compactproofs.sweeps.executors import LocalPool
from compactproofs.sweeps.plan import Plan, Work
from compactproofs.sweeps.sweep import Progress, run_plan
from compactproofs.text import as_utf8
from compactproofs.training.runner import train_seeds
from compactproofs.version import __version__
from compactproofs_experiments.reproduction.configurations import SEEDS, Configuration, reproduced_strategies

SECONDS = 5.0
"""Limit for a single proof: quick enough for brute force with four tokens, not with five."""

ABLATION_SAMPLES = 50_000
"""Sequences per model on which ablations are measured."""

Stage = Callable[[str, str], AbstractContextManager[Progress | None]]
"""Called with a title and a unit when a stage begins; yields what shows its progress."""


@dataclass(frozen=True)
class Timings:
    """What one run took for a configuration."""

    workers: int = 0
    models: int = 0
    """Models proven about within these seconds."""
    training_models: int = 0
    training_seconds: float = 0.0
    training_cpu_seconds: float = 0.0
    sweep_seconds: float = 0.0
    """Proving and measuring."""
    sweep_cpu_seconds: float = 0.0
    io_seconds: float = 0.0
    """Part of the sweep: reading models and writing results."""
    peak_memory_bytes: int = 0
    """Of the main process and all workers together, at most."""


@dataclass(frozen=True)
class Outcome:
    """What there is of a configuration."""

    models: int
    """Models with results."""
    failed_rows: int
    """Rows of them that say `failed`."""
    timings: Timings

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def silent(_title: str, _unit: str) -> AbstractContextManager[Progress | None]:
    """A stage that shows nothing."""
    return nullcontext()


def run_configuration(
    configuration: Configuration, out: Path, *, seeds: int = SEEDS, workers: int | None = None, stage: Stage = silent
) -> Outcome:
    """Train the models `seed 0 .. seeds - 1`, prove about them with every strategy, and measure their statistics."""
    name, models, results = configuration.name, out / "models" / configuration.name, out / "results"
    recipe = configuration.recipe
    paths = tuple(models / f"{recipe.name}-seed{seed}.safetensors" for seed in range(seeds))
    used = workers or available_cores()
    with stage(f"{name}: training", "steps") as progress, _clock() as training:
        trained = sum(not m.resumed for m in train_seeds(recipe, range(seeds), out=models, workers=workers, progress=progress))
    work = Work(tuple(reproduced_strategies()), upper="own", seconds=SECONDS, documents=(STATISTICS,), ablation_samples=ABLATION_SAMPLES)
    with stage(f"{name}: proving", "models") as progress, _clock() as sweeping:
        summary = run_plan(Plan(models, paths, work), results, LocalPool(workers), progress=progress)
    proven = summary.done + summary.failed
    timings = Timings(
        workers=used,
        models=proven,
        training_models=trained,
        training_seconds=training.seconds if trained else 0.0,
        training_cpu_seconds=training.cpu_seconds if trained else 0.0,
        sweep_seconds=sweeping.seconds if proven else 0.0,
        sweep_cpu_seconds=sweeping.cpu_seconds if proven else 0.0,
        io_seconds=summary.io_seconds if proven else 0.0,
        peak_memory_bytes=_peak_memory(used),
    )
    if trained or proven:
        record(results, models, timings)
    return Outcome(summary.done + summary.skipped + summary.failed, summary.failed_rows, timings)


def record(results: Path, models: Path, timings: Timings) -> None:
    """Keep what a run took beside its results."""
    text = json.dumps({**asdict(timings), "environment": environment()}, sort_keys=True)
    entry = row(kind=RUN, folder=as_utf8(str(models.resolve())), version=__version__, written=time.time_ns() // 10**6, data=text)
    write_part(results / f"run-{models.name}-{uuid.uuid4().hex[:12]}.parquet", [entry])


def environment() -> str:
    """The versions of what results depend on."""
    found = [f"Python {platform.python_version()}"]
    for name in ("numpy", "numba", "duckdb", "torch"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


@dataclass
class _Clock:
    """Wall time, and processor time of this process and of the children that ended."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0


@contextmanager
def _clock() -> Iterator[_Clock]:
    clock = _Clock()
    wall, cpu = time.perf_counter(), _cpu_seconds()
    yield clock
    clock.seconds, clock.cpu_seconds = time.perf_counter() - wall, _cpu_seconds() - cpu


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _peak_memory(workers: int) -> int:
    """This process at its largest and as many children as there are workers, each as large as the largest."""
    own, child = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return 1024 * (own + workers * child)
