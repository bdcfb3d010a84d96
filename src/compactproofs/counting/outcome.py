"""What evaluating sequences ends in, whatever the network."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

PATIENCE = 1.2
"""Brute force may take so many times the time allowed before it is given up; it is not started if it is expected to take longer."""

Progress = Callable[[int, int], None]
"""Called with (sequences done, sequences in all)."""


@dataclass(frozen=True)
class ExactCount:
    """The outcome of evaluating every sequence (or every sample of a batch)."""

    correct: int
    """Sequences on which the label's logit is strictly the largest: a fact over the reals."""
    total: int
    """Sequences evaluated."""
    undecided: int
    """Sequences left undecided; 0 unless a model has an enormous number of near ties, or exact ties of several heads or neurons."""
    decided_exactly: int
    """Sequences whose float64 margin was within the rounding bound and that exact arithmetic decided."""


def duration(seconds: float) -> str:
    """A duration a person can grasp."""
    if seconds == math.inf:
        return "more than 1e300 years"
    for unit, size in (("years", 31_557_600.0), ("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} seconds"
