"""Accuracy on uniformly drawn sequences, each decided exactly: what to do where brute force cannot reach."""

from __future__ import annotations

import numpy as np

from compactproofs.budget import Budget, in_threads
from compactproofs.counting.brute_force import truth_of
from compactproofs.counting.choices import Choices
from compactproofs.counting.outcome import ExactCount, Progress, duration
from compactproofs.counting.truth import AbstractTruth
from compactproofs.errors import InfeasibleError
from compactproofs.model.kinds import Model
from compactproofs.tasks import AbstractTask, check_fits

_ENOUGH = 0.5
"""Seconds after which the batches done so far tell how long the rest takes."""


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
) -> ExactCount:
    """Decide `samples` independent uniform sequences. The same seed gives the same count on any number of threads.

    `truth` decides them, by default whether the label wins. Raises `InfeasibleError`, soon, if it would take longer than `seconds`.

    Cost: that of deciding one sequence (`PlainTruth`, `BlockTruth`), times `samples`.
    """
    check_fits(task, weights)
    if samples < 1:
        raise ValueError(f"samples={samples} must be at least 1")
    truth, choices = truth_of(weights) if truth is None else truth, Choices.of(task)
    whole = truth.limits(choices).batch

    def run(batch: int) -> ExactCount:
        generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(batch,)))
        return truth.decide(task, choices.drawn(generator, min(whole, samples - batch * whole)))

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
