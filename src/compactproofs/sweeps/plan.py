"""What a sweep does: which models, which proofs, and the key under which results are kept."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from compactproofs.bounds_version import MEASUREMENTS, code_version
from compactproofs.errors import SweepError
from compactproofs.model.config import Told
from compactproofs.model.files import SUFFIXES, load, model_files
from compactproofs.model.kinds import Model
from compactproofs.proving import DEFAULT_SECONDS
from compactproofs.results.schema import DOCUMENTS, FORMAT
from compactproofs.results.store import Place
from compactproofs.strategies.base import AbstractStrategy
from compactproofs.strategies.registry import all_strategies
from compactproofs.strategies.registry import strategy as strategy_named
from compactproofs.tasks import AbstractTask, task_for
from compactproofs.version import __version__


@dataclass(frozen=True)
class Work:
    """What is done to every model. Small enough to travel with each of them."""

    strategies: tuple[AbstractStrategy, ...]
    task: str | AbstractTask = "max"
    """What the models should do: the name of a task, which is given the sizes of each model, or a task."""
    prefix: tuple[int, ...] = ()
    """Fixed tokens before the input, of a task that is given by name."""
    suffix: tuple[int, ...] = ()
    """Fixed tokens after it."""
    upper: bool | Literal["own"] = False
    """Whether upper bounds are proven too: by every strategy, or by those that have one of their own."""
    seconds: float = DEFAULT_SECONDS
    """Limit for a single strategy, and for exact accuracy by brute force."""
    samples: int = 100_000
    """Sequences sampled where brute force is out of reach."""
    sampling_seed: int = 0
    documents: tuple[str, ...] = ()
    """What is measured besides, of `results.schema.DOCUMENTS`."""
    ablation_samples: int = 200_000
    """Sequences on which ablations are measured, for the documents that have them."""
    version: str = field(default=__version__)
    bounds: str = field(default_factory=code_version)
    """The version of the code that computes bounds."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "strategies", tuple(dict.fromkeys(self.strategies)))
        if not self.strategies and not self.documents:
            raise SweepError("a sweep needs at least one strategy")
        if (self.prefix or self.suffix) and not isinstance(self.task, str):
            raise SweepError("prefix and suffix go with the name of a task; a task of one's own has its fixed tokens (`Framed`)")
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise SweepError(f"seconds={self.seconds} must be a positive number: a sweep should not wait for ever for one proof")
        if not set(self.documents) <= set(DOCUMENTS):
            raise SweepError(f"documents={self.documents}; known: {', '.join(DOCUMENTS)}")

    def task_for(self, weights: Model) -> AbstractTask:
        """The task of one model."""
        return task_for(weights, self.task, prefix=self.prefix, suffix=self.suffix) if isinstance(self.task, str) else self.task

    @cached_property
    def plan(self) -> str:
        """Twelve hexadecimal digits that change with everything that changes a row: options and the code of the bounds.

        Rows about the same network, plan and strategy are the same, whatever else was done beside.
        """
        return _digest(
            format=FORMAT,
            version=self.version,
            bounds=self.bounds,
            task=self._task,
            upper=self.upper,
            seconds=float(self.seconds),
            samples=self.samples,
            sampling_seed=self.sampling_seed,
        )

    @cached_property
    def measuring(self) -> str:
        """The plan of documents, which do not depend on how proofs are made."""
        code = code_version(MEASUREMENTS)
        return _digest(format=FORMAT, version=self.version, code=code, task=self._task, samples=self.ablation_samples)

    @property
    def _task(self) -> str:
        if not isinstance(self.task, str):
            return self.task.sha256
        fixed = f" prefix {list(self.prefix)} suffix {list(self.suffix)}" if self.prefix or self.suffix else ""
        return f"{self.task}{fixed}"

    @cached_property
    def digest(self) -> str:
        """Of the plan, and of what is done by it (in any order): a part is kept under it."""
        names = sorted(json.dumps([s.name, s.parameters], sort_keys=True) for s in self.strategies)
        measured = [self.measuring, *sorted(self.documents)] if self.documents else []
        return _digest(plan=self.plan, strategies=names, documents=measured)

    def only(self, strategies: Sequence[AbstractStrategy], documents: Sequence[str]) -> Work:
        """Less of the same work."""
        return replace(self, strategies=tuple(strategies), documents=tuple(documents))


def _digest(**content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Plan:
    """Models and what is done to them."""

    folder: Path
    models: tuple[Path, ...]
    """Model files in the folder."""
    work: Work
    told: Told = field(default_factory=Told)
    """What is known about the files that they do not say themselves."""

    def place(self, model: Path) -> Place:
        """How results call a model."""
        return Place.of(self.folder, model)

    def load(self, model: Path) -> Model:
        """Read one of the models."""
        return load(model, n_heads=self.told.n_heads, normalization=self.told.normalization, n_ctx=self.told.n_ctx)


def plan_sweep(
    folder: Path, strategies: Sequence[str | AbstractStrategy] | None = None, told: Told | None = None, **parameters: Any
) -> Plan:
    """Plan to prove about every model in a folder and the folders in it; by default with every strategy, repaired and published.

    Args:
        folder: where the models are.
        strategies: names or objects.
        told: what is known about the files that they do not say themselves.
        **parameters: fields of `Work`, such as `upper` and `seconds`.
    """
    if not folder.is_dir():
        raise SweepError(f"{folder} is not a folder; expected one with model files ({', '.join(SUFFIXES)})")
    models = tuple(model_files(folder))
    if not models:
        raise SweepError(f"no models in {folder}: expected files that end in {', '.join(SUFFIXES)}")
    chosen = all_strategies(None, "both") if strategies is None else [strategy_named(s) if isinstance(s, str) else s for s in strategies]
    return Plan(folder, models, Work(tuple(chosen), **parameters), told or Told())
