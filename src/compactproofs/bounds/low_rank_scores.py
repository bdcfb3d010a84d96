"""EQKE replaced by something cheaper plus a bounded error: ten ways, from two decompositions.

Rank one (`svd`, `max_diff`, ...): X = Eq Q K^T and Y = Ek^T are split by one direction each, X = u a + X1, Y = b z + Y1. Then
X Y = u (a Y) + (X1 b) z + X1 Y1, exactly, whatever the directions u and z are: the first two terms are outer products, the last is the
error. The published code drops the terms that vanish only for exact singular vectors.

Peeling (`*subproduct*`): Eq, Ek, Q and K are each split by hinted directions, so that all of EQKE except q' Q' K'^T k'^T is a sum of six
outer products.

Directions are hints: any vectors give a true statement.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from compactproofs.arrays import FlopCounter
from compactproofs.arrays.arithmetic import AbstractArithmetic, Counting, Float64
from compactproofs.bounds import row_spreads
from compactproofs.form.embedded import embedded
from compactproofs.form.tables import float_circuits, position_scores
from compactproofs.model.kinds import Model
from compactproofs.model.weights import Weights


class AttentionError(StrEnum):
    """What replaces EQKE, and how the error of the replacement is bounded."""

    SVD = "svd"
    MAX_DIFF = "max_diff"
    MAX_DIFF_SUBPRODUCT = "max_diff_subproduct"
    MAX_DIFF_SUBPRODUCT_RECURSIVE = "max_diff_subproduct_recursive"
    MEAN_MAX_DIFF = "mean+max_diff"
    MEAN_MAX_DIFF_SUBPRODUCT = "mean+max_diff_subproduct"
    MEAN_MAX_DIFF_SUBPRODUCT_RECURSIVE = "mean+max_diff_subproduct_recursive"
    MEAN_RECURSIVE = "mean_recursive+max_diff_subproduct_recursive"
    EXACT_EQKE = "exact_EQKE+max_diff_exact"
    MAX_DIFF_EXACT = "max_diff_exact"


@dataclass(frozen=True, eq=False)
class Directions:
    """Hints: directions to split off. Found by singular value decompositions, trusted by nobody."""

    query: np.ndarray
    """(d_vocab,): about the first left singular vector of EQKE."""
    key: np.ndarray
    """(rows,), which is d_vocab unless position and token mix: about the first right singular vector of EQKE (the size direction)."""
    second_query: np.ndarray
    """(d_vocab,): main direction of the query embeddings after `query` is removed."""
    second_key: np.ndarray
    """(rows,): main direction of the key embeddings after `key` is removed."""
    W_Q_left: np.ndarray
    """(d_model,): first left singular vector of W_Q."""
    W_K_left: np.ndarray
    """(d_model,): first left singular vector of W_K."""
    query_summary: np.ndarray
    """(d_model,): a row that resembles all query embeddings as the unembedding sees them (for `svd_query+max_diff`)."""

    @classmethod
    def blank(cls, weights: Model) -> Directions:
        """Useless but valid hints of the right sizes."""
        return cls(*(np.zeros(size) for size in direction_sizes(weights)))


def direction_sizes(weights: Model) -> list[int]:
    """How long the directions of a network are, in the order of `Directions`."""
    rows = embedded(weights, Counting(FlopCounter()))
    (v, d), (n, e) = rows.queries.shape, rows.keys.shape
    return [v, n, v, n, d, e, rows.stream.shape[1]]


@dataclass(frozen=True)
class Scores:
    """Attention scores up to a bounded error."""

    approximate: Any
    """(q, t): stands for EQKE."""
    error_upper: Any
    """(q,) or scalar: the spread over t of EQKE - approximate is at most this, for each q."""
    EQKP: Any
    """(q, i)."""
    factors: tuple[tuple[Any, Any], ...] = ()
    """Pairs (q,), (t,) whose outer products add up to `approximate`; none if it is EQKE itself."""


def find_directions(weights: Model) -> Directions:
    """Search (uncharged): the directions the paper uses."""
    rows = embedded(weights, Float64())
    W_Q, W_K = rows.W_Q, rows.W_K
    U, _, Vh = np.linalg.svd(float_circuits(weights).EQKE, full_matrices=isinstance(weights, Weights))
    query, key = U[:, 0], Vh[0]
    query_rest = _without(rows.queries, query)
    key_rest = _without(rows.keys, key)
    u = _first_left(rows.stream @ rows.W_U)
    return Directions(
        query=query,
        key=key,
        second_query=_first_left(query_rest),
        second_key=_first_left(key_rest, full=isinstance(weights, Weights)),
        W_Q_left=_first_left(W_Q),
        W_K_left=_first_left(W_K),
        query_summary=u.mean() * (u @ rows.stream),
    )


def approximate_scores(error: AttentionError, weights: Model, directions: Directions, arithmetic: AbstractArithmetic) -> Scores:
    """Bound the attention scores.

    Guarantee: for every q and all tokens t, t': |(EQKE - approximate)[q, t] - (EQKE - approximate)[q, t']| <= error_upper[q].
    Assumes: nothing about the directions.
    Cost: from O(d_vocab^2 + d_vocab d_model) to O(d_vocab^2 d_model), depending on `error`; see its documentation.
    Source: paper, "Subcubic proof"; cross terms added (erratum B4).
    """
    rows = embedded(weights, arithmetic, again=True)
    Eq, Ek, W_K = rows.queries, rows.keys, rows.W_K
    with arithmetic.step("embeddings"):
        Q = rows.W_Q * arithmetic.inverse_sqrt(rows.divisor)
    with arithmetic.step("EQKP"):
        EQKP = position_scores(rows, lambda positions: Eq @ (Q @ (W_K.T @ positions.T)), arithmetic)
    with arithmetic.step("attention scores"):
        if error is AttentionError.EXACT_EQKE:
            return Scores((Eq @ Q) @ (W_K.T @ Ek.T), np.zeros(weights.d_vocab), EQKP)
        if error in _RANK_ONE:
            factors, X1, Y1 = _rank_one(Eq, Q, W_K, Ek, directions)
            return Scores(_outer_sum(factors), _rank_one_error(error, X1, Y1), EQKP, factors)
        factors, rest = peeled(Eq, Q, W_K, Ek, directions)
        return Scores(_outer_sum(factors), _peeled_error(error, rest), EQKP, factors)


def _outer_sum(factors: tuple[tuple[Any, Any], ...]) -> Any:
    total = factors[0][0][:, None] * factors[0][1]
    for column, row in factors[1:]:
        total = total + column[:, None] * row
    return total


_RANK_ONE = (AttentionError.SVD, AttentionError.MAX_DIFF, AttentionError.MEAN_MAX_DIFF, AttentionError.MAX_DIFF_EXACT)


def _rank_one(Eq: Any, Q: Any, W_K: Any, Ek: Any, d: Directions) -> tuple[tuple[tuple[Any, Any], ...], Any, Any]:
    X, Y = (Eq @ Q) @ W_K.T, Ek.T
    a, X1 = _peel(X, d.query)
    b = Y @ d.key
    Y1 = Y - b[:, None] * d.key
    return ((d.query, a @ Y), (X1 @ b, d.key)), X1, Y1


def _rank_one_error(error: AttentionError, X1: Any, Y1: Any) -> Any:
    if error is AttentionError.SVD:
        return row_spreads.spread_by_singular_value_upper(X1, Y1)
    if error is AttentionError.MAX_DIFF_EXACT:
        return row_spreads.spread(X1 @ Y1)
    return row_spreads.spread_of_product_upper(X1, Y1, mean=error is AttentionError.MEAN_MAX_DIFF)


def peeled(Eq: Any, Q: Any, W_K: Any, Ek: Any, d: Directions) -> tuple[tuple[tuple[Any, Any], ...], tuple[Any, ...]]:
    """EQKE minus a product of four small matrices, as a sum of six outer products; and the four (q', Q', K'^T, k'^T)."""
    a1, q_rest = _peel(Eq, d.query)
    a2, q_last = _peel(q_rest, d.second_query)
    b1, k_rest = _peel(Ek, d.key)
    b2, k_last = _peel(k_rest, d.second_key)
    g, Q_last = _peel(Q, d.W_Q_left)
    h, K_last = _peel(W_K, d.W_K_left)
    factors = (
        (d.query, ((a1 @ Q) @ W_K.T) @ Ek.T),
        (q_rest @ (Q @ (W_K.T @ b1)), d.key),
        (d.second_query, ((a2 @ Q) @ W_K.T) @ k_rest.T),
        (q_last @ (Q @ (W_K.T @ b2)), d.second_key),
        (q_last @ d.W_Q_left, (g @ W_K.T) @ k_last.T),
        (q_last @ (Q_last @ h), k_last @ d.W_K_left),
    )
    return factors, (q_last, Q_last, K_last.T, k_last.T)


def _peeled_error(error: AttentionError, factors: tuple[Any, ...]) -> Any:
    match error:
        case AttentionError.MAX_DIFF_SUBPRODUCT | AttentionError.MEAN_MAX_DIFF_SUBPRODUCT:
            return row_spreads.spread_of_split_product_upper(factors, mean=error is AttentionError.MEAN_MAX_DIFF_SUBPRODUCT)
        case AttentionError.MAX_DIFF_SUBPRODUCT_RECURSIVE:
            return row_spreads.spread_recursive_upper(factors, mean=False, mean_below=False)
        case AttentionError.MEAN_MAX_DIFF_SUBPRODUCT_RECURSIVE:
            return row_spreads.spread_recursive_upper(factors, mean=True, mean_below=False)
        case _:
            return row_spreads.spread_recursive_upper(factors, mean=True, mean_below=True)


def _peel(A: Any, u: np.ndarray) -> tuple[Any, Any]:
    """Split A = u (u^T A) + rest, exactly, for any vector u. Returns (u^T A, rest)."""
    row = u @ A
    return row, A - u[:, None] * row


def _without(A: np.ndarray, u: np.ndarray) -> np.ndarray:
    return A - np.outer(u, u @ A)


def _first_left(matrix: np.ndarray, full: bool = True) -> np.ndarray:
    """The first left singular vector; of a tall matrix, `full` computes many more that nobody looks at, and other last digits."""
    return np.asarray(np.linalg.svd(matrix, full_matrices=full)[0][:, 0])
