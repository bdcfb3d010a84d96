"""Search for hints in float64. Nothing here is trusted and nothing here is charged: bad hints give weak bounds, never wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from compactproofs.arrays.arithmetic import Float64
from compactproofs.bounds.direct_path import DirectPath
from compactproofs.bounds.low_rank_scores import AttentionError, Directions
from compactproofs.model.weights import Weights
from compactproofs.strategies.subcubic.entries import Entries, largest_gaps
from compactproofs.strategies.subcubic.gap_bound import AttentionParts, OutputParts, attention_bounds, wrong_logit_gap_upper
from compactproofs.strategies.subcubic.options import QueryHandling
from compactproofs.strategies.subcubic.workbench import Workbench

ENVELOPE_POINTS = 6
"""Breakpoints per label for the `envelope` handling, ends included; trained models need fewer."""

_SPACING = 1e-5
"""Closer breakpoints would make slopes of chords inaccurate and gain nothing."""

_SAFETY = 1e-9
"""Search asks for this much more than zero, so that intervals confirm what it finds."""


@dataclass(frozen=True)
class Hints:
    """Everything a subcubic proof takes on trust from nobody."""

    directions: Directions
    gaps: np.ndarray
    """(q, m, c): integers."""
    outputs: np.ndarray
    """(m, c) mean attention for `mean_query+diff`; (m, points) breakpoints for `envelope`; unused otherwise."""


def find_hints(direct_path: DirectPath, attention_error: AttentionError, query_handling: QueryHandling, bench: Workbench) -> Hints:
    """Directions, summaries and the smallest gaps that work."""
    with np.errstate(all="ignore"):
        directions = bench.directions()
        attention = bench.attention(attention_error, directions, Float64())
        outputs = bench.outputs(direct_path, directions, Float64())
        gaps, hint = _gaps_and_output_hint(query_handling, attention, outputs, bench.weights)
    return Hints(directions, gaps, hint)


def _gaps_and_output_hint(
    handling: QueryHandling, attention: AttentionParts, outputs: OutputParts, weights: Weights
) -> tuple[np.ndarray, np.ndarray]:
    v, k = weights.d_vocab, weights.n_ctx

    def gaps_for(handling: QueryHandling, hint: np.ndarray) -> np.ndarray:
        return smallest_gaps(lambda e: wrong_logit_gap_upper(handling, attention_bounds(attention, e), outputs, e, hint, Float64()), v, k)

    if handling is QueryHandling.DROP:
        return gaps_for(handling, np.zeros(0)), np.zeros(0)
    if handling is QueryHandling.ENVELOPE:
        hint = breakpoints(outputs.x, outputs.delta, ENVELOPE_POINTS)
        return gaps_for(handling, hint), hint
    gaps = np.ones((v, v, k), dtype=np.int64)
    hint = np.zeros((v, k))
    for _ in range(2):
        entries = Entries.applicable(gaps)
        hint = mean_attention(attention_bounds(attention, entries)[0], entries, v, k)
        gaps = gaps_for(handling, hint)
    return gaps, hint


def smallest_gaps(bound: Callable[[Entries], np.ndarray], v: int, k: int) -> np.ndarray:
    """For each (q, m, c) the smallest gap with a negative bound, or v if there is none; 1 where c = 0.

    The bound decreases as the gap grows (fewer sequences), so bisection finds it; if it did not, the result would merely be worse. The
    largest gap comes first: where it does not work, which is about half of all entries, there is nothing to look for.
    """
    gaps = np.full((v, v, k), v, dtype=np.int64)
    gaps[:, :, 0] = 1
    largest = largest_gaps(v, k)
    q, m, c = np.nonzero((largest >= 1) & (np.arange(k) >= 1))
    high = largest[q, m, c]
    works = bound(Entries(q, m, c, high)) < -_SAFETY
    q, m, c, high = (x[works] for x in (q, m, c, high))
    low = np.ones_like(q)
    while len(q):
        found = low == high
        gaps[q[found], m[found], c[found]] = high[found]
        q, m, c, low, high = (x[~found] for x in (q, m, c, low, high))
        middle = (low + high) // 2
        works = bound(Entries(q, m, c, middle)) < -_SAFETY
        high, low = np.where(works, middle, high), np.where(works, low, middle + 1)
    return gaps


def mean_attention(attention: np.ndarray, entries: Entries, v: int, k: int) -> np.ndarray:
    """(m, c): the mean over the queries of these entries, 0 where there is none."""
    use = np.isfinite(attention)
    cell = (entries.label * k + entries.others)[use]
    total = np.bincount(cell, weights=attention[use], minlength=v * k)
    return np.asarray(total / np.maximum(np.bincount(cell, minlength=v * k), 1)).reshape(v, k)


def breakpoints(x: np.ndarray, delta: np.ndarray, points: int) -> np.ndarray:
    """(m, points): where the maximum over outputs of x + A delta changes its output on [0, 1], with both ends, increasing.

    If there are more changes than points, those stay that a chord would miss most; if fewer, the widest pieces are halved.
    """
    result = np.empty((len(x), points))
    for m in range(len(x)):
        keep = np.isfinite(x[m])
        inner = _changes(x[m][keep], delta[m][keep])
        chosen = _most_useful(inner, x[m][keep], delta[m][keep], points - 2)
        result[m] = _filled([0.0, *chosen, 1.0], points)
    return result


def _filled(points: list[float], number: int) -> list[float]:
    while len(points) < number:
        widest = int(np.argmax(np.diff(points)))
        points.insert(widest + 1, 0.5 * (points[widest] + points[widest + 1]))
    return points


def _changes(intercepts: np.ndarray, slopes: np.ndarray) -> list[float]:
    """Breakpoints in (0, 1) of the upper envelope of lines, from left to right, none closer than _SPACING to another."""
    found: list[float] = []
    if not len(slopes):
        return found
    current = max(range(len(slopes)), key=lambda o: (intercepts[o], slopes[o]))
    while True:
        steeper = np.flatnonzero(slopes > slopes[current])
        if not len(steeper):
            return found
        crossings = (intercepts[current] - intercepts[steeper]) / (slopes[steeper] - slopes[current])
        first = float(crossings.min())
        if first >= 1.0 - _SPACING:
            return found
        if first > (found[-1] if found else 0.0) + _SPACING:
            found.append(first)
        current = max(steeper[crossings <= first], key=lambda o: slopes[o])


def _most_useful(candidates: list[float], intercepts: np.ndarray, slopes: np.ndarray, most: int) -> list[float]:
    """At most `most` candidates, greedily those where the chord through the chosen ones is farthest above the envelope."""
    if len(candidates) <= most:
        return candidates
    every = np.array(candidates)
    heights = (intercepts + every[:, None] * slopes).max(axis=1)
    ends = np.array([0.0, 1.0])
    chosen: list[int] = []
    for _ in range(most):
        points = np.concatenate([ends, every[chosen]])
        order = np.argsort(points)
        values = (intercepts + points[:, None] * slopes).max(axis=1)
        miss = np.interp(every, points[order], values[order]) - heights
        chosen.append(int(np.argmax(miss)))
    return sorted(every[i] for i in set(chosen))
