"""The exact accuracy of any one-layer network, over all sequences or in a sample."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event

import numpy as np
from jaxtyping import Int

from compactproofs.arrays.environment import require_ieee754
from compactproofs.budget import Budget, in_threads
from compactproofs.cores import available_cores
from compactproofs.counting import block_kernels
from compactproofs.counting.choices import Choices
from compactproofs.counting.exact_block import is_correct, tied_labels
from compactproofs.counting.kernels import CORRECT, UNCERTAIN
from compactproofs.counting.outcome import PATIENCE, ExactCount, Progress, duration
from compactproofs.errors import InfeasibleError
from compactproofs.form.block_evaluation import BlockEvaluation, prepare_block
from compactproofs.model.network import Network
from compactproofs.tasks import AbstractTask

MAX_EXACT_DECISIONS = 20_000
"""At most so many sequences are decided again in exact arithmetic (about 10 ms each, exact ties twenty times that); the rest stays
undecided."""

_WORK_PER_CALL = 2**29
"""Multiplications in one call of a kernel: about a tenth of a second."""

_BATCH = 2**13
"""Samples in one call of a kernel."""

_ENOUGH = 0.5
"""Seconds after which the batches done so far tell how long the rest takes."""


@dataclass(frozen=True)
class _Call:
    query: int
    start: int
    stop: int


def _walk(task: AbstractTask, choices: Choices, query: int) -> block_kernels.Walk:
    """What the kernel needs to know to go through the sequences of one query."""
    inner, machine = max(choices.last, 0), task.automaton
    fixed = np.array([*choices.tokens[:-1, 0], query], dtype=np.int64)
    table, counts = np.ascontiguousarray(choices.tokens[: inner + 1]), choices.sizes[: inner + 1]
    return block_kernels.Walk(fixed, inner, table, counts, machine.transitions, machine.labels, machine.start)


def brute_force(
    network: Network,
    task: AbstractTask,
    *,
    seconds: float | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    stop: Event | None = None,
) -> ExactCount:
    """Count the sequences that the real-number network answers correctly. The arguments are those of `counting.brute_force.brute_force`.

    Guarantee: correct <= (true number of correct sequences) <= correct + undecided.
    Assumes: the task fits the network.
    Cost: O(d_vocab^n_ctx (d_model d_mlp + d_model d_vocab_out)), without an MLP and norms after attention O(d_vocab^n_ctx n_heads
    d_vocab_out).
    Source: definition of accuracy; the error bound is proved in `form.block_evaluation`.
    """
    evaluation, choices = prepare_block(network, tied_labels(network)), Choices.of(task)
    if choices.last < 0:  # only the query can be chosen
        return decide(network, task, evaluation, np.array([choices.sequence(0, query) for query in choices.queries]))
    threads = threads or available_cores()
    estimate = estimate_seconds(task, choices, evaluation, threads)
    if seconds is not None and estimate > seconds:
        raise InfeasibleError(
            f"brute force over {task.total_in_words} sequences would take about {duration(estimate)} on {threads} "
            f"threads, more than the {duration(seconds)} allowed. Allow more (--seconds), or sample (--samples)."
        )
    correct = done = overflow = 0
    uncertain: list[list[int]] = []

    def run(call: _Call) -> tuple[int, int, np.ndarray]:
        buffer = np.empty(1024, dtype=np.int64)
        found, missing = _count(_walk(task, choices, call.query), evaluation, call, buffer)
        if len(buffer) < min(missing, MAX_EXACT_DECISIONS):
            buffer = np.empty(min(missing, MAX_EXACT_DECISIONS), dtype=np.int64)
            found, missing = _count(_walk(task, choices, call.query), evaluation, call, buffer)
        return found, missing, buffer[:missing]

    budget = Budget(None if seconds is None else PATIENCE * seconds, stop)
    for call, (found, missing, codes) in in_threads(run, _calls(choices, evaluation), budget, threads):
        correct += found
        kept = codes[: max(0, MAX_EXACT_DECISIONS - len(uncertain))].tolist()
        uncertain += [choices.sequence(code, call.query) for code in kept]
        overflow += missing - len(kept)
        done += (call.stop - call.start) * choices.n_last
        if progress is not None:
            progress(done, task.total)
    if done < task.total:
        why = "was interrupted" if budget.stopped else f"is not finished after {duration(budget.used)}, longer than estimated"
        raise InfeasibleError(f"brute force {why}: {done} of {task.total_in_words} sequences are done. Allow more (--seconds), or sample.")
    again = _decide_exactly(network, task, np.array(uncertain, dtype=np.int64).reshape(-1, network.n_ctx), budget)
    return ExactCount(correct + again.correct, task.total, overflow + again.undecided, again.decided_exactly)


def sample(
    network: Network,
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

    Cost: O(samples (n_ctx n_heads d_model + d_model d_mlp + d_model d_vocab_out)).
    """
    evaluation, choices = prepare_block(network, tied_labels(network)), Choices.of(task)

    def run(batch: int) -> ExactCount:
        generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(batch,)))
        size = min(_BATCH, samples - batch * _BATCH)
        return decide(network, task, evaluation, choices.drawn(generator, size))

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


def decide(network: Network, task: AbstractTask, evaluation: BlockEvaluation, sequences: Int[np.ndarray, "batch n_ctx"]) -> ExactCount:
    """Count the correct ones among the given sequences (one per row). The guarantee of `brute_force` holds."""
    require_ieee754()  # per thread
    sequences = np.ascontiguousarray(sequences, dtype=np.int64)
    verdicts = np.empty(len(sequences), dtype=np.int64)
    block_kernels.decide_block(evaluation, sequences, task.automaton.label(sequences), verdicts)
    uncertain = sequences[verdicts == UNCERTAIN]
    again = _decide_exactly(network, task, uncertain[:MAX_EXACT_DECISIONS])
    return ExactCount(
        correct=int((verdicts == CORRECT).sum()) + again.correct,
        total=len(sequences),
        undecided=len(uncertain) - again.total + again.undecided,
        decided_exactly=again.decided_exactly,
    )


def estimate_seconds(task: AbstractTask, choices: Choices, evaluation: BlockEvaluation, threads: int) -> float:
    """Extrapolate from a short timed run of the compiled kernel on this very model."""
    queries, prefixes = choices.queries, choices.prefixes
    trial = max(1, min(prefixes, _WORK_PER_CALL // 4 // (_work(evaluation) * choices.n_last)))
    walk, buffer = _walk(task, choices, queries[len(queries) // 2]), np.empty(1, dtype=np.int64)
    _count(walk, evaluation, _Call(0, 0, 0), buffer)
    started = time.perf_counter()
    _count(walk, evaluation, _Call(0, 0, trial), buffer)
    elapsed = time.perf_counter() - started
    try:
        return float(elapsed / trial / threads * float(prefixes * len(queries)))
    except OverflowError:
        return math.inf


def _calls(choices: Choices, evaluation: BlockEvaluation) -> Iterator[_Call]:
    prefixes, step = choices.prefixes, max(1, _WORK_PER_CALL // (_work(evaluation) * choices.n_last))
    for query in choices.queries:
        for start in range(0, prefixes, step):
            yield _Call(query, start, min(start + step, prefixes))


def _work(evaluation: BlockEvaluation) -> int:
    """Multiplications per sequence."""
    heads, d = len(evaluation.values), len(evaluation.base[0])
    return heads * d if evaluation.affine else d * (heads + 8 + 2 * len(evaluation.mlp.W_in) + len(evaluation.W_U))


def _count(walk: block_kernels.Walk, evaluation: BlockEvaluation, call: _Call, buffer: np.ndarray) -> tuple[int, int]:
    require_ieee754()  # per thread
    correct, uncertain = block_kernels.count_block(evaluation, walk, call.start, call.stop, buffer)
    return int(correct), int(uncertain)


def _decide_exactly(network: Network, task: AbstractTask, sequences: np.ndarray, budget: Budget | None = None) -> ExactCount:
    """Decide in exact arithmetic while there is time; the rest stays undecided."""
    labels = task.automaton.label(sequences)
    verdicts = [
        None if budget is not None and budget.over else is_correct(network, row, label)
        for row, label in zip(sequences.tolist(), labels.tolist(), strict=True)
    ]
    undecided = verdicts.count(None)
    return ExactCount(verdicts.count(True), len(verdicts), undecided, len(verdicts) - undecided)
