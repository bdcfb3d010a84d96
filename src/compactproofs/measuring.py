"""How often the model is right: exactly where every sequence can be evaluated, else in a sample."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from compactproofs.arrays.rounding import round_down, round_up
from compactproofs.counting.brute_force import SHARED_KEY, brute_force
from compactproofs.counting.clopper_pearson import clopper_pearson
from compactproofs.counting.gaps import MarginTruth, right_by_margin
from compactproofs.counting.outcome import ExactCount, Progress
from compactproofs.counting.sampling import sample
from compactproofs.errors import TaskError
from compactproofs.model.kinds import Model
from compactproofs.strategies.base import require_plain
from compactproofs.strategies.shared import Shared
from compactproofs.tasks import AbstractTask, check_fits, task_for
from compactproofs.tasks.margin import require_margin
from compactproofs.version import __version__

DEFAULT_SECONDS = 60.0
"""Brute force is refused if it would take longer, unless more is allowed."""


@dataclass(frozen=True)
class Accuracy:
    """The measured accuracy of one model."""

    method: str
    """`brute-force` (every sequence, exact) or `sampling`."""
    correct: int
    """Sequences (of `total`) on which the label's logit is strictly the largest, over the reals."""
    total: int
    """Sequences evaluated: all of them, or the number of samples."""
    undecided: int
    """Sequences that neither float64 nor exact arithmetic decided; 0 expected."""
    decided_exactly: int
    """Sequences that needed exact arithmetic."""
    interval: tuple[float, float]
    """Brute force: certain bounds, equal up to rounding. Sampling: Clopper-Pearson interval at `confidence`."""
    confidence: float
    """1.0 for brute force."""
    seconds: float
    """Wall time, compilation included if it was needed."""
    assumptions: tuple[str, ...]
    """What was assumed about the model file."""
    margin: float = 0.0
    """A sequence counts as correct if the label wins by more than this."""

    @property
    def accuracy(self) -> float:
        """correct / total, rounded to nearest (undecided sequences count as wrong)."""
        return self.correct / self.total

    def as_json(self) -> dict[str, Any]:
        asked = {} if self.margin == 0.0 else {"margin": self.margin}
        return asked | {
            "accuracy": self.accuracy,
            "correct": str(self.correct),
            "total": str(self.total),
            "undecided": self.undecided,
            "decided_exactly": self.decided_exactly,
            "method": self.method,
            "interval": list(self.interval),
            "confidence": self.confidence,
            "seconds": self.seconds,
            "assumptions": list(self.assumptions),
            "version": __version__,
        }


def accuracy(
    weights: Model,
    task: AbstractTask | None = None,
    *,
    samples: int | None = None,
    seconds: float | None = DEFAULT_SECONDS,
    confidence: float = 0.99,
    seed: int = 0,
    progress: Progress | None = None,
    shared: Shared | None = None,
    margin: float = 0.0,
) -> Accuracy:
    """Measure the accuracy over all input sequences, exactly, or over `samples` random ones.

    Raises `InfeasibleError` with an estimate if that would take longer than `seconds` (None: no limit).
    With the memory `shared` of earlier proofs of the same model and task, brute force is not repeated.
    With a `margin` a sequence is right if the label's logit is larger by more than that than every other.

    Example:
        >>> import compactproofs as cp
        >>> result = cp.accuracy(cp.zoo("max-of-10"), samples=10_000)
        >>> result.method, result.interval[0] <= result.accuracy <= result.interval[1]
        ('sampling', True)
    """
    task = task_for(weights) if task is None else task
    check_fits(task, weights)
    memory = Shared(weights, task) if shared is None else shared
    memory.require(weights, task)
    if samples is not None and samples < 1:
        raise TaskError(f"samples={samples} must be at least 1")
    if not 0 < confidence < 1:
        raise TaskError(f"confidence={confidence} must lie strictly between 0 and 1")
    started, margin = time.perf_counter(), require_margin(margin)
    plain = None if margin == 0.0 else require_plain(weights, "accuracy by a margin")
    if samples is None:
        if plain is not None:
            count = right_by_margin(plain, task, margin, seconds=seconds, progress=progress)
        else:
            count = memory.get(SHARED_KEY, lambda: brute_force(weights, task, seconds=seconds, progress=progress))
            memory.record("brute-force", count.correct, count.correct + count.undecided)
        found = of_count(weights, count, None, margin)
    else:
        truth = None if plain is None else MarginTruth(plain, margin)
        count = sample(weights, task, samples, seed=seed, seconds=seconds, progress=progress, truth=truth)
        found = of_count(weights, count, confidence, margin)
    return replace(found, seconds=time.perf_counter() - started)


def of_count(weights: Model, count: ExactCount, confidence: float | None, margin: float) -> Accuracy:
    """The accuracy that a count of all sequences says (`confidence` None), or one of a sample."""
    least, most = count.correct, count.correct + count.undecided
    if confidence is None:
        interval = round_down(Fraction(least, count.total)), round_up(Fraction(most, count.total))
    else:
        interval = clopper_pearson(least, count.total, confidence)[0], clopper_pearson(most, count.total, confidence)[1]
    return Accuracy(
        method="brute-force" if confidence is None else "sampling",
        correct=count.correct,
        total=count.total,
        undecided=count.undecided,
        decided_exactly=count.decided_exactly,
        interval=interval,
        confidence=1.0 if confidence is None else confidence,
        seconds=0.0,
        assumptions=weights.assumptions,
        margin=margin,
    )
