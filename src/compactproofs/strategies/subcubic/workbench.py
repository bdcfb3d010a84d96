"""The parts of subcubic proofs of one model, each made once: ten kinds of scores, five direct paths, shared by all combinations."""

from __future__ import annotations

from dataclasses import dataclass

from compactproofs.arrays.arithmetic import AbstractArithmetic
from compactproofs.bounds.direct_path import DirectPath, direct_bound
from compactproofs.bounds.low_rank_scores import AttentionError, Directions, approximate_scores, find_directions
from compactproofs.model.weights import Weights
from compactproofs.strategies.shared import Shared
from compactproofs.strategies.subcubic.gap_bound import AttentionParts, OutputParts, attention_parts, output_parts


@dataclass(frozen=True)
class Workbench:
    """Makes and remembers parts."""

    weights: Weights
    shared: Shared

    def directions(self) -> Directions:
        return self.shared.get("directions", lambda: find_directions(self.weights))

    def attention(self, error: AttentionError, directions: Directions, arithmetic: AbstractArithmetic) -> AttentionParts:
        def make() -> AttentionParts:
            return attention_parts(approximate_scores(error, self.weights, directions, arithmetic), self.weights.n_ctx, arithmetic)

        return self.shared.get(("attention", error, directions, arithmetic), make)

    def outputs(self, handling: DirectPath, directions: Directions, arithmetic: AbstractArithmetic) -> OutputParts:
        def make() -> OutputParts:
            direct = direct_bound(handling, self.weights, directions.query_summary, arithmetic)
            return output_parts(self.weights, direct, arithmetic)

        return self.shared.get(("outputs", handling, directions, arithmetic), make)
