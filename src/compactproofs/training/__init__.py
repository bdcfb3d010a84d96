"""Training many seeds at once (needs the `train` extra; importing this package does not)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from compactproofs.errors import TaskError
from compactproofs.tasks import AbstractTask, is_known
from compactproofs.training.recipe import Recipe, outputs_for
from compactproofs.training.runner import TrainedModel, train_seeds

__all__ = ["Recipe", "TrainedModel", "recipe_for", "train", "train_seeds"]


def train(
    task: AbstractTask,
    seeds: Iterable[int],
    *,
    out: str | Path | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    **recipe: Any,
) -> list[TrainedModel]:
    """Train one model per seed with the paper's recipe, many seeds at once, deterministically per seed.

    Args:
        task: `MaxOfK(n_ctx, d_vocab)`, `tasks.task_of_size("parity:3", n_ctx, d_vocab)`, or one of your own.
        seeds: training seeds, for example `range(151)`.
        out: folder to save to; what is finished there is not trained again, so an interrupted run can be repeated.
        workers: processes; by default one per core.
        progress: called with (seed-steps done, seed-steps in all).
        **recipe: changes to the recipe, for example `steps=10_000` or `d_model=64`; or to the model, for example `n_heads=4`,
            `d_mlp=128, act="gelu"`, `norm="LN"`, `bias=True`. `Recipe` has them all.
    """
    full = recipe_for(task, **recipe)
    folder = None if out is None else Path(out)
    wanted = list(dict.fromkeys(seeds))
    models = {m.seed: m for m in train_seeds(full, wanted, task=task, out=folder, workers=workers, progress=progress)}
    return [models[seed] for seed in wanted]


def recipe_for(task: AbstractTask, **recipe: Any) -> Recipe:
    """The recipe of a task of the library or of one's own."""
    if not isinstance(task, AbstractTask):
        raise TaskError(f"a {type(task).__name__} was given for a task; expected one such as MaxOfK(n_ctx=4, d_vocab=64)")
    if not is_known(task.spec):
        recipe.setdefault("d_vocab_out", outputs_for(task))
    return Recipe(n_ctx=task.n_ctx, d_vocab=task.d_vocab, task=task.spec, **recipe)
