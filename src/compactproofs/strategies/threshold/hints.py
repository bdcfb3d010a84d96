"""Hints of tabled threshold proofs: what they are, how they are checked, and a search for good ones. Nothing here is trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compactproofs.circuits.tables import float_circuits
from compactproofs.errors import StrategyError
from compactproofs.model.weights import Weights
from compactproofs.strategies.subcubic.attention_scores import Directions, find_directions


@dataclass(frozen=True, eq=False)
class Hints:
    """Everything a tabled threshold proof takes on trust from nobody."""

    output_weights: np.ndarray
    """(label, o): positive"""
    mu: np.ndarray
    """(o,): moved from the direct path into EVOU"""
    shift: np.ndarray
    """(q,): subtracted from the scores"""
    label_shift: np.ndarray
    """(label, q): the same, for pools"""
    pool_of: np.ndarray
    """(label, q): number of the pool"""
    directions: Directions
    steps: int
    """Counting steps per unit"""

    @classmethod
    def blank(cls, weights: Weights) -> Hints:
        """Useless but valid hints of the right sizes."""
        v, out = weights.d_vocab, weights.d_vocab_out
        nothing = np.zeros((out, v))
        return cls(np.ones((out, out)), np.zeros(out), np.zeros(v), nothing, nothing.astype(np.int64), Directions.blank(weights), steps=1)

    def checked(self, weights: Weights) -> Hints:
        """These hints if they are of the right shapes; numbers that are not finite are replaced."""
        v, d, out = weights.d_vocab, weights.d_model, weights.d_vocab_out
        wanted = {"output_weights": (out, out), "mu": (out,), "shift": (v,), "label_shift": (out, v), "pool_of": (out, v)}
        for name, shape in wanted.items():
            if np.shape(getattr(self, name)) != shape:
                raise StrategyError(f"hint {name} of shape {np.shape(getattr(self, name))}; expected {shape}")
        found = [np.shape(direction) for direction in vars(self.directions).values()]
        if found != [(v,)] * 4 + [(d,)] * 3:
            raise StrategyError(f"directions of shapes {found}; expected four of ({v},) and three of ({d},)")
        pool_of = np.asarray(self.pool_of)
        if pool_of.dtype.kind not in "iu" or not isinstance(self.steps, int):
            raise StrategyError(f"hints pool_of of type {pool_of.dtype} and steps={self.steps!r}; expected integers")

        def finite(x: np.ndarray) -> np.ndarray:
            return np.nan_to_num(np.asarray(x, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)

        return Hints(
            output_weights=finite(self.output_weights),
            mu=finite(self.mu),
            shift=finite(self.shift),
            label_shift=finite(self.label_shift),
            pool_of=pool_of,
            directions=Directions(*(np.asarray(x, dtype=np.float64) for x in vars(self.directions).values())),
            steps=self.steps,
        )


def find_hints(weights: Weights, pools: int) -> Hints:
    """Search, in float64, uncharged. Weights make one copy of the label worth about -1 against every output."""
    with np.errstate(all="ignore"):
        tables = float_circuits(weights)
        v, out = weights.d_vocab, weights.d_vocab_out
        mu = tables.EU.mean(axis=0)
        V = tables.EVOU + mu
        helpful = np.minimum(np.arange(out), v - 1)  # the label as a token
        margin = V[helpful, np.arange(out)][:, None] - V[helpful]
        output_weights = 1.0 / np.maximum(margin, np.maximum(0.02 * margin.max(axis=1, keepdims=True), 1e-3))
        label_shift = tables.EQKE[:, helpful].T
        return Hints(
            output_weights=output_weights,
            mu=mu,
            shift=tables.EQKE.max(axis=1),
            label_shift=label_shift,
            pool_of=_pools(tables.EU - mu, output_weights, label_shift, pools),
            directions=find_directions(weights),
            steps=counting_steps(weights.n_ctx),
        )


def counting_steps(n_ctx: int) -> int:
    """How finely to count: rounding loses a fraction of a step per position, and histograms grow with both."""
    return 100 if n_ctx <= 10 else 50


def _pools(direct: np.ndarray, output_weights: np.ndarray, label_shift: np.ndarray, pools: int) -> np.ndarray:
    """(label, q): queries with a similar direct path together, in `pools` pools of equal size among queries up to the label."""
    out, v = label_shift.shape
    result = np.zeros((out, v), dtype=np.int64)
    for m in range(out):
        others = np.arange(out) != m
        if not others.any():
            continue
        harm = ((direct - direct[:, [m]]) * output_weights[m])[:, others].max(axis=1)
        order = np.argsort(harm[: m + 1])
        result[m, order] = np.arange(len(order)) * pools // max(len(order), 1)
    return result
