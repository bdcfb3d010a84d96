"""The five tables that replace the network: after this module nobody multiplies weight matrices again.

    score(q; token t at position i) = EQKE[q, t] + EQKP[q, i]
    logits(x) = EU[q] + sum_i attention_i * (EVOU[x_i] + PVOU[i])

`EQKE` and `EQKP` already contain the attention scale: nothing divides again. The functions below are ordinary array code: float64
operands give an estimate, `Interval` operands enclosures of the exact tables, phantoms their cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from compactproofs.arrays.arithmetic import AbstractArithmetic, Float64, Rigorous
from compactproofs.arrays.environment import require_ieee754
from compactproofs.arrays.interval import Interval
from compactproofs.form.embedded import Embedded, embedded
from compactproofs.model.kinds import Model

Array = TypeVar("Array")


@dataclass(frozen=True)
class Circuits(Generic[Array]):
    """The path tables of one network. `q`, `t` are tokens, `i` positions, `o` outputs.

    Where position and token mix (a norm before attention, rotary positions), a table has a sheet of d_vocab_k rows for every position
    instead of one for all (`form.embedded`), and EQKP and PVOU are zero.
    """

    EQKE: Array
    """Attention score of token t for query q, scaled: (d_vocab_q, sheets d_vocab_k)."""
    EQKP: Array
    """Attention score of position i for query q, scaled: (d_vocab_q, n_ctx)."""
    EVOU: Array
    """What attending to token t adds to output o: (sheets d_vocab_k, d_vocab_out)."""
    PVOU: Array
    """What attending to position i adds to output o: (n_ctx, d_vocab_out)."""
    EU: Array
    """What the query token adds to output o directly: (d_vocab_q, d_vocab_out)."""


def float_circuits(weights: Model) -> Circuits[np.ndarray]:
    """The tables in float64: for search and for looking at, not for proofs."""
    return circuits(weights, Float64())


def interval_circuits(weights: Model) -> Circuits[Interval]:
    """Enclosures of the tables.

    Guarantee: every entry contains the exact entry of the real-number network.
    Assumes: IEEE-754 arithmetic, which is checked; all float32 weights are allowed.
    Cost: O(d_vocab d_model^2 + d_vocab^2 d_model + n_ctx d_vocab d_model).
    Source: paper, section 3 (equation for the five paths), with the scale inside EQKE and EQKP.
    """
    require_ieee754()
    return circuits(weights, Rigorous())


def circuits(model: Model, arithmetic: AbstractArithmetic) -> Circuits[Any]:
    """The tables in any arithmetic."""
    rows = embedded(model, arithmetic)
    EQKE, EQKP = score_tables(rows, arithmetic)
    EVOU, PVOU = value_tables(rows, arithmetic)
    return Circuits(EQKE=EQKE, EQKP=EQKP, EVOU=EVOU, PVOU=PVOU, EU=direct_table(rows, arithmetic))


def score_tables(rows: Embedded, arithmetic: AbstractArithmetic) -> tuple[Any, Any]:
    """EQKE and EQKP."""
    with arithmetic.step("EQKE and EQKP"):
        QK = (rows.queries @ (rows.W_Q * arithmetic.inverse_sqrt(rows.divisor))) @ rows.W_K.T
        return QK @ rows.keys.T, position_scores(rows, lambda positions: QK @ positions.T, arithmetic)


def position_scores(rows: Embedded, of: Callable[[Any], Any], arithmetic: AbstractArithmetic) -> Any:
    """EQKP: what positions add to scores, by their vectors and by ALiBi."""
    scores = arithmetic.array(np.zeros((rows.queries.shape[0], rows.n_ctx))) if rows.positions is None else of(rows.positions)
    return scores if rows.recency is None else scores + rows.recency


def value_tables(rows: Embedded, arithmetic: AbstractArithmetic) -> tuple[Any, Any]:
    """EVOU and PVOU."""
    with arithmetic.step("EVOU and PVOU"):
        VOU = rows.W_V @ (rows.W_O @ rows.W_U_of_values)
        nothing = arithmetic.array(np.zeros((rows.n_ctx, VOU.shape[1]))) if rows.positions is None else rows.positions @ VOU
        return rows.carriers @ VOU, nothing


def direct_table(rows: Embedded, arithmetic: AbstractArithmetic) -> Any:
    """EU."""
    with arithmetic.step("EU"):
        return rows.stream @ rows.W_U
