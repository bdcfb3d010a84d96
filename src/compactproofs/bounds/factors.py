"""Hints of factored terms, trusted by nobody: weights of outputs, what moves into EVOU, centres, directions, and which enclosures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compactproofs.bounds.direct_path import DirectPath
from compactproofs.bounds.low_rank_scores import AttentionError, Directions, direction_sizes
from compactproofs.errors import StrategyError
from compactproofs.model.kinds import Model

EXACT = "exact"
"""Direct path: EU itself, with the weights of the outputs."""

HEAVIEST = 1 << 30
"""The largest weight of an output."""


@dataclass(frozen=True, eq=False)
class Factors:
    """Hints of factored terms, trusted by nobody, and which enclosures of scores and of the direct path they go with."""

    mu: np.ndarray
    """(o,): moved from the direct path into EVOU"""
    output_weights: np.ndarray | None
    """(label, o): integers from 1 to HEAVIEST; None: row maxima, which is all weights 1"""
    centres: np.ndarray | None
    """(label,): tokens; None: no pools, every query by itself"""
    directions: Directions | None = None
    direct_path: str = EXACT
    """`exact`, or one of the paper's five ways to bound the direct path"""
    attention_error: AttentionError = AttentionError.EXACT_EQKE
    """EQKE itself, or one of the paper's ways to replace it by few directions and bound the error"""
    blocks: bool = False
    """Whether tokens share their worst harm, in ranges of 1, 1, 2, 4, ... away from the label"""

    @classmethod
    def blank(cls, weights: Model, *, weighted: bool = False, pooled: bool = False) -> Factors:
        """Useless but valid hints of the right sizes."""
        out = weights.d_vocab_out
        weights_of_outputs = np.ones((out, out), dtype=np.int64) if weighted else None
        return cls(np.zeros(out), weights_of_outputs, np.zeros(out, dtype=np.int64) if pooled else None)

    @property
    def exact(self) -> bool:
        """Whether scores and direct path are the tables themselves: what the checker knows."""
        return self.direct_path == EXACT and self.attention_error is AttentionError.EXACT_EQKE

    @property
    def known_directions(self) -> Directions:
        """The directions; `checked` gives blank ones where there are none."""
        if self.directions is None:
            raise StrategyError("these factors have no directions")
        return self.directions

    def checked(self, weights: Model) -> Factors:
        """These hints if they are of the right shapes; numbers that are not finite are replaced."""
        v, out = weights.d_vocab, weights.d_vocab_out
        wanted = {"mu": (out,), "output_weights": (out, out), "centres": (out,)}
        for name, shape in wanted.items():
            value = getattr(self, name)
            if value is not None and np.shape(value) != shape:
                raise StrategyError(f"hint {name} of shape {np.shape(value)}; expected {shape}")
        directions = Directions.blank(weights) if self.directions is None else self.directions
        found, sizes = [np.shape(direction) for direction in vars(directions).values()], direction_sizes(weights)
        if found != [(size,) for size in sizes]:
            raise StrategyError(f"directions of shapes {found}; expected {', '.join(f'({size},)' for size in sizes)}")
        for name in ("output_weights", "centres"):
            value = getattr(self, name)
            if value is not None and np.asarray(value).dtype.kind not in "iu":
                raise StrategyError(f"hint {name} of type {np.asarray(value).dtype}; expected integers")
        return Factors(
            mu=np.nan_to_num(np.asarray(self.mu, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0),
            output_weights=None if self.output_weights is None else np.clip(self.output_weights, 1, HEAVIEST).astype(np.int64),
            centres=None if self.centres is None else np.clip(self.centres, 0, v - 1).astype(np.int64),
            directions=Directions(*(np.asarray(x, dtype=np.float64) for x in vars(directions).values())),
            direct_path=EXACT if self.direct_path == EXACT else DirectPath(self.direct_path),
            attention_error=AttentionError(self.attention_error),
            blocks=bool(self.blocks) and self.centres is None,  # pools look at every token
        )
