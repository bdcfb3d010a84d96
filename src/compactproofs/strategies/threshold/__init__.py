"""Threshold proofs: "the label beats output o" is a sum over positions, and sequences with a negative sum can be counted."""

from compactproofs.strategies.threshold.pairwise import ThresholdBest, ThresholdExactOutput, ThresholdQuartic
from compactproofs.strategies.threshold.tabled import (
    EXACT,
    Tabled,
    ThresholdBlocks,
    ThresholdCubic,
    ThresholdCubicPooled,
    ThresholdQuadraticPooled,
)

__all__ = [
    "EXACT",
    "Tabled",
    "ThresholdBest",
    "ThresholdBlocks",
    "ThresholdCubic",
    "ThresholdCubicPooled",
    "ThresholdExactOutput",
    "ThresholdQuadraticPooled",
    "ThresholdQuartic",
]
