"""Accuracy on uniformly drawn sequences, each decided exactly: what to do where brute force cannot reach."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from compactproofs.cores import available_cores
from compactproofs.counting.brute_force import ExactCount, Progress, decide
from compactproofs.counting.evaluation import prepare
from compactproofs.model.weights import Weights
from compactproofs.tasks import AbstractTask, check_fits

_BATCH = 2**16


def sample(
    weights: Weights,
    task: AbstractTask,
    samples: int,
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ExactCount:
    """Decide `samples` independent uniform sequences. The same seed gives the same count on any number of threads.

    Cost: O(samples n_ctx d_vocab_out).
    """
    check_fits(task, weights)
    if samples < 1:
        raise ValueError(f"samples={samples} must be at least 1")
    evaluation = prepare(weights)
    sizes = [min(_BATCH, samples - start) for start in range(0, samples, _BATCH)]
    streams = np.random.SeedSequence(seed).spawn(len(sizes))

    def run(batch: int) -> ExactCount:
        generator = np.random.default_rng(streams[batch])
        return decide(weights, task, evaluation, generator.integers(0, task.d_vocab, size=(sizes[batch], task.n_ctx)))

    correct = undecided = exactly = done = 0
    with ThreadPoolExecutor(threads or available_cores()) as pool:
        for count in pool.map(run, range(len(sizes))):
            correct += count.correct
            undecided += count.undecided
            exactly += count.decided_exactly
            done += count.total
            if progress is not None:
                progress(done, samples)
    return ExactCount(correct, samples, undecided, exactly)
