"""What the authors' code computes, errors included. Not a proof: half of it is unsound, and all of it is float arithmetic.

The differences from the repaired strategy, by the numbers of the errata in docs/strategies/errata.md:

- A5: gaps are searched with a direct path of the wrong position (mean of W_pos instead of the last row);
- gaps are searched as one uniform gap for all entries, from large to small; entries that never work keep gap 1 (B2);
- A7: wrong tokens are bounded with the smallest gap of any query, which is always 1;
- A2: `mean_query+diff` multiplies the largest slope by a difference of either sign;
- A6: the `svd_query` row is too long by a factor of about sqrt(d_vocab);
- A1: one token too few is counted per free position.
"""

from __future__ import annotations

import numpy as np

from compactproofs.arrays.arithmetic import Float64
from compactproofs.bounds.direct_path import DirectPath, bound_rows
from compactproofs.bounds.excluding import excluding_label, worst_position
from compactproofs.bounds.low_rank_scores import AttentionError
from compactproofs.form.tables import float_circuits
from compactproofs.model.weights import Weights
from compactproofs.strategies.subcubic.counting import count_sequences
from compactproofs.strategies.subcubic.entries import Entries
from compactproofs.strategies.subcubic.gap_bound import AttentionParts, OutputParts, attention_bounds, output_parts
from compactproofs.strategies.subcubic.options import QueryHandling
from compactproofs.strategies.subcubic.published_search import uniform_gap_search
from compactproofs.strategies.subcubic.search import mean_attention
from compactproofs.strategies.subcubic.workbench import Workbench


def published_count(direct_path: DirectPath, attention_error: AttentionError, query_handling: QueryHandling, bench: Workbench) -> int:
    """The count that the authors' code gives (in float64 instead of float32)."""
    with np.errstate(all="ignore"):
        return _published_count(direct_path, attention_error, query_handling, bench)


def _published_count(direct_path: DirectPath, attention_error: AttentionError, query_handling: QueryHandling, bench: Workbench) -> int:
    arithmetic, weights = Float64(), bench.weights
    W_E, W_pos, W_U = (weights.tensors[name].astype(np.float64) for name in ("W_E", "W_pos", "W_U"))
    stale = W_E + W_pos.mean(axis=0)
    summary = _published_summary(stale, W_U)
    searched = output_parts(weights, bound_rows(direct_path, stale, W_U, summary), arithmetic)
    checked = output_parts(weights, bound_rows(direct_path, W_E + W_pos[-1], W_U, summary), arithmetic)
    attention = bench.attention(attention_error, bench.directions(), arithmetic)
    gaps = uniform_gap_search(
        attention.approximate,
        attention.error_upper,
        attention.running_max,
        attention.running_min,
        attention.least_ratio,
        attention.most_ratio,
        searched.x,
        searched.delta,
        searched.x_max,
        searched.delta_max,
        searched.wrong_upper,
        searched.rest_upper,
        query_handling is QueryHandling.MEAN_QUERY_DIFF,
    )
    bound = _bound(query_handling, attention, checked, gaps)
    labels = np.arange(weights.d_vocab)
    bound[labels, labels, 0] = _label_alone(weights)
    return _count(gaps, bound)


def _published_summary(stale: np.ndarray, W_U: np.ndarray) -> np.ndarray:
    u = np.linalg.svd(stale @ W_U)[0][:, 0]
    row = np.asarray(u @ stale)
    closer = np.linalg.norm((stale - row) @ W_U, axis=1).mean() <= np.linalg.norm((stale + row) @ W_U, axis=1).mean()
    return row if closer else -row


def _bound(handling: QueryHandling, attention: AttentionParts, outputs: OutputParts, gaps: np.ndarray) -> np.ndarray:
    """B as published, for c >= 1; NaN where an entry is not applicable."""
    v, _, k = gaps.shape
    labels = np.arange(v)[:, None]
    queries = np.arange(v)[:, None, None] <= np.arange(v)[None, :, None]
    smallest = np.where(queries, gaps, v).min(axis=0)
    wrong = np.where(labels >= smallest, outputs.wrong_upper[np.clip(labels - smallest, 0, v - 1)], np.nan)
    entries = Entries.applicable(gaps)
    m, c = entries.label, entries.others
    lower, upper = attention_bounds(attention, entries)
    A = np.where(outputs.delta_max[m] < wrong[m, c], lower, upper)
    if handling is QueryHandling.MEAN_QUERY_DIFF:
        mean = mean_attention(A, entries, v, k)
        at_mean = (outputs.x[:, None] + mean[:, :, None] * outputs.delta[:, None]).max(axis=2)
    else:
        mean = np.zeros((v, k))
        at_mean = np.broadcast_to(outputs.x_max[:, None], (v, k))
    average = at_mean + (1.0 - mean) * wrong
    bound = average[m, c] + (A - mean[m, c]) * (outputs.delta_max[m] - wrong[m, c]) + outputs.rest_upper[entries.query]
    return entries.placed(np.where(c == 0, np.nan, bound), into=np.full(gaps.shape, np.nan))


def _label_alone(weights: Weights) -> np.ndarray:
    """c = 0, with the direct path exact."""
    tables = float_circuits(weights)
    labels = np.arange(weights.d_vocab)
    position = excluding_label(worst_position(tables.PVOU, labels), labels)
    direct = tables.EU - tables.EU[labels, labels][:, None]
    values = tables.EVOU[labels] - tables.EVOU[labels, labels][:, None]
    return np.asarray((direct + values + position).max(axis=1))


def _count(gaps: np.ndarray, bound: np.ndarray) -> int:
    entries = Entries.at(np.nonzero(bound < 0), gaps)
    return count_sequences(entries.others - 1 + entries.own, entries.label - entries.gap, gaps.shape[2])
