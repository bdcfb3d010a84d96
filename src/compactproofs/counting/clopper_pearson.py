"""The exact (Clopper-Pearson) confidence interval of a proportion."""

from __future__ import annotations

import math

import numpy as np


def clopper_pearson(successes: int, trials: int, confidence: float = 0.99) -> tuple[float, float]:
    """Confidence interval for a success probability.

    Guarantee: for every true probability, the interval contains it with probability at least `confidence` (up to about 1e-9
    in each end, the accuracy of the bisection).
    Assumes: independent trials.
    Cost: O(min(successes, failures)) per bisection step.
    Source: Clopper and Pearson (1934).

    Example:
        >>> [round(end, 6) for end in clopper_pearson(0, 10, 0.95)]
        [0.0, 0.308497]
    """
    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(f"need 0 <= successes <= trials and trials >= 1, got {successes} of {trials}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    if 2 * successes > trials:
        lower, upper = clopper_pearson(trials - successes, trials, confidence)
        return 1.0 - upper, 1.0 - lower
    tail = (1.0 - confidence) / 2.0
    lower = 0.0 if successes == 0 else _solve(successes - 1, trials, 1.0 - tail)
    upper = 1.0 if successes == trials else _solve(successes, trials, tail)
    return lower, upper


def _solve(k: int, n: int, probability: float) -> float:
    """The p with P(Binomial(n, p) <= k) = probability; the left side decreases in p."""
    log_choose = np.concatenate([[0.0], np.cumsum(np.log((n - np.arange(k)) / (1.0 + np.arange(k))))])
    successes = np.arange(k + 1)

    def cumulative(p: float) -> float:
        if p >= 1.0:
            return 0.0
        logs = log_choose + successes * math.log(p) + (n - successes) * math.log1p(-p)
        peak = float(logs.max())
        return math.exp(peak) * float(np.exp(logs - peak).sum())

    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if cumulative(middle) > probability:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
