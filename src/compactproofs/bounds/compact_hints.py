"""Hints of compact proofs, trusted by nobody: which tokens and outputs are looked at one by one, weights, directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from compactproofs.bounds.factors import HEAVIEST
from compactproofs.errors import StrategyError
from compactproofs.model.kinds import Model


@dataclass(frozen=True, eq=False)
class Compact:
    """What a compact proof looks at, and what it takes for granted about nothing: `bounds.compact` holds for all of these.

    The sizes (`first_token`, `near_tokens`, how many weights and directions there are) decide what the proof costs.
    """

    first_token: int
    """Rows of tokens from this one on are computed; labels below it prove nothing"""
    near_tokens: int
    """So many tokens below a label have a harm of their own"""
    output_weights: np.ndarray
    """(label, 2 c + 2): integers from 1 to HEAVIEST for the outputs below label - c, label - c, ..., label - 1, label + 1, ..., label + c,
    and those above label + c"""
    direct_outputs: int
    """So many outputs on each side of the label are looked at one by one in the direct path: at most c"""
    label_by_position: bool
    """Whether the label has a harm of its own at each position; else the worst of them"""
    embedding_centre: np.ndarray
    """(d_model,)"""
    readout_centre: np.ndarray
    """(d_model,)"""
    direct_basis: np.ndarray | None
    """(rank, d_model): directions, about orthonormal, in which the direct path is computed; None: the direct path itself"""
    score_basis: np.ndarray | None
    """(rank, d_model): directions, about orthonormal, in which scores are computed; None: the scores themselves"""
    query_direction: np.ndarray
    """(d_model,): with `key_direction`, the outer product that stands for W_Q W_K^T where rows are not computed"""
    key_direction: np.ndarray
    """(d_model,)"""

    centres: ClassVar[None] = None
    """Every query is by itself"""
    exact: ClassVar[bool] = False
    """The checker does not know these enclosures"""

    @property
    def near_outputs(self) -> int:
        """c"""
        return int(self.output_weights.shape[1]) // 2 - 1

    def checked(self, weights: Model) -> Compact:
        """These hints if they are of the right shapes, within their ranges; numbers that are not finite are replaced."""
        v, d = weights.d_vocab, weights.d_model
        w = np.asarray(self.output_weights)
        if w.ndim != 2 or w.shape[0] != v or w.shape[1] < 2 or w.shape[1] % 2 or w.dtype.kind not in "iu":
            raise StrategyError(f"hint output_weights of shape {w.shape} and type {w.dtype}; expected integers ({v}, 2 c + 2)")
        return Compact(
            first_token=int(np.clip(self.first_token, 0, v - 1)),
            near_tokens=int(np.clip(self.near_tokens, 0, v)),
            output_weights=np.clip(w, 1, HEAVIEST).astype(np.int64),
            direct_outputs=int(np.clip(self.direct_outputs, 0, w.shape[1] // 2 - 1)),
            label_by_position=bool(self.label_by_position),
            direct_basis=_basis("direct_basis", self.direct_basis, d),
            score_basis=_basis("score_basis", self.score_basis, d),
            embedding_centre=_vector("embedding_centre", self.embedding_centre, d),
            readout_centre=_vector("readout_centre", self.readout_centre, d),
            query_direction=_vector("query_direction", self.query_direction, d),
            key_direction=_vector("key_direction", self.key_direction, d),
        )


def _vector(name: str, vector: np.ndarray, d: int) -> np.ndarray:
    found = np.asarray(vector, dtype=np.float64)
    if found.shape != (d,):
        raise StrategyError(f"hint {name} of shape {found.shape}; expected ({d},)")
    return _finite(found)


def _basis(name: str, basis: np.ndarray | None, d: int) -> np.ndarray | None:
    if basis is None:
        return None
    found = np.asarray(basis, dtype=np.float64)
    if found.ndim != 2 or found.shape[1] != d:
        raise StrategyError(f"hint {name} of shape {found.shape}; expected (rank, {d})")
    return _finite(found)


def _finite(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0))
