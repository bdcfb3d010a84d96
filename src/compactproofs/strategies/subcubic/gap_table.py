"""The gaps of the simplest subcubic proof, for looking at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compactproofs.arrays.arithmetic import Float64
from compactproofs.bounds.direct_path import DirectPath
from compactproofs.bounds.low_rank_scores import AttentionError
from compactproofs.model.weights import Weights
from compactproofs.strategies.shared import Shared
from compactproofs.strategies.subcubic.counting import count_covered
from compactproofs.strategies.subcubic.entries import Entries
from compactproofs.strategies.subcubic.gap_bound import attention_bounds, wrong_logit_gap_upper
from compactproofs.strategies.subcubic.options import QueryHandling
from compactproofs.strategies.subcubic.search import find_hints
from compactproofs.strategies.subcubic.workbench import Workbench

_CHOICES = DirectPath.MAX_DIFF_EXACT, AttentionError.EXACT_EQKE, QueryHandling.DROP


@dataclass(frozen=True, eq=False)
class GapTable:
    """For each query, label and number of other tokens: how far below the label the others must be."""

    gaps: np.ndarray
    """(query, label, number of others)"""
    works: np.ndarray
    """Whether the bound shows the label to win with this gap: the same shape."""
    covered: int
    """Sequences whose tokens keep the gap: what the proof counts."""


def gap_table(weights: Weights, shared: Shared) -> GapTable:
    """The smallest gaps at which the bound with exact tables is negative, in float64: a measurement, though the same bound in interval
    arithmetic is a proof. Cost: O(d_vocab^2 n_ctx log d_vocab) after the tables."""
    bench = Workbench(weights, shared)
    hints = find_hints(*_CHOICES, bench)
    attention = bench.attention(_CHOICES[1], hints.directions, Float64())
    outputs = bench.outputs(_CHOICES[0], hints.directions, Float64())
    entries = Entries.applicable(hints.gaps)
    bound = wrong_logit_gap_upper(_CHOICES[2], attention_bounds(attention, entries), outputs, entries, hints.outputs, Float64())
    works = entries.placed(bound < 0.0, into=np.zeros(hints.gaps.shape, dtype=bool))
    return GapTable(hints.gaps, works, count_covered(hints.gaps, works))
