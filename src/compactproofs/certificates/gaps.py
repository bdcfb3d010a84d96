"""Witnesses of rule `gaps`: the gap tables of the subcubic strategies."""

from __future__ import annotations

from typing import Any

import numpy as np

from compactproofs.model.weights import Weights
from compactproofs.strategies.shared import Shared
from compactproofs.strategies.subcubic import Subcubic
from compactproofs.strategies.subcubic.entries import applicable
from compactproofs.strategies.subcubic.search import find_hints
from compactproofs.strategies.subcubic.workbench import Workbench


def gap_witness(strategy: Subcubic, weights: Weights, shared: Shared) -> dict[str, Any]:
    """The gaps that the strategy's search finds, by label, query and number of other tokens; 0 where they are about no sequence."""
    gaps = find_hints(*strategy.choices, Workbench(weights, shared)).gaps
    table = np.where(applicable(gaps), gaps, 0)
    table[:, :, 0] = np.eye(len(table), dtype=np.int64)
    return {"gaps": [table[: m + 1, m].tolist() for m in range(len(table))]}
