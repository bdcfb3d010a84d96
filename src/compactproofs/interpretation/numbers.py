"""Means, deviations, norms and histograms that neither overflow nor turn into NaN: what has no value is None."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

BINS = 20
"""Bars of a histogram, unless its values are integers."""

Statistics = dict[str, float | None]
"""Measurements by name; None where a measurement has no value (a ratio with zero below, a maximum over nothing)."""


def finite(value: Any) -> float | None:
    """A float, or None if it is not a finite number."""
    number = float(value)
    return number if math.isfinite(number) else None


def power_of_two(values: np.ndarray) -> float:
    """A power of two near the largest entry: dividing by it is exact and keeps squares in range."""
    exponent = math.frexp(float(np.abs(values).max(initial=0.0)))[1]
    return math.ldexp(1.0, min(max(exponent, -1000), 1000))


def norm(matrix: np.ndarray) -> float:
    """The Frobenius norm (of a vector: the Euclidean norm), squares taken after scaling."""
    scale = power_of_two(matrix)
    return scale * math.sqrt(float(np.square(matrix / scale).sum()))


def mean_and_std(values: np.ndarray, weights: np.ndarray | None = None) -> tuple[float, float]:
    """Weighted mean and standard deviation (a square root, and divided by the sum of weights: erratum C12)."""
    weights = np.ones(len(values)) if weights is None else weights
    total = float(weights.sum())
    if not len(values) or total <= 0:
        return math.nan, math.nan
    scale = power_of_two(values)
    scaled = values / scale
    mean = float((weights * scaled).sum() / total)
    variance = float((weights * np.square(scaled - mean)).sum() / total)
    return mean * scale, math.sqrt(variance) * scale


@dataclass(frozen=True)
class Histogram:
    """Counted values in bins. Counts are exact integers, as there may be more sequences than floats can count."""

    edges: np.ndarray
    """(bins + 1,): increasing; the last bin contains its upper edge."""
    counts: tuple[int, ...]
    """(bins,)"""

    @property
    def total(self) -> int:
        return sum(self.counts)

    def as_json(self) -> dict[str, Any]:
        total = max(self.total, 1)
        return {"bins": self.edges.tolist(), "weights": [count / total for count in self.counts], "total": str(self.total)}


def histogram(values: np.ndarray, counts: Sequence[int] | None = None, *, bins: int = BINS) -> Histogram:
    """A histogram of values, each counted as often as `counts` says (default: once). Values must be finite."""
    each = [1] * len(values) if counts is None else list(counts)
    edges = bin_edges(values, bins)
    return Histogram(edges, tuple(add_up(bin_numbers(values, edges), each, len(edges) - 1)))


def bin_edges(values: np.ndarray, bins: int = BINS) -> np.ndarray:
    """Equal bins from the smallest to the largest value; a single one if they are equal."""
    if not len(values):
        return np.zeros(2)
    low, high = float(values.min()), float(values.max())
    return np.linspace(low, high, bins + 1) if low < high else np.array([low, high])


def bin_numbers(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of each value."""
    bins, low, high = len(edges) - 1, float(edges[0]), float(edges[-1])
    if bins == 1 or not low < high:
        return np.zeros(len(values), dtype=np.int64)
    return np.clip(np.floor((values - low) / (high - low) * bins), 0, bins - 1).astype(np.int64)


def add_up(numbers: np.ndarray, counts: Sequence[int], bins: int) -> list[int]:
    """Exact sum of the counts per bin."""
    totals = [0] * bins
    for number, count in zip(numbers.tolist(), counts, strict=True):
        totals[number] += count
    return totals
