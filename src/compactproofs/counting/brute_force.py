"""Exact accuracy by evaluating every input sequence, on all cores, with no rounding error in the answer."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from threading import Event

import numpy as np

from compactproofs.budget import Budget, in_threads
from compactproofs.cores import available_cores
from compactproofs.counting.block_truth import BlockTruth
from compactproofs.counting.choices import Choices
from compactproofs.counting.outcome import PATIENCE, ExactCount, Progress, duration
from compactproofs.counting.plain_truth import PlainTruth
from compactproofs.counting.truth import AbstractTruth, Call
from compactproofs.counting.weighing import brute_force_by_mass, is_plain
from compactproofs.errors import InfeasibleError
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.tasks import AbstractTask, check_fits

SHARED_KEY = "brute force"
"""Under which the count of a model and its task is kept in a memory of intermediate results."""


def truth_of(model: Model) -> AbstractTruth:
    """What decides sequences of this model."""
    return BlockTruth(model) if isinstance(model, Network) else PlainTruth(model)


def brute_force(
    weights: Model,
    task: AbstractTask,
    *,
    seconds: float | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    stop: Event | None = None,
) -> ExactCount:
    """Count the sequences that the real-number network answers correctly; if the task has masses, add up theirs.

    Guarantee: correct <= (true number, or mass, of correct sequences) <= correct + undecided. Sequences without a label do not count.
    Assumes: nothing.
    Cost: O(d_vocab^n_ctx) times that of one sequence: see `PlainTruth` and `BlockTruth`.
    Source: definition of accuracy; the error bounds are proved in `form.evaluation` and `form.block_evaluation`.

    Args:
        weights: the network.
        task: what the right output is.
        seconds: refuse with `InfeasibleError`, which says how long it would take, if the estimate exceeds this. None never refuses.
        threads: worker threads, by default one per available core.
        progress: called from time to time with the number of sequences done and in all.
        stop: set by whoever wants it to end soon, with `InfeasibleError`.
    """
    check_fits(task, weights)
    truth, choices = truth_of(weights), Choices.of(task)
    if not is_plain(task):
        budget = Budget(None if seconds is None else PATIENCE * seconds, stop)
        threads = threads or available_cores()
        return brute_force_by_mass(truth, task, seconds=seconds, threads=threads, progress=progress, budget=budget)
    if choices.last < 0:  # only the query can be chosen
        return truth.decide(task, np.array([choices.sequence(0, query) for query in choices.queries], dtype=np.int64))
    threads, limits = threads or available_cores(), truth.limits(choices)
    estimate = _estimated_seconds(truth, task, choices, threads)
    if seconds is not None and estimate > seconds:
        raise InfeasibleError(
            f"brute force over {task.total_in_words} sequences would take about {duration(estimate)} on {threads} "
            f"threads, more than the {duration(seconds)} allowed. Allow more (--seconds), sample (--samples), or prove a bound instead."
        )

    correct = done = overflow = 0
    uncertain: list[list[int]] = []

    def run(call: Call) -> tuple[int, int, np.ndarray]:
        buffer = np.empty(1024, dtype=np.int64)
        found, missing = truth.count(task, choices, call, buffer)
        if len(buffer) < min(missing, limits.exact):
            buffer = np.empty(min(missing, limits.exact), dtype=np.int64)
            found, missing = truth.count(task, choices, call, buffer)
        return found, missing, buffer[:missing]

    budget = Budget(None if seconds is None else PATIENCE * seconds, stop)
    for call, (found, missing, codes) in in_threads(run, _calls(choices, limits.per_call), budget, threads):
        correct += found
        kept = codes[: max(0, limits.exact - len(uncertain))].tolist()
        uncertain += [choices.sequence(code, call.query) for code in kept]
        overflow += missing - len(kept)
        done += (call.stop - call.start) * choices.n_last
        if progress is not None:
            progress(done, task.total)

    if done < task.total:
        why = "was interrupted" if budget.stopped else f"is not finished after {duration(budget.used)}, longer than estimated"
        raise InfeasibleError(f"brute force {why}: {done} of {task.total_in_words} sequences are done. Allow more (--seconds), or sample.")
    again = truth.decide_exactly(task, np.array(uncertain, dtype=np.int64).reshape(-1, weights.n_ctx), budget)
    return ExactCount(correct + again.correct, task.total, overflow + again.undecided, again.decided_exactly)


def _estimated_seconds(truth: AbstractTruth, task: AbstractTask, choices: Choices, threads: int) -> float:
    """Extrapolate from a short timed run of the compiled kernel on this very model."""
    prefixes, queries = choices.prefixes, choices.queries
    query, trial, buffer = queries[len(queries) // 2], min(prefixes, truth.limits(choices).trial), np.empty(1, dtype=np.int64)
    truth.count(task, choices, Call(query, 0, 0), buffer)
    started = time.perf_counter()
    truth.count(task, choices, Call(query, 0, trial), buffer)
    elapsed = time.perf_counter() - started
    try:
        return float(elapsed / trial / threads * float(prefixes * len(queries)))
    except OverflowError:
        return math.inf


def _calls(choices: Choices, step: int) -> Iterator[Call]:
    for query in choices.queries:
        for start in range(0, choices.prefixes, step):
            yield Call(query, start, min(start + step, choices.prefixes))
