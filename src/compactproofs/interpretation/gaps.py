"""How far below the label the other tokens must be before the simplest gap proof works.

For each query, label and number of other tokens: the smallest gap at which the bound of `subcubic` with exact tables (`max_diff_exact`,
`exact_EQKE+max_diff_exact`, `drop_...`) is negative, weighted by the number of sequences with that query, label and number of others. The
number counts the query if it is not the label, in the bound and in the weights alike (the published weights mix two conventions: erratum
C14). Computed in float64: a measurement, though the same bound in interval arithmetic is a proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compactproofs.interpretation import sequences
from compactproofs.interpretation.numbers import Histogram, Statistics, finite, mean_and_std
from compactproofs.model.weights import Weights
from compactproofs.strategies.shared import Shared
from compactproofs.strategies.subcubic import gap_table
from compactproofs.tasks import task_for


@dataclass(frozen=True)
class Gaps:
    """Smallest working gaps, weighted by sequences."""

    histogram: Histogram
    """Of the gaps, in bins of width one around 1, 2, ...; sequences whose query, label and number of others have no gap are missing."""
    without_gap: int
    """Sequences for which no gap works. With the histogram they add up to all sequences."""
    covered: int
    """Sequences whose tokens keep the gap: what the proof counts."""
    total: int
    """All sequences."""

    def statistics(self) -> Statistics:
        shares = np.array([count / self.total for count in self.histogram.counts])
        gaps = np.arange(1, len(shares) + 1, dtype=np.float64)
        mean, std = mean_and_std(gaps, shares)
        return {
            "gap_mean": finite(mean),
            "gap_std": finite(std),
            "gap_median": _quantile(self.histogram.counts, 50),
            "gap_95_percent": _quantile(self.histogram.counts, 95),
            "gap_none_fraction": self.without_gap / self.total,
            "gap_dropped_sequence_fraction": (self.total - self.covered) / self.total,
        }


def gap_distribution(weights: Weights, shared: Shared | None = None) -> Gaps:
    """Search the gaps. Cost: O(d_vocab^2 n_ctx log d_vocab) after the tables."""
    v, k = weights.d_vocab, weights.n_ctx
    table = gap_table(weights, Shared(weights, task_for(weights, "max")) if shared is None else shared)
    counts = [0] * max(v - 1, 1)
    for m in range(v):
        for c in range(k):
            for query_is_label in (True, False):
                others = c if query_is_label else c - 1
                queries = slice(m, m + 1) if query_is_label else slice(0, m if c > 0 else 0)
                found = table.gaps[queries, m, c][table.works[queries, m, c]]
                for gap, entries in zip(*(x.tolist() for x in np.unique(found, return_counts=True)), strict=True):
                    counts[gap - 1] += entries * sequences.in_stratum(m, others, k)
    return Gaps(
        histogram=Histogram(np.arange(len(counts) + 1) + 0.5, tuple(counts)),
        without_gap=v**k - sum(counts),
        covered=table.covered,
        total=v**k,
    )


def _quantile(counts: tuple[int, ...], percent: int) -> float | None:
    """The smallest gap that suffices for so many percent of the counted sequences."""
    total, so_far = sum(counts), 0
    for gap, count in enumerate(counts, start=1):
        so_far += count
        if total and 100 * so_far >= percent * total:
            return float(gap)
    return None
