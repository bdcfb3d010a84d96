"""The additive form: what one layer is once attention has been written as a weighted average.

For a query token q at the position where the answer is read, head h has attention a_h(i, t) > 0 and values v_h(i, t) for every position i
and token t. The residual stream is base[q] plus, for each head, the a_h-weighted average of its values; a readout turns it into logits.
Everything before the average (norms of the inputs, biases, rotary scores, masks, fixed tokens) only changes these numbers.

Today's proofs are about one head and an affine readout, which is multiplied out: values and base are then outputs already.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from compactproofs.arrays.arithmetic import AbstractArithmetic
from compactproofs.errors import ModelError
from compactproofs.form.tables import circuits
from compactproofs.model.kinds import Model


class Readout(Enum):
    """What follows the average."""

    AFFINE = "affine"
    """Values and base are given as outputs."""
    CONVEX = "convex"
    """Norms or an MLP follow, to be bounded by convex majorants and concave minorants. No bound is about it yet."""


@dataclass(frozen=True)
class Head:
    """One head: attention is exp(token score + position score), values are token value + position value.

    What belongs to tokens has one sheet for all positions, or, where position and token mix, one for each.
    """

    token_scores: Any
    """(query, sheet, token)"""
    position_scores: Any
    """(query, position)"""
    token_values: Any
    """(sheet, token, output)"""
    position_values: Any
    """(position, output)"""

    def attention(self, query: int) -> Any:
        """(position, token): unnormalised, the largest factors being 1."""
        scores = self.token_scores[query], self.position_scores[query]
        return np.exp(scores[0] - scores[0].max(axis=(0, 1))) * np.exp(scores[1] - scores[1].max(axis=0))[:, None]

    def brackets(self, tokens: np.ndarray, label: int, direct: Any) -> Any:
        """(output, position, token): values less the label's, plus direct[output]."""
        values = self.token_values[:, tokens]
        rest = (self.position_values - self.position_values[:, [label]]) + direct[None, :]
        return np.moveaxis(values - values[:, :, [label]], 2, 0) + rest.T[:, :, None]


@dataclass(frozen=True)
class Form:
    """The additive form of a network, in some arithmetic."""

    heads: tuple[Head, ...]
    base: Any
    """(query, output)"""
    readout: Readout = Readout.AFFINE

    def only_head(self) -> Head:
        """The head, if there is just one and the readout is affine: what today's bounds are about."""
        if len(self.heads) != 1 or self.readout is not Readout.AFFINE:
            raise ModelError(f"bounds are about one head and an affine readout; this form has {len(self.heads)} heads, {self.readout}")
        return self.heads[0]


def additive_form(model: Model, arithmetic: AbstractArithmetic) -> Form:
    """The form of a network with one head and an affine readout.

    Guarantee: in intervals, every number encloses that of the real-number network.
    Cost: that of the five tables.
    Source: paper, section 3.
    """
    tables, v, out = circuits(model, arithmetic), model.d_vocab, model.d_vocab_out
    return Form((Head(tables.EQKE.reshape(v, -1, v), tables.EQKP, tables.EVOU.reshape(-1, v, out), tables.PVOU),), tables.EU)
