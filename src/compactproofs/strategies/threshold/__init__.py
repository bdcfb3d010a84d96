"""Threshold proofs: "the label beats output o" is a sum over positions, and sequences with a negative sum can be counted.

A strategy here is a search that writes a ledger; what the ledger proves is decided by `compactproofs.ledger.verify`'s functions.
"""

from compactproofs.bounds.factors import EXACT
from compactproofs.strategies.threshold.best import ThresholdBest
from compactproofs.strategies.threshold.compact import ThresholdLowRank, ThresholdNear, ThresholdNearBlocks
from compactproofs.strategies.threshold.pairwise import ThresholdExactOutput, ThresholdQuartic
from compactproofs.strategies.threshold.tabled import (
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
    "ThresholdLowRank",
    "ThresholdNear",
    "ThresholdNearBlocks",
    "ThresholdQuadraticPooled",
    "ThresholdQuartic",
]
