"""A network prepared for fast evaluation, with a proven bound on how wrong each comparison can be.

For query q, label m and another output o, the network prefers m exactly when S_o < S_m, where

    S_o = sum_i A_i * B_i,   A_i = exp(EQKE[q, x_i] + EQKP[q, i] - shift_q) > 0,   B_i = EVOU[x_i, o] + PVOU[i, o] + EU[q, o]

(the softmax denominator and the shift are positive factors common to all outputs; a table with a sheet for every position is read at
position i's sheet). The kernels compute S in float64.

Theorem. Let Z be the computed sum of the computed A_i. If computed S_o < S_m - (tolerance * Z + floor), evaluated in float64,
then S_o < S_m as real numbers; and likewise with the signs exchanged.

Proof. Write u = 2^-53 and mark computed values with a tilde. Let d be a bound on the error of the computed exponent: the radii of
the two table entries plus three roundings, at most 4 u (max|EQKE| + max|EQKP|). If d <= 0.1 then A~ = A (1 + e) with
|e| <= t := 1.1 d + 2^-45, since exp(d) - 1 <= 1.06 d and exp_approximation errs by at most 2^-46 relatively. Let D be the error of
B~ (three radii and two roundings) and b >= |B~|, |B| for all entries. Then |A~ B~ (1 + e') - A B| <= A (((1 + u) t + u) b + D), and
adding k terms costs at most gamma_k (1 + t)(1 + u) b sum A. So |S~ - S| <= T sum A with T := (1.1 t + 2 u + 1.2 gamma_k) b + D.
As t < 0.12, sum A <= 1.2 Z. The comparison itself rounds S_m - threshold once, by at most u (1.2 b Z + threshold) <= 1.2 T Z + u threshold.
Altogether the hypothesis gives S_o - S_m <= -threshold (1 - u) + (2.4 + 1.2) T Z, which is negative for threshold >= 8 T Z, the factor
8 = 3.6 * 2.2 also absorbing the rounding of T and of threshold. Absolute errors: each of the k attention weights may be off by a further
2^-1074 (underflow, or an exponent below -800), which B~ multiplies by at most b; each product A~ B~ may be off by 2^-1075; tolerance * Z by
2^-1075; T itself, a sum of products of numbers that may be subnormal, by 2^-1070, times sum A <= k. Additions are exact where they are
subnormal. Together less than 2^-1060 k (b + T + 2), and floor is 2^60 times that. Nothing is scaled after floor is added. If d > 0.1, or
if any table entry is infinite or NaN,
tolerance and floor are infinite, and no comparison succeeds. The bounds d, D, b, T are themselves computed with a few roundings each,
a relative 2^-50 that the factors 1.1, 1.2 and 8 leave room for. QED.

The kernel counts the outputs at or above S_m - threshold. The label itself is one of them, since threshold is not negative; so exactly
one means that every other output is certainly below the label. A NaN threshold counts none, which is not one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from compactproofs.arrays.exponential import RELATIVE_ERROR, exp_approximation
from compactproofs.arrays.interval import Interval
from compactproofs.arrays.rounding import UNIT_ROUNDOFF, gamma_upper
from compactproofs.form.embedded import require_affine
from compactproofs.form.tables import interval_circuits
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network


class Evaluation(NamedTuple):
    """Tables for compiled functions and the error bound that makes their comparisons proofs."""

    attention: Float[np.ndarray, "d_vocab_q n_ctx d_vocab_k"]
    """A~[q, i, t]: unnormalised attention, relative to the largest score of a token plus that of a position."""
    EVOU: Float[np.ndarray, "sheets d_vocab_k d_vocab_out"]
    """Midpoints of EVOU: one sheet for all positions, or one for each."""
    PVOU: Float[np.ndarray, "n_ctx d_vocab_out"]
    """Midpoints of PVOU."""
    EU: Float[np.ndarray, "d_vocab_q d_vocab_out"]
    """Midpoints of EU."""
    tolerance: float
    """Comparisons are certain beyond tolerance * Z + floor; infinite if float64 can decide nothing."""
    floor: float
    """Covers underflow; see `tolerance`."""
    margin: Float[np.ndarray, "d_vocab_q d_vocab_out"]
    """By how much the label has to win, for each query and label: 0 if it only has to win."""


def prepare(weights: Model, margin: np.ndarray | None = None) -> Evaluation:
    """Build the evaluation tables; `margin`, if given, is added to every other output's bracket (brute force knows none).

    Guarantee: the theorem in this module's docstring.
    Assumes: nothing. With a margin, a network with a final norm is refused: the tables are known only up to its size.
    Cost: O(d_vocab^2 (n_ctx + d_model)).
    """
    if margin is not None and isinstance(weights, Network):
        require_affine(weights, by_margin=True)
    tables = interval_circuits(weights)  # refuses to run where arithmetic is not IEEE-754's
    EQKE, EQKP, EVOU, PVOU, EU = (t.midpoint_radius()[0] for t in (tables.EQKE, tables.EQKP, tables.EVOU, tables.PVOU, tables.EU))
    v, out = weights.d_vocab, weights.d_vocab_out
    scores = EQKE.reshape(v, -1, v) + EQKP[:, :, None]
    with np.errstate(invalid="ignore"):
        tops = EQKE.max(axis=1) + EQKP.max(axis=1)
        attention = exp_approximation(scores - tops[:, None, None])

    exponent_error = _radius(tables.EQKE, tables.EQKP) + 4 * UNIT_ROUNDOFF * _magnitude(tables.EQKE, tables.EQKP)
    bracket_error = _radius(tables.EVOU, tables.PVOU, tables.EU)
    bracket_error += 4 * UNIT_ROUNDOFF * _magnitude(tables.EVOU, tables.PVOU, tables.EU)
    margin = np.zeros(tables.EU.shape) if margin is None else margin
    largest = float(np.abs(margin).max(initial=0.0))
    bracket_error += 4 * UNIT_ROUNDOFF * largest
    bracket = _magnitude(tables.EVOU, tables.PVOU, tables.EU) + largest + bracket_error
    weight_error = 1.1 * exponent_error + 2 * RELATIVE_ERROR
    total_error = (1.1 * weight_error + 2 * UNIT_ROUNDOFF + 1.2 * gamma_upper(weights.n_ctx)) * bracket + bracket_error
    finite = all(bool(np.isfinite(t.magnitude_upper()).all()) for t in vars(tables).values()) and bool(np.isfinite(margin).all())
    usable = finite and exponent_error <= 0.1
    return Evaluation(
        attention=attention,
        EVOU=EVOU.reshape(-1, v, out),
        PVOU=PVOU,
        EU=EU,
        tolerance=8 * total_error if usable else np.inf,
        floor=2.0**-1000 * weights.n_ctx * (bracket + total_error + 2.0) if usable else np.inf,
        margin=margin,
    )


def _radius(*tables: Interval) -> float:
    return float(sum(t.midpoint_radius()[1].max() for t in tables))


def _magnitude(*tables: Interval) -> float:
    return float(sum(t.magnitude_upper().max() for t in tables))
