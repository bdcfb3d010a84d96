"""The bound at the heart of the subcubic proofs: for a query, a label and a number of other tokens, all at least a gap below the label.

A gap table g[q, m, c] claims: every sequence with query q, label m and exactly c tokens that are not m (the query included if q != m),
all of them at most m - g, is answered correctly. Nothing about g is trusted: `wrong_logit_gap_upper` bounds

    B[q, m, c] >= max over those sequences and over o != m of logit[o] - logit[m]

and only entries with B certainly negative count.

Let A be the attention on label tokens. It lies between `attention_lower` and `attention_upper`, and with x[m, o] = D[m, o] + mu[o] - mu[m],
Delta[m, o] = EVOU[m, o] - EVOU[m, m] and W the largest spread of EVOU[t] over t <= m - g,

    logit[o] - logit[m] <= x[m, o] + A Delta[m, o] + (1 - A) W + r[q].

The maximum over o is bounded by one of three functions H(A), each convex; so is H(A) + (1 - A) W, whose largest value over an
interval is at an end: both ends are evaluated (choosing one by a sign is sound only for `drop`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from compactproofs.arrays.arithmetic import AbstractArithmetic
from compactproofs.bounds import row_spreads
from compactproofs.bounds.direct_path import DirectBound
from compactproofs.bounds.excluding import excluding_label, worst_position
from compactproofs.bounds.low_rank_scores import Scores
from compactproofs.model.weights import Weights
from compactproofs.strategies.subcubic.entries import Entries
from compactproofs.strategies.subcubic.options import QueryHandling


@dataclass(frozen=True)
class AttentionParts:
    """What bounding attention needs: depends on the scores only."""

    approximate: Any
    """(q, t)"""
    error_upper: Any
    """(q,)"""
    running_max: Any
    """(q, T): largest approximate score of a token <= T."""
    running_min: Any
    """(q, T)"""
    least_ratio: Any
    """(q, c, own): positional weight of other tokens over that of label tokens, at least; own = 1 if the query is the label."""
    most_ratio: Any
    """(q, c, own): the same, at most."""


@dataclass(frozen=True)
class OutputParts:
    """What bounding outputs needs: values and direct path."""

    x: Any
    """(m, o): D + mu[o] - mu[m]; minus infinity at o = m."""
    delta: Any
    """(m, o): EVOU[m, o] - EVOU[m, m]."""
    x_max: Any
    """(m,): over o != m."""
    delta_max: Any
    """(m,): over o != m."""
    delta_min: Any
    """(m,): over o != m."""
    wrong_upper: Any
    """(T,): largest spread of EVOU[t] over t <= T."""
    rest_upper: Any
    """(q,): the part of the direct path that depends on the query."""


def attention_parts(scores: Scores, n_ctx: int, arithmetic: AbstractArithmetic) -> AttentionParts:
    """Running extremes of scores and extremes of positional weights. Cost: O(d_vocab^2 + d_vocab n_ctx)."""
    with arithmetic.step("attention bounds"):
        weights = np.sort(np.exp(scores.EQKP[:, :-1] - scores.EQKP[:, -1:]), axis=1)
        rows = weights.shape[0]
        none = np.zeros((rows, 1))
        low = none if n_ctx == 1 else np.concatenate([none, weights.cumsum(axis=1)], axis=1)
        high = none if n_ctx == 1 else np.concatenate([none, weights[:, ::-1].cumsum(axis=1)], axis=1)
        c = np.arange(n_ctx)
        others, labels = np.maximum(c - 1, 0), np.minimum(n_ctx - c, n_ctx - 1)
        own_others, own_labels = c, n_ctx - 1 - c
        no_label = (labels == 0).astype(np.float64)  # n_ctx = 1: no such sequence, but nothing to divide by either
        return AttentionParts(
            approximate=scores.approximate,
            error_upper=scores.error_upper * np.ones(rows),
            running_max=np.maximum.accumulate(scores.approximate, axis=1),
            running_min=np.minimum.accumulate(scores.approximate, axis=1),
            least_ratio=np.stack(
                [(low[:, others] + 1.0) / (high[:, labels] + no_label), low[:, own_others] / (high[:, own_labels] + 1.0)], axis=2
            ),
            most_ratio=np.stack(
                [(high[:, others] + 1.0) / (low[:, labels] + no_label), high[:, own_others] / (low[:, own_labels] + 1.0)], axis=2
            ),
        )


def output_parts(weights: Weights, direct: DirectBound, arithmetic: AbstractArithmetic) -> OutputParts:
    """Tables over labels and outputs. Cost: O(d_vocab^2 (d_model + n_ctx))."""
    W_E, W_pos, W_V, W_O, W_U = (arithmetic.array(weights.tensors[name]) for name in ("W_E", "W_pos", "W_V", "W_O", "W_U"))
    with arithmetic.step("EVOU and PVOU"):
        VOU = W_V @ (W_O @ W_U)
        EVOU, PVOU = W_E @ VOU, W_pos @ VOU
    with arithmetic.step("outputs"):
        labels = np.arange(weights.d_vocab)
        x = excluding_label(worst_position(PVOU, labels) + (direct.mu[None] - direct.mu[labels][:, None]), labels)
        delta = EVOU - EVOU[labels, labels][:, None]
        without_label = excluding_label(delta, labels)
        return OutputParts(
            x=x,
            delta=delta,
            x_max=x.max(axis=1),
            delta_max=without_label.max(axis=1),
            delta_min=-(excluding_label(-delta, labels).max(axis=1)),
            wrong_upper=np.maximum.accumulate(row_spreads.spread(EVOU), axis=0),
            rest_upper=direct.rest_upper,
        )


def attention_bounds(parts: AttentionParts, entries: Entries) -> tuple[Any, Any]:
    """Bound the attention on label tokens, for each entry.

    Guarantee: attention_lower <= attention on label tokens <= attention_upper for the sequences of each entry.
    Assumes: entries are applicable; what they give for c = 0 is meaningless and must not be used.
    Cost: O(1) per entry.
    Source: paper, "Subcubic proof"; O(1) per entry by prefix sums of positional weights.
    """
    q, m, c, own, T = entries.query, entries.label, entries.others, entries.own, entries.largest_other
    label = parts.approximate[q, m]
    error = parts.error_upper[q]
    from_above = parts.running_max[q, T] - label + error
    from_below = parts.running_min[q, T] - label - error
    attention_lower = 1.0 / (parts.most_ratio[q, c, own] * np.exp(from_above) + 1.0)
    attention_upper = 1.0 / (parts.least_ratio[q, c, own] * np.exp(from_below) + 1.0)
    return attention_lower, attention_upper


def wrong_logit_gap_upper(
    handling: QueryHandling,
    attention: tuple[Any, Any],
    outputs: OutputParts,
    entries: Entries,
    hint: np.ndarray,
    arithmetic: AbstractArithmetic,
) -> Any:
    """B of the module's docstring, for each entry.

    Guarantee: every sequence of entry (q, m, c) has logit[o] - logit[m] <= B[q, m, c] for all o != m.
    Assumes: entries are applicable; nothing about `hint` (mean attention per (m, c), or breakpoints per m in [0, 1] from 0 to 1).
    Cost: O(1) per entry, and the number of breakpoints for `envelope`; O(d_vocab d_vocab_out) per column of the hint.
    Source: paper, "Subcubic proof"; signs and endpoints repaired (errata A2, A3, A4).
    """
    points = arithmetic.array(hint)  # differences of hints are rounded like everything else, so they must be enclosed too
    heights = None if handling is QueryHandling.DROP else (outputs.x[:, None] + points[:, :, None] * outputs.delta[:, None]).max(axis=2)
    wrong = outputs.wrong_upper[entries.largest_other]
    worst: Any = None
    for A in attention:
        value = _largest_output(handling, A, outputs, entries, points, heights) - A * wrong
        worst = value if worst is None else np.maximum(worst, value)
    with_others = worst + wrong
    alone = np.flatnonzero(entries.others == 0)
    only_label = Entries(entries.query[alone], entries.label[alone], entries.others[alone], entries.gap[alone])
    label_alone = _largest_output(handling, arithmetic.array(np.ones(len(alone))), outputs, only_label, points, heights)
    both = np.concatenate([with_others, label_alone])
    chosen = np.arange(len(entries.others))
    chosen[alone] = len(chosen) + np.arange(len(alone))
    return both[chosen] + outputs.rest_upper[entries.query]


def _largest_output(handling: QueryHandling, A: Any, outputs: OutputParts, entries: Entries, hint: Any, heights: Any) -> Any:
    """H(A) >= max_{o != m} (x[m, o] + A Delta[m, o]), convex in A, for each entry; `heights` are the maxima at the hint's points."""
    m, c = entries.label, entries.others
    match handling:
        case QueryHandling.DROP:
            return outputs.x_max[m] + A * outputs.delta_max[m]
        case QueryHandling.MEAN_QUERY_DIFF:
            excess = A - hint[m, c]
            slope = np.maximum(excess * outputs.delta_max[m], excess * outputs.delta_min[m])
            return heights[m, c] + slope
        case QueryHandling.ENVELOPE:
            worst: Any = None
            for j in range(hint.shape[1] - 1):
                width = hint[:, j + 1] - hint[:, j]
                slope = (heights[:, j + 1] - heights[:, j]) / width
                chord = heights[:, j][m] + (A - hint[:, j][m]) * slope[m]
                worst = chord if worst is None else np.maximum(worst, chord)
            return worst
