"""The five tables that replace the network: after this module nobody multiplies weight matrices again.

    score(q; token t at position i) = EQKE[q, t] + EQKP[q, i]
    logits(x) = EU[q] + sum_i attention_i * (EVOU[x_i] + PVOU[i])

`EQKE` and `EQKP` already contain the attention scale: nothing divides again. The functions below are ordinary
array code: float64 operands give an estimate, `Interval` operands enclosures of the exact tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np
from jaxtyping import Float

from compactproofs.arrays.environment import require_ieee754
from compactproofs.arrays.interval import Interval
from compactproofs.arrays.rounding import inverse_sqrt_enclosure
from compactproofs.model.weights import Weights

Array = TypeVar("Array")


@dataclass(frozen=True)
class Circuits(Generic[Array]):
    """The path tables of one network. `q`, `t` are tokens, `i` positions, `o` outputs."""

    EQKE: Array
    """Attention score of token t for query q, scaled: (d_vocab_q, d_vocab_k)."""
    EQKP: Array
    """Attention score of position i for query q, scaled: (d_vocab_q, n_ctx)."""
    EVOU: Array
    """What attending to token t adds to output o: (d_vocab_k, d_vocab_out)."""
    PVOU: Array
    """What attending to position i adds to output o: (n_ctx, d_vocab_out)."""
    EU: Array
    """What the query token adds to output o directly: (d_vocab_q, d_vocab_out)."""


def position_centre(weights: Weights) -> Float[np.ndarray, "d_model"]:
    """The vector that is moved from the position tables into the token tables: the mean of W_pos, in float32.

    Only the sums EQKE + EQKP and EVOU + PVOU enter the network, so any vector is exact; rounding it to float32 keeps
    every table a polynomial in float32 numbers.
    """
    centre: Float[np.ndarray, "d_model"] = weights.W_pos.mean(axis=0, dtype=np.float64).astype(np.float32)
    return centre.astype(np.float64)


def float_circuits(weights: Weights) -> Circuits[np.ndarray]:
    """The tables in float64: for search and for looking at, not for proofs."""
    return _circuits(weights, lambda a: a.astype(np.float64), float(weights.score_divisor_squared) ** -0.5)


def interval_circuits(weights: Weights) -> Circuits[Interval]:
    """Enclosures of the tables.

    Guarantee: every entry contains the exact entry of the real-number network.
    Assumes: IEEE-754 arithmetic, which is checked; all float32 weights are allowed.
    Cost: O(d_vocab d_model^2 + d_vocab^2 d_model + n_ctx d_vocab d_model).
    Source: paper, section 3 (equation for the five paths), with the scale inside EQKE and EQKP.
    """
    require_ieee754()
    lower, upper = inverse_sqrt_enclosure(Fraction(weights.score_divisor_squared))
    return _circuits(weights, Interval.exact, Interval(np.asarray(lower), np.asarray(upper)))


def _circuits(weights: Weights, array: Callable[[np.ndarray], Any], scale: Any) -> Circuits[Any]:
    W_E, W_pos, W_Q, W_K, W_V, W_O, W_U = (array(tensor) for tensor in weights.tensors.values())
    centre = array(position_centre(weights))
    query = W_E + W_pos[-1]
    key = W_E + centre
    position = W_pos - centre
    QK = (query @ W_Q) @ W_K.T
    VOU = W_V @ (W_O @ W_U)
    return Circuits(
        EQKE=(QK @ key.T) * scale,
        EQKP=(QK @ position.T) * scale,
        EVOU=key @ VOU,
        PVOU=position @ VOU,
        EU=query @ W_U,
    )
