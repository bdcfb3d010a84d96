"""Accuracy on randomly drawn sequences, each decided exactly: what to do where brute force cannot reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from compactproofs.budget import Budget, in_threads
from compactproofs.counting.brute_force import truth_of
from compactproofs.counting.choices import Choices
from compactproofs.counting.outcome import ExactCount, Progress, duration
from compactproofs.counting.truth import AbstractTruth
from compactproofs.errors import InfeasibleError
from compactproofs.model.kinds import Model
from compactproofs.tasks import NO_LABEL, AbstractTask, check_fits

_ENOUGH = 0.5
"""Seconds after which the batches done so far tell how long the rest takes."""
_REJECTED = 1000
"""At most so many are drawn, on average, for one that has a label."""


@dataclass(frozen=True)
class Source:
    """Where sequences are drawn from."""

    draw: Callable[[np.random.Generator, int], np.ndarray]
    """So many sequences, one per row, whether they have a label or not."""
    total: int
    """The mass of those that have a label ..."""
    mass_everywhere: int
    """... and of all."""

    @classmethod
    def of(cls, task: AbstractTask) -> Source:
        return cls(Choices.of(task).drawn, task.total, task.mass_everywhere)


def sample(
    weights: Model,
    task: AbstractTask,
    samples: int,
    *,
    seed: int = 0,
    seconds: float | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    truth: AbstractTruth | None = None,
    source: Source | None = None,
) -> ExactCount:
    """Decide `samples` independent sequences, drawn by their masses, uniformly if these are all 1; or drawn from a source of their own.

    The same seed gives the same count on any number of threads.

    Sequences without a label are drawn again, so what is left are draws from those that have one.

    `truth` decides them, by default whether the label wins. Raises `InfeasibleError`, soon, if it would take longer than `seconds`.

    Cost: that of deciding one sequence (`PlainTruth`, `BlockTruth`), times `samples`.
    """
    check_fits(task, weights)
    if samples < 1:
        raise ValueError(f"samples={samples} must be at least 1")
    truth, source = truth_of(weights) if truth is None else truth, Source.of(task) if source is None else source
    whole = truth.limits(Choices.of(task)).batch
    if _REJECTED * source.total < source.mass_everywhere:
        raise InfeasibleError(
            f"only one sequence in {source.mass_everywhere // max(source.total, 1)} is in the question: a sample is not drawn from so few"
        )

    def run(batch: int) -> ExactCount:
        generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(batch,)))
        return truth.decide(task, _drawn(task, source, generator, min(whole, samples - batch * whole)))

    correct = undecided = exactly = done = 0
    budget = Budget(seconds)
    for _, count in in_threads(run, range(-(-samples // whole)), budget, threads):
        correct += count.correct
        undecided += count.undecided
        exactly += count.decided_exactly
        done += count.total
        if progress is not None:
            progress(done, samples)
        if seconds is not None and budget.used > _ENOUGH and budget.used * samples / done > seconds:
            break
    if done < samples:
        estimate = duration(budget.used * samples / max(done, 1))
        raise InfeasibleError(
            f"sampling {samples} sequences would take about {estimate}, more than the {seconds:g} s allowed. Allow more (--seconds), or "
            "ask for fewer (--samples)."
        )
    return ExactCount(correct, samples, undecided, exactly)


def _drawn(task: AbstractTask, source: Source, generator: np.random.Generator, size: int) -> np.ndarray:
    """So many sequences that have a label: those that have none are rejected, and others drawn instead."""
    if not task.partial:
        return source.draw(generator, size)
    found: list[np.ndarray] = []
    missing = size
    while missing:
        rows = source.draw(generator, size)
        rows = rows[task.automaton.label(rows) != NO_LABEL][:missing]
        found.append(rows)
        missing -= len(rows)
    return np.concatenate(found)
