"""Accuracy on uniformly drawn sequences, each decided exactly: what to do where brute force cannot reach."""

from __future__ import annotations

import numpy as np

from compactproofs.budget import Budget, in_threads
from compactproofs.counting import block_truth
from compactproofs.counting.brute_force import decide
from compactproofs.counting.choices import Choices
from compactproofs.counting.outcome import ExactCount, Progress, duration
from compactproofs.errors import InfeasibleError
from compactproofs.form.evaluation import prepare
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.tasks import AbstractTask, check_fits

_BATCH = 2**16

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
) -> ExactCount:
    """Decide `samples` independent uniform sequences. The same seed gives the same count on any number of threads.

    Raises `InfeasibleError`, soon, if it would take longer than `seconds`.

    Cost: O(samples n_ctx d_vocab_out).
    """
    check_fits(task, weights)
    if samples < 1:
        raise ValueError(f"samples={samples} must be at least 1")
    if isinstance(weights, Network):
        return block_truth.sample(weights, task, samples, seed=seed, seconds=seconds, threads=threads, progress=progress)
    evaluation, choices = prepare(weights), Choices.of(task)

    def run(batch: int) -> ExactCount:
        generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(batch,)))
        size = min(_BATCH, samples - batch * _BATCH)
        return decide(weights, task, evaluation, choices.drawn(generator, size))

    correct = undecided = exactly = done = 0
    budget = Budget(seconds)
    for _, count in in_threads(run, range(-(-samples // _BATCH)), budget, threads):
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
