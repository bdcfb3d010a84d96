"""Exact accuracy by evaluating every input sequence, on all cores, with no rounding error in the answer."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event

import numpy as np

from compactproofs.arrays.environment import require_ieee754
from compactproofs.budget import Budget, in_threads
from compactproofs.cores import available_cores
from compactproofs.counting import block_truth, kernels
from compactproofs.counting.choices import Choices
from compactproofs.counting.exact_sign import ExactNetwork
from compactproofs.counting.outcome import PATIENCE, ExactCount, Progress, duration
from compactproofs.errors import InfeasibleError
from compactproofs.form.evaluation import Evaluation, prepare
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.model.weights import Weights
from compactproofs.tasks import AbstractTask, check_fits

MAX_EXACT_DECISIONS = 100_000
"""At most so many sequences are decided again in exact arithmetic (about 0.3 ms each); the rest count as undecided."""

SHARED_KEY = "brute force"
"""Under which the count of a model and its task is kept in a memory of intermediate results."""

_COMPARISONS_PER_CALL = 2**27


@dataclass(frozen=True)
class _Call:
    query: int
    start: int
    stop: int


def brute_force(
    weights: Model,
    task: AbstractTask,
    *,
    seconds: float | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    stop: Event | None = None,
) -> ExactCount:
    """Count the sequences that the real-number network answers correctly.

    Guarantee: correct <= (true number of correct sequences) <= correct + undecided.
    Assumes: nothing.
    Cost: O(d_vocab^n_ctx d_vocab_out).
    Source: definition of accuracy; the error bound is proved in `form.evaluation`.

    Args:
        weights: the network.
        task: what the right output is.
        seconds: refuse with `InfeasibleError`, which says how long it would take, if the estimate exceeds this. None never refuses.
        threads: worker threads, by default one per available core.
        progress: called from time to time with the number of sequences done and in all.
        stop: set by whoever wants it to end soon, with `InfeasibleError`.
    """
    check_fits(task, weights)
    if isinstance(weights, Network):
        return block_truth.brute_force(weights, task, seconds=seconds, threads=threads, progress=progress, stop=stop)
    evaluation, choices = prepare(weights), Choices.of(task)
    if choices.last < 0:  # only the query can be chosen
        return decide(weights, task, evaluation, np.array([choices.sequence(0, query) for query in choices.queries], dtype=np.int64))
    threads = threads or available_cores()
    estimate = estimate_seconds(task, evaluation, choices, threads)
    if seconds is not None and estimate > seconds:
        raise InfeasibleError(
            f"brute force over {task.total_in_words} sequences would take about {duration(estimate)} on {threads} "
            f"threads, more than the {duration(seconds)} allowed. Allow more (--seconds), sample (--samples), or prove a bound instead."
        )

    correct = 0
    uncertain: list[list[int]] = []
    overflow = done = 0

    def run(call: _Call) -> tuple[int, int, np.ndarray]:
        buffer = np.empty(1024, dtype=np.int64)
        found, missing = _count(call, task, evaluation, choices, buffer)
        if len(buffer) < min(missing, MAX_EXACT_DECISIONS):
            buffer = np.empty(min(missing, MAX_EXACT_DECISIONS), dtype=np.int64)
            found, missing = _count(call, task, evaluation, choices, buffer)
        return found, missing, buffer[:missing]

    budget = Budget(None if seconds is None else PATIENCE * seconds, stop)
    for call, (found, missing, codes) in in_threads(run, _calls(choices, weights.d_vocab_out), budget, threads):
        correct += found
        room = max(0, MAX_EXACT_DECISIONS - len(uncertain))
        kept = codes[:room].tolist()
        uncertain += [choices.sequence(code, call.query) for code in kept]
        overflow += missing - len(kept)
        done += (call.stop - call.start) * choices.n_last
        if progress is not None:
            progress(done, task.total)

    if done < task.total:
        why = "was interrupted" if budget.stopped else f"is not finished after {duration(budget.used)}, longer than estimated"
        raise InfeasibleError(f"brute force {why}: {done} of {task.total_in_words} sequences are done. Allow more (--seconds), or sample.")
    again = _decide_exactly(weights, task, np.array(uncertain, dtype=np.int64).reshape(-1, weights.n_ctx), budget)
    return ExactCount(
        correct=correct + again.correct,
        total=task.total,
        undecided=overflow + again.undecided,
        decided_exactly=again.total - again.undecided,
    )


def decide(weights: Weights, task: AbstractTask, evaluation: Evaluation, sequences: np.ndarray) -> ExactCount:
    """Count the correct ones among the given sequences (one per row). The guarantee of `brute_force` holds."""
    require_ieee754()  # per thread
    verdicts = np.empty(len(sequences), dtype=np.int64)
    kernels.decide_sequences(evaluation, sequences, task.automaton.label(sequences), verdicts)
    uncertain = sequences[verdicts == kernels.UNCERTAIN]
    again = _decide_exactly(weights, task, uncertain[:MAX_EXACT_DECISIONS])
    return ExactCount(
        correct=int((verdicts == kernels.CORRECT).sum()) + again.correct,
        total=len(sequences),
        undecided=len(uncertain) - again.total + again.undecided,
        decided_exactly=again.total - again.undecided,
    )


def estimate_seconds(task: AbstractTask, evaluation: Evaluation, choices: Choices, threads: int) -> float:
    """Extrapolate from a short timed run of the compiled kernel on this very model."""
    prefixes, queries, n_out = choices.prefixes, choices.queries, evaluation.EU.shape[1]
    sample = max(1, min(prefixes, 2**22 // (choices.n_last * n_out)))
    buffer = np.empty(1, dtype=np.int64)
    _count(_Call(queries[0], 0, 0), task, evaluation, choices, buffer)
    started = time.perf_counter()
    _count(_Call(queries[len(queries) // 2], 0, sample), task, evaluation, choices, buffer)
    elapsed = time.perf_counter() - started
    try:
        return float(elapsed / sample / threads * float(prefixes * len(queries)))
    except OverflowError:
        return math.inf


def _calls(choices: Choices, n_out: int) -> Iterator[_Call]:
    prefixes, step = choices.prefixes, max(1, _COMPARISONS_PER_CALL // (choices.n_last * n_out))
    for query in choices.queries:
        for start in range(0, prefixes, step):
            yield _Call(query, start, min(start + step, prefixes))


def _count(call: _Call, task: AbstractTask, e: Evaluation, choices: Choices, buffer: np.ndarray) -> tuple[int, int]:
    require_ieee754()  # per thread
    machine = task.automaton
    labelling = (machine.transitions, machine.labels, machine.start)
    which = (choices.tokens, choices.sizes, choices.last)
    correct, uncertain = kernels.count_query(e, labelling, which, call.query, call.start, call.stop, buffer)
    return int(correct), int(uncertain)


def _decide_exactly(weights: Weights, task: AbstractTask, sequences: np.ndarray, budget: Budget | None = None) -> ExactCount:
    """Decide in exact arithmetic while there is time; the rest stays undecided."""
    if not len(sequences):
        return ExactCount(0, 0, 0, 0)
    network = ExactNetwork(weights)
    labels = task.automaton.label(sequences)
    verdicts = [
        None if budget is not None and budget.over else network.is_correct(row, label)
        for row, label in zip(sequences.tolist(), labels.tolist(), strict=True)
    ]
    undecided = verdicts.count(None)
    return ExactCount(verdicts.count(True), len(verdicts), undecided, len(verdicts) - undecided)
