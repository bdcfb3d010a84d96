"""Train any number of seeds on all cores, keeping what is finished: interrupt it and run it again to go on."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compactproofs.cores import available_cores
from compactproofs.errors import MissingExtraError, ModelError, TaskError
from compactproofs.memory import require_memory
from compactproofs.model.files import load, save, training_record
from compactproofs.model.kinds import Model
from compactproofs.tasks import AbstractTask, LabellingAutomaton
from compactproofs.training.models import model_of
from compactproofs.training.recipe import Recipe, library_task
from compactproofs.version import __version__
from compactproofs.workers import pool_of, start_worker

if TYPE_CHECKING:
    from compactproofs.training.batched import TrainedTensors

GROUP_SIZE = 8
"""Seeds trained together: enough to amortise torch's overhead, few enough for the tensors to stay in cache."""


@dataclass(frozen=True)
class TrainedModel:
    """One trained seed."""

    seed: int
    weights: Model
    """`Weights` where one head and biases are all there is, else a `Network`."""
    loss: float
    """Mean cross-entropy over the last hundred batches."""
    seconds: float
    """Wall time of the seed's group divided by the seeds in it; as recorded, if the model was trained by an earlier run."""
    path: Path | None
    """Where it was saved."""
    resumed: bool
    """True if an earlier run had trained it."""


def train_seeds(
    recipe: Recipe,
    seeds: Iterable[int],
    *,
    task: AbstractTask | None = None,
    out: Path | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[TrainedModel]:
    """Train seeds, many at once, yielding each as soon as its group is done (finished ones of an earlier run first).

    The weights of a seed depend on the recipe and the seed alone, not on the other seeds, the groups or the number of workers.

    Args:
        recipe: what to train.
        seeds: training seeds; duplicates are trained once.
        task: the task that the recipe names, if it is none of the library.
        out: folder for one `.safetensors` file per seed. Files that are there already are not trained again.
        workers: processes, each with one thread; by default one per core.
        progress: called with (seed-steps done, seed-steps in all).
    """
    if find_spec("torch") is None:
        raise MissingExtraError("training needs torch", "train")
    wanted, automaton = list(dict.fromkeys(seeds)), _automaton(recipe, task)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    missing = []
    for seed in wanted:
        path = _path(out, recipe, seed)
        if path is not None and path.is_symlink() and not path.exists():
            raise ModelError(f"{path} is a symbolic link to {path.readlink()}, which does not exist; choose another folder or remove it")
        if path is not None and path.exists():
            yield _finished_earlier(path, recipe, seed)
        else:
            missing.append(seed)
    for trained, seconds in _train_groups(_Job(recipe, automaton), missing, workers, progress):
        yield _keep(trained, seconds, recipe, out)


@dataclass(frozen=True)
class _Job:
    """What workers are told."""

    recipe: Recipe
    automaton: LabellingAutomaton | None
    """None: the right output is the largest token."""


def _automaton(recipe: Recipe, task: AbstractTask | None) -> LabellingAutomaton | None:
    if recipe.task == "max":
        return None
    task = library_task(recipe.task, recipe.n_ctx, recipe.d_vocab) if task is None else task
    if (task.spec, task.n_ctx, task.d_vocab) != (recipe.task, recipe.n_ctx, recipe.d_vocab) or task.labels[-1] >= recipe.outputs:
        raise TaskError(f"the recipe {recipe.name} was given with another task, {task!r:.200}")
    if task.allowed is not None:
        raise TaskError(f"the task {task.spec!r:.60} forbids tokens at some places, and training draws them all")
    return task.automaton


def _path(out: Path | None, recipe: Recipe, seed: int) -> Path | None:
    return None if out is None else out / f"{recipe.name}-seed{seed}.safetensors"


def _finished_earlier(path: Path, recipe: Recipe, seed: int) -> TrainedModel:
    weights, record = load(path), training_record(path)
    if record.get("recipe") != recipe.as_dict() or record.get("seed") != seed:
        raise ModelError(f"{path} exists but was trained by another recipe; choose another folder or remove it")
    loss, seconds = record.get("loss"), record.get("seconds")
    if not isinstance(loss, int | float) or not isinstance(seconds, int | float):
        raise ModelError(f"{path} exists but its training record lacks loss or seconds; choose another folder or remove it")
    return TrainedModel(seed, weights, float(loss), float(seconds), path, resumed=True)


def _keep(trained: TrainedTensors, seconds: float, recipe: Recipe, out: Path | None) -> TrainedModel:
    weights = model_of(recipe, trained.tensors)
    path = _path(out, recipe, trained.seed)
    if path is not None:
        save(weights, path, _record(trained, seconds, recipe))
    return TrainedModel(trained.seed, weights, trained.loss, seconds, path, resumed=False)


def _record(trained: TrainedTensors, seconds: float, recipe: Recipe) -> dict[str, Any]:
    import torch

    return {
        "recipe": recipe.as_dict(),
        "seed": trained.seed,
        "loss": trained.loss,
        "seconds": seconds,
        "compactproofs": __version__,
        "torch": torch.__version__,
    }


def _train_groups(
    job: _Job, seeds: Sequence[int], workers: int | None, progress: Callable[[int, int], None] | None
) -> Iterator[tuple[TrainedTensors, float]]:
    recipe, workers = job.recipe, workers or available_cores()
    size = max(1, min(GROUP_SIZE, -(-len(seeds) // workers)))
    groups = [seeds[i : i + size] for i in range(0, len(seeds), size)]
    if not groups:
        return
    together = min(workers, len(groups)) * size
    what = f"training {together} x {recipe.name} at a time"
    require_memory(together * recipe.training_bytes, what, "use fewer workers, fewer seeds at a time, or smaller sizes")
    total = len(seeds) * recipe.steps
    counter = multiprocessing.get_context("spawn").Value("q", 0)
    with pool_of(min(workers, len(groups)), _start_worker, counter) as pool:
        pending: set[Future[tuple[list[TrainedTensors], float]]] = {pool.submit(_train_one, job, group) for group in groups}
        while pending:
            done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
            if progress is not None:
                progress(counter.value, total)
            for future in done:
                group, seconds = future.result()
                yield from ((trained, seconds / len(group)) for trained in group)


_counter: Synchronized[int] | None = None


def _start_worker(counter: Synchronized[int]) -> None:
    global _counter
    _counter = counter
    start_worker()


def _train_one(job: _Job, group: Sequence[int]) -> tuple[list[TrainedTensors], float]:
    from compactproofs.training.batched import train_group

    def on_step(seeds: int) -> None:
        if _counter is not None:
            with _counter.get_lock():
                _counter.value += seeds

    started = time.perf_counter()
    trained = train_group(job.recipe, group, on_step, job.automaton)
    return trained, time.perf_counter() - started
