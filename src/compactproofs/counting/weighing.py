"""Brute force where sequences have masses, or some have no label: batches of sequences, decided and weighed one by one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from compactproofs.arrays.environment import require_ieee754
from compactproofs.budget import Budget, in_threads
from compactproofs.counting.choices import Choices
from compactproofs.counting.kernels import CORRECT, UNCERTAIN
from compactproofs.counting.outcome import ExactCount, Progress, duration
from compactproofs.counting.truth import AbstractTruth
from compactproofs.errors import InfeasibleError
from compactproofs.tasks import NO_LABEL, AbstractTask

_TRIAL = 2**12
"""Sequences that tell how long the rest takes."""
_SMALL = 1 << 62
"""Masses below this are added in 64 bits."""


def is_plain(task: AbstractTask) -> bool:
    """Whether every sequence that is allowed has a label and the mass 1."""
    return task.uniform and not task.partial


def weigh(task: AbstractTask, sequences: Int[np.ndarray, "batch n_ctx"]) -> np.ndarray:
    """The mass of each sequence, exactly: 64-bit integers, or Python's where these might not be enough."""
    masses = np.ones((task.n_ctx, task.d_vocab), dtype=np.int64) if task.masses is None else task.masses
    masses = masses if task.mass_everywhere < _SMALL else masses.astype(object)
    found = np.ones(len(sequences), dtype=masses.dtype)
    for i in range(task.n_ctx):
        found = found * masses[i, sequences[:, i]]
    return found


@dataclass(frozen=True)
class Scale:
    """What sequences weigh."""

    weigh: Callable[[np.ndarray], np.ndarray]
    """The mass of each sequence, one per row: exact integers."""
    total: int
    """The mass of the sequences that have a label."""

    @classmethod
    def of(cls, task: AbstractTask) -> Scale:
        return cls(lambda sequences: weigh(task, sequences), task.total)


def brute_force_by_mass(
    truth: AbstractTruth,
    task: AbstractTask,
    *,
    seconds: float | None,
    threads: int,
    progress: Progress | None,
    budget: Budget,
    scale: Scale | None = None,
) -> ExactCount:
    """The mass of the sequences that the network answers correctly, of those that have a label; what they weigh is what the task says, or a
    scale of its own.

    Guarantee: correct <= (true mass of the correct sequences) <= correct + undecided; all are masses.
    Assumes: nothing.
    Cost: O(d_vocab^n_ctx) times that of one sequence; nothing is shared between sequences.
    Source: definition of accuracy.
    """
    choices, scale = Choices.of(task), Scale.of(task) if scale is None else scale
    count, limits = task.sequences, truth.limits(choices)
    estimate = _estimated_seconds(truth, task, choices, scale) / threads
    if seconds is not None and estimate > seconds:
        raise InfeasibleError(
            f"brute force over {count if count < 10**50 else 'more than 10^49'} sequences would take about {duration(estimate)} on "
            f"{threads} threads, more than the {duration(seconds)} allowed. Allow more (--seconds), sample (--samples), or prove a bound "
            "instead."
        )

    def run(start: int) -> _Batch:
        return _decided(truth, task, scale, _numbered(choices, start, min(start + limits.batch, count)))

    correct = undecided = done = 0
    doubtful: list[tuple[list[int], int, int]] = []
    for start, found in in_threads(run, range(0, count, limits.batch), budget, threads):
        correct += found.correct
        kept = found.doubtful[: max(0, limits.exact - len(doubtful))]
        doubtful += kept
        undecided += sum(mass for *_, mass in found.doubtful[len(kept) :])
        done += min(limits.batch, count - start)
        if progress is not None:
            progress(done, count)
    if done < count:
        why = "was interrupted" if budget.stopped else f"is not finished after {duration(budget.used)}, longer than estimated"
        raise InfeasibleError(f"brute force {why}: {done} of {count} sequences are done. Allow more (--seconds), or sample.")
    exactly = 0
    for row, label, mass in doubtful:
        right = None if budget.over else truth.is_correct(row, label)
        correct += mass if right else 0
        undecided += mass if right is None else 0
        exactly += right is not None
    return ExactCount(correct, scale.total, undecided, exactly)


class _Batch(NamedTuple):
    correct: int
    """The mass of the sequences that are correct for certain."""
    doubtful: list[tuple[list[int], int, int]]
    """Sequence, label and mass of those that float64 cannot decide."""


def _decided(truth: AbstractTruth, task: AbstractTask, scale: Scale, sequences: Int[np.ndarray, "batch n_ctx"]) -> _Batch:
    """Decide one batch in float64."""
    require_ieee754()  # per thread
    labels, masses = task.automaton.label(sequences), scale.weigh(sequences)
    counts = (labels != NO_LABEL) & (masses > 0).astype(bool)
    sequences, labels, masses = np.ascontiguousarray(sequences[counts]), labels[counts], masses[counts]
    if not len(sequences):
        return _Batch(0, [])
    verdicts = truth.verdicts(sequences, labels)
    doubtful = [
        (sequences[number].tolist(), int(labels[number]), int(masses[number])) for number in np.flatnonzero(verdicts == UNCERTAIN).tolist()
    ]
    return _Batch(_added(masses[verdicts == CORRECT]), doubtful)


def _added(masses: np.ndarray) -> int:
    return int(masses.sum()) if len(masses) else 0


def _numbered(choices: Choices, start: int, stop: int) -> Int[np.ndarray, "batch n_ctx"]:
    """The sequences with these numbers, first position highest."""
    codes = np.arange(stop - start).astype(np.int64 if stop < _SMALL else object) + start
    found = np.empty((stop - start, len(choices.sizes)), dtype=np.int64)
    for i in reversed(range(len(choices.sizes))):
        size = int(choices.sizes[i])
        found[:, i] = choices.tokens[i, (codes % size).astype(np.int64)]
        codes = codes // size
    return found


def _estimated_seconds(truth: AbstractTruth, task: AbstractTask, choices: Choices, scale: Scale) -> float:
    """For one thread, from a short timed run on this very model; compiling is not counted."""
    trial = _numbered(choices, 0, min(_TRIAL, task.sequences))
    _decided(truth, task, scale, trial)
    started = time.perf_counter()
    _decided(truth, task, scale, trial)
    elapsed = time.perf_counter() - started
    try:
        return float(elapsed / len(trial) * float(task.sequences))
    except OverflowError:
        return float("inf")
