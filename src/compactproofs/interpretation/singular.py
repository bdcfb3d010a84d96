"""How much of EQKE is one direction: its singular values and the two leading singular vectors.

EQKE is WITHOUT the attention scale here, as in the paper: sqrt(score_divisor_squared) times our table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compactproofs.form.tables import float_circuits
from compactproofs.interpretation.numbers import Statistics, finite, mean_and_std
from compactproofs.model.weights import Weights


@dataclass(frozen=True)
class SingularStructure:
    """The singular value decomposition of the unscaled EQKE."""

    values: np.ndarray
    """Singular values, largest first."""
    query_direction: np.ndarray
    """(d_vocab_q,): first left singular vector, its mean not negative. Nearly constant if all queries attend alike."""
    size_direction: np.ndarray
    """(d_vocab_k,): first right singular vector. Increasing if larger tokens get more attention."""

    def statistics(self) -> Statistics:
        steps = np.diff(self.size_direction)
        first, second = float(self.values[0]), float(self.values[1]) if len(self.values) > 1 else 0.0
        return {
            "EQKEFirstSingularFloat": finite(first),
            "EQKESecondSingularFloat": finite(second),
            "EQKERatioFirstTwoSingularFloat": finite(first / second) if second > 0 else None,
            "EQKESizeDirectionDiffsMeanFloat": finite(mean_and_std(steps)[0]),
            "EQKEQueryDirectionMeanFloat": finite(self.query_direction.mean()),
            "query_direction_std": finite(self.query_direction.std()),
            "size_direction_decreasing_steps": float((steps < 0).sum()),
        }


def unscaled_EQKE(weights: Weights) -> np.ndarray:
    """The paper's EQKE, in float64."""
    return np.asarray(float_circuits(weights).EQKE * float(weights.score_divisor_squared) ** 0.5)


def singular_structure(weights: Weights) -> SingularStructure:
    """Decompose EQKE. Cost: O(d_vocab^3)."""
    U, values, Vh = np.linalg.svd(unscaled_EQKE(weights))
    sign = -1.0 if U[:, 0].mean() < 0 else 1.0
    return SingularStructure(values, sign * U[:, 0], sign * Vh[0])
