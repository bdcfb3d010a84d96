"""The direct path EU = (W_E + W_pos[-1]) W_U, bounded in five ways.

Each gives a vector mu over outputs and a number r per query with EU[q, o] - EU[q, m] <= mu[o] - mu[m] + r[q] for all q, o, m.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from compactproofs.arrays.arithmetic import AbstractArithmetic
from compactproofs.bounds import row_spreads
from compactproofs.form.embedded import embedded
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network


class DirectPath(StrEnum):
    """How the direct path EU[q, o] - EU[q, m] is bounded."""

    MEAN_QUERY = "mean_query+max_diff"
    SVD_QUERY = "svd_query+max_diff"
    MAX_DIFF = "max_diff"
    MAX_DIFF_EXACT = "max_diff_exact"
    GLOBAL_MAX_DIFF_EXACT = "global_max_diff_exact"


@dataclass(frozen=True)
class DirectBound:
    """See the module's docstring."""

    mu: Any
    """(d_vocab_out,)"""
    rest_upper: Any
    """(d_vocab,): r."""


def direct_bound(handling: DirectPath, weights: Model, summary: np.ndarray, arithmetic: AbstractArithmetic) -> DirectBound:
    """Bound the direct path.

    Guarantee: EU[q, o] - EU[q, m] <= mu[o] - mu[m] + rest_upper[q] for all q, o, m.
    Assumes: nothing about `summary` (used by `svd_query+max_diff` only).
    Cost: O(d_vocab d_model), or O(d_vocab^2 d_model) for the exact ones.
    Source: paper, "Subcubic proof", direct path.
    """
    if isinstance(weights, Network):
        rows = embedded(weights, arithmetic)
        Eq, W_U = rows.stream, rows.W_U
    else:
        W_E, W_pos, W_U = (arithmetic.array(weights.tensors[name]) for name in ("W_E", "W_pos", "W_U"))
        with arithmetic.step("embeddings"):
            Eq = W_E + W_pos[-1]
    with arithmetic.step("direct path"):
        return bound_rows(handling, Eq, W_U, summary)


def bound_rows(handling: DirectPath, Eq: Any, W_U: Any, summary: np.ndarray) -> DirectBound:
    """The same for given query embeddings."""
    nothing = np.zeros(W_U.shape[1])
    match handling:
        case DirectPath.MAX_DIFF_EXACT:
            return DirectBound(nothing, row_spreads.spread(Eq @ W_U))
        case DirectPath.GLOBAL_MAX_DIFF_EXACT:
            EU = Eq @ W_U
            return DirectBound(nothing, (EU.max() - EU.min()) * np.ones(Eq.shape[0]))
        case DirectPath.MAX_DIFF:
            return DirectBound(nothing, np.abs(Eq) @ row_spreads.spread(W_U))
        case DirectPath.MEAN_QUERY:
            h = Eq.mean(axis=0)
        case DirectPath.SVD_QUERY:
            h = summary
    return DirectBound(h @ W_U, np.abs(Eq - h) @ row_spreads.spread(W_U))
