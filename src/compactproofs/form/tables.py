"""The five tables that replace the network: after this module nobody multiplies weight matrices again.

    score(q; token t at position i) = EQKE[q, t] + EQKP[q, i]
    logits(x) = EU[q] + sum_i attention_i * (EVOU[x_i] + PVOU[i])

`EQKE` and `EQKP` already contain the attention scale: nothing divides again. The functions below are ordinary array code: float64
operands give an estimate, `Interval` operands enclosures of the exact tables, phantoms their cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from jaxtyping import Float

from compactproofs.arrays.arithmetic import AbstractArithmetic, Float64, Rigorous
from compactproofs.arrays.environment import require_ieee754
from compactproofs.arrays.interval import Interval
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
    return circuits(weights, Float64())


def interval_circuits(weights: Weights) -> Circuits[Interval]:
    """Enclosures of the tables.

    Guarantee: every entry contains the exact entry of the real-number network.
    Assumes: IEEE-754 arithmetic, which is checked; all float32 weights are allowed.
    Cost: O(d_vocab d_model^2 + d_vocab^2 d_model + n_ctx d_vocab d_model).
    Source: paper, section 3 (equation for the five paths), with the scale inside EQKE and EQKP.
    """
    require_ieee754()
    return circuits(weights, Rigorous())


def circuits(weights: Weights, arithmetic: AbstractArithmetic) -> Circuits[Any]:
    """The tables in any arithmetic."""
    EQKE, EQKP = score_tables(weights, arithmetic)
    EVOU, PVOU = value_tables(weights, arithmetic)
    return Circuits(EQKE=EQKE, EQKP=EQKP, EVOU=EVOU, PVOU=PVOU, EU=direct_table(weights, arithmetic))


def score_tables(weights: Weights, arithmetic: AbstractArithmetic) -> tuple[Any, Any]:
    """EQKE and EQKP."""
    query, key, position = _embeddings(weights, arithmetic)
    W_Q, W_K = arithmetic.array(weights.W_Q), arithmetic.array(weights.W_K)
    with arithmetic.step("EQKE and EQKP"):
        QK = (query @ (W_Q * arithmetic.inverse_sqrt(weights.score_divisor_squared))) @ W_K.T
        return QK @ key.T, QK @ position.T


def value_tables(weights: Weights, arithmetic: AbstractArithmetic) -> tuple[Any, Any]:
    """EVOU and PVOU."""
    _, key, position = _embeddings(weights, arithmetic)
    W_V, W_O, W_U = (arithmetic.array(weights.tensors[name]) for name in ("W_V", "W_O", "W_U"))
    with arithmetic.step("EVOU and PVOU"):
        VOU = W_V @ (W_O @ W_U)
        return key @ VOU, position @ VOU


def direct_table(weights: Weights, arithmetic: AbstractArithmetic) -> Any:
    """EU."""
    query, _, _ = _embeddings(weights, arithmetic)
    with arithmetic.step("EU"):
        return query @ arithmetic.array(weights.W_U)


def _embeddings(weights: Weights, arithmetic: AbstractArithmetic) -> tuple[Any, Any, Any]:
    """Queries, keys and positions, the mean position moved into the keys. (Counted once: see `Counting`.)"""
    W_E, W_pos, centre = arithmetic.array(weights.W_E), arithmetic.array(weights.W_pos), arithmetic.array(position_centre(weights))
    with arithmetic.once("embeddings"):
        return W_E + W_pos[-1], W_E + centre, W_pos - centre
