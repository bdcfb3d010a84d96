"""The residual stream after attention on the sequences of a leaf, as a blend around a centre."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from compactproofs.arrays.arithmetic import AbstractArithmetic
from compactproofs.bounds.relaxation import WHOLE, Typical
from compactproofs.bounds.scene import Blend, Scene, middles
from compactproofs.form.whole_block import WholeBlock


class UnprovenError(Exception):
    """What a hint says of a leaf is not certain."""


@dataclass(frozen=True, eq=False)
class Stream:
    """r on the sequences of one leaf that end in one query, in some arithmetic."""

    form: WholeBlock
    scene: Scene
    tokens: np.ndarray
    """Tokens of the label; the scene numbers them"""
    query: int
    """The token"""
    typical: Typical
    arithmetic: AbstractArithmetic

    @cached_property
    def centres(self) -> Any:
        """(head, d_model): about what heads write on the typical attention, as float64 numbers. Any would do."""
        typical = self.typical
        return self.arithmetic.array(self._averages(self.form.values[:, typical.positions, self.tokens[typical.tokens]]))

    @cached_property
    def spread(self) -> Any:
        """(head, position, token, d_model): values less their centres."""
        return self.form.values[:, :, self.tokens] - self.centres[:, None, None]

    @cached_property
    def centre(self) -> Any:
        """(d_model,): r where every head writes its centre"""
        return self.form.base[self.query] + self.centres.sum(axis=0)

    def linear(self, W: Any) -> Blend:
        """r W, exactly: attention adds up to 1, so r is the centre plus the averages of what values are off."""
        return Blend(self.centre @ W, self.spread @ W)

    def constant(self, number: float) -> Blend:
        """One column that is the same for all sequences."""
        heads, k, n, _ = self.spread.shape
        return Blend(self.arithmetic.array(np.array([number])), self.arithmetic.array(np.zeros((heads, k, n, 1))))

    def averages(self, parts: Any) -> np.ndarray:
        """(head, column): about the averages of a table on the typical attention."""
        return self._averages(parts[:, self.typical.positions, self.typical.tokens])

    def _averages(self, at_places: Any) -> np.ndarray:
        weights = self.typical.weights.astype(np.float64) / WHOLE
        found = (weights[:, None] @ middles(at_places))[:, 0]
        return np.where(np.isfinite(found), found, 0.0)

    def require(self, blend: Blend, what: str) -> None:
        """Raise unless the blend is nowhere positive."""
        if not self.scene.nowhere_positive(blend).all():
            raise UnprovenError(what)
