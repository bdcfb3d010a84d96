"""How much more attention a larger token gets: differences of scores, by the gap between the tokens.

For a query q, a largest token i and a smaller token j the difference is EQKE[q, i] - EQKE[q, j] (attention scale included), the slope this
divided by i - j. Each counts as often as there are sequences with query q and largest token i, for every j < i; so q <= i. (The published
code leaves out q > j instead: erratum C13.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from compactproofs.form.tables import float_circuits
from compactproofs.interpretation import sequences
from compactproofs.interpretation.numbers import BINS, Histogram, Statistics, bin_edges, bin_numbers, finite, power_of_two
from compactproofs.model.weights import Weights


@dataclass(frozen=True)
class AttentionSlopes:
    """Score differences between the largest token and smaller ones, weighted by sequences."""

    mean: float
    """Mean slope."""
    std: float
    """Standard deviation of the slopes."""
    smallest: float
    """Smallest slope; negative if some smaller token gets more attention."""
    largest: float
    """Largest slope."""
    difference_mean_by_gap: np.ndarray
    """(d_vocab - 1,): mean difference of scores for gaps 1, 2, ..."""
    difference_std_by_gap: np.ndarray
    """(d_vocab - 1,): its standard deviation."""
    histogram: Histogram
    """Of the slopes."""

    def statistics(self) -> Statistics:
        with np.errstate(over="ignore"):
            ratio = float(np.exp(self.mean))
        prefix = "EQKEHistAttentionDifferenceOverGapDupBySeqCount"
        return {
            f"{prefix}MeanFloat": finite(self.mean),
            f"{prefix}StdDevFloat": finite(self.std),
            f"{prefix}MinFloat": finite(self.smallest),
            f"{prefix}MaxFloat": finite(self.largest),
            "attention_ratio_per_token": finite(ratio),
        }


def attention_slopes(weights: Weights) -> AttentionSlopes:
    """Measure the slopes. Cost: O(d_vocab^3) time, O(d_vocab^2) memory."""
    EQKE, v, k = float_circuits(weights).EQKE, weights.d_vocab, weights.n_ctx
    if v == 1:
        return AttentionSlopes(math.nan, math.nan, math.nan, math.nan, np.zeros(0), np.zeros(0), Histogram(np.zeros(2), (0,)))
    scale = power_of_two(EQKE)
    scores = EQKE / scale

    weight, slope_sum, smallest, largest = 0.0, 0.0, math.inf, -math.inf
    gap_weight, gap_sum = np.zeros(v - 1), np.zeros(v - 1)
    for share, difference in _differences(scores, k):
        slopes = difference / np.arange(1, difference.shape[1] + 1)
        weight += float(share.sum()) * slopes.shape[1]
        slope_sum += float((share @ slopes).sum())
        smallest, largest = min(smallest, float(slopes.min())), max(largest, float(slopes.max()))
        gap_weight[: slopes.shape[1]] += share.sum()
        gap_sum[: slopes.shape[1]] += share @ difference
    mean, gap_mean = slope_sum / weight, gap_sum / gap_weight

    variance, gap_variance = 0.0, np.zeros(v - 1)
    edges = bin_edges(np.array([smallest, largest]), BINS)
    counts = [0] * (len(edges) - 1)
    for share, difference in _differences(scores, k):
        gaps = difference.shape[1]
        slopes = difference / np.arange(1, gaps + 1)
        variance += float((share @ np.square(slopes - mean)).sum()) / weight
        gap_variance[:gaps] += share @ np.square(difference - gap_mean[:gaps]) / gap_weight[:gaps]
        label = gaps
        smaller = np.bincount(bin_numbers(slopes[:-1].ravel(), edges), minlength=len(counts)).tolist()
        own = np.bincount(bin_numbers(slopes[-1], edges), minlength=len(counts)).tolist()
        for b in range(len(counts)):
            counts[b] += smaller[b] * sequences.with_label_and_query(label, 0, k)
            counts[b] += own[b] * sequences.with_label_and_query(label, label, k)
    return AttentionSlopes(
        mean=mean * scale,
        std=math.sqrt(variance) * scale,
        smallest=smallest * scale,
        largest=largest * scale,
        difference_mean_by_gap=gap_mean * scale,
        difference_std_by_gap=np.sqrt(gap_variance) * scale,
        histogram=Histogram(edges * scale, tuple(counts)),
    )


def _differences(scores: np.ndarray, n_ctx: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each label i: the share of all sequences per query q <= i, and scores[q, i] - scores[q, i - gap] for gap = 1 .. i."""
    total = len(scores) ** n_ctx
    for i in range(1, len(scores)):
        share = np.array([sequences.with_label_and_query(i, q, n_ctx) / total for q in range(i + 1)])
        yield share, scores[: i + 1, i, None] - scores[: i + 1, :i][:, ::-1]
