"""What remains of EQKE when its leading directions are peeled off, and how well its row spread can be bounded without multiplying it out.

EQKE_err = q' Q' (k' K')^T, where q', k' are the query and key embeddings without two directions each, and Q', K' are W_Q and W_K without
one (paper, "The complicated SVD decomposition of QK"). Everything here is WITHOUT the attention scale, as in the paper. The bounds are
those of the ten ways to handle the attention error, all applied to this one error term: the paper's table of compounding errors. What our
strategies really use (a rank-one error for four of the ten, attention scale included) are the statistics `attention_error_upper_...`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from compactproofs.arrays.arithmetic import Float64
from compactproofs.bounds import row_spreads
from compactproofs.bounds.low_rank_scores import AttentionError, Directions, approximate_scores, find_directions, peeled
from compactproofs.form.embedded import position_centre
from compactproofs.interpretation.numbers import Statistics, finite, norm
from compactproofs.model.weights import Weights


@dataclass(frozen=True)
class ResidualFactors:
    """The four factors of EQKE_err."""

    WEqqPerp: np.ndarray
    """q': (d_vocab_q, d_model)."""
    WQqPerp: np.ndarray
    """Q': (d_model, d_head)."""
    WKkPerp: np.ndarray
    """K': (d_model, d_head)."""
    WEkkPerp: np.ndarray
    """k': (d_vocab_k, d_model)."""

    @property
    def chain(self) -> tuple[np.ndarray, ...]:
        """The factors in the order in which they are multiplied."""
        return self.WEqqPerp, self.WQqPerp, self.WKkPerp.T, self.WEkkPerp.T

    @cached_property
    def product(self) -> np.ndarray:
        """EQKE_err: (d_vocab_q, d_vocab_k)."""
        q, Q, K, k = self.chain
        return np.asarray((q @ Q) @ (K @ k))


def residual_factors(weights: Weights, directions: Directions) -> ResidualFactors:
    """Peel off the directions. Cost: O(d_vocab d_model + d_model d_head), the directions being given."""
    W_E, W_pos, W_Q, W_K = (weights.tensors[name].astype(np.float64) for name in ("W_E", "W_pos", "W_Q", "W_K"))
    _, (q, Q, K, k) = peeled(W_E + W_pos[-1], W_Q, W_K, W_E + position_centre(weights), directions)
    return ResidualFactors(q, Q, K.T, k.T)


def error_terms(weights: Weights, directions: Directions | None = None) -> Statistics:
    """Measure EQKE_err, bound its row spread in every way, and bound the errors that our strategies use.

    Cost: O(d_vocab^2 d_model + d_vocab^3).
    """
    directions = find_directions(weights) if directions is None else directions
    factors = residual_factors(weights, directions)
    return _size(factors) | _bounds(factors) | _products_of_norms(factors) | _used(weights, directions)


def _size(factors: ResidualFactors) -> Statistics:
    error = factors.product
    first, frobenius = _first_singular(error), norm(error)
    return {
        "EQKEErrMaxRowDiffFloat": finite(row_spreads.spread(error).max()),
        "EQKEErrMaxAbsFloat": finite(np.abs(error).max()),
        "EQKEErrMeanDimZeroNormFloat": finite(norm(error.mean(axis=0))),
        "EQKEErrFirstSingularFloat": finite(first),
        "EQKEErrFirstSingularSqrtTwoFloat": finite(sqrt(2.0) * first),
        "EQKEErrFroNormFloat": finite(frobenius),
        "EQKEErrFroNormSqrtTwoFloat": finite(sqrt(2.0) * frobenius),
    }


def _bounds(factors: ResidualFactors) -> Statistics:
    chain, error = factors.chain, factors.product
    subproduct = row_spreads.spread_of_split_product_upper(chain, mean=False).max()
    mean_subproduct = row_spreads.spread_of_split_product_upper(chain, mean=True).max()
    bounds = {
        "MaxDiff": subproduct,  # one error term, so splitting anywhere is the same for both
        "MaxDiffExact": row_spreads.spread(error).max(),
        "MaxDiffSubproduct": subproduct,
        "MaxDiffSubproductRecursive": row_spreads.spread_recursive_upper(chain, mean=False, mean_below=False).max(),
        "MeanMaxDiff": mean_subproduct,
        "MeanMaxDiffSubproduct": mean_subproduct,
        "MeanMaxDiffSubproductRecursive": row_spreads.spread_recursive_upper(chain, mean=True, mean_below=False).max(),
        "MeanRecursiveMaxDiffSubproductRecursive": row_spreads.spread_recursive_upper(chain, mean=True, mean_below=True).max(),
        "Svd": sqrt(2.0) * _first_singular(error),
    }
    return {f"EQKEErrBound{name}Float": finite(value) for name, value in bounds.items()}


def _products_of_norms(factors: ResidualFactors) -> Statistics:
    result: Statistics = {}
    for name, measure in (("FirstSingular", _first_singular), ("FroNorm", norm)):
        product = 1.0
        for factor in ("WEqqPerp", "WQqPerp", "WKkPerp", "WEkkPerp"):
            size = measure(getattr(factors, factor))
            result[f"{factor}{name}Float"] = finite(size)
            product *= size
        result[f"EQKEErrProd{name}Float"] = finite(product)
        result[f"EQKEErrProd{name}SqrtTwoFloat"] = finite(sqrt(2.0) * product)
    return result


def _used(weights: Weights, directions: Directions) -> Statistics:
    """The largest error bound over queries that each of the ten handlings gives to the proofs, attention scale included."""
    bounds = {error: approximate_scores(error, weights, directions, Float64()).error_upper for error in AttentionError}
    return {f"attention_error_upper_{error}": finite(np.max(bound)) for error, bound in bounds.items()}


def _first_singular(matrix: np.ndarray) -> float:
    return float(np.linalg.svd(matrix, compute_uv=False)[0])
