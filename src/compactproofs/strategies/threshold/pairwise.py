"""Threshold proofs that look at every query and label with all outputs: quartic and exact output."""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

from compactproofs.ledger.ledger import Ledger
from compactproofs.ledger.length import harm_flops, pair_flops, table_flops
from compactproofs.ledger.verify import COMPILED
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.search.engine import Effort, Engine
from compactproofs.strategies.base import AbstractStrategy, Bound, ProofLength, Request
from compactproofs.strategies.lengths import length_by_sizes
from compactproofs.strategies.threshold.limits import refuse_if_too_long, require_whole, seconds_for_pairs
from compactproofs.strategies.threshold.whole import is_whole_block, one_pass
from compactproofs.strategies.threshold.whole import length as length_of_block
from compactproofs.tasks import AbstractTask


@dataclass(frozen=True)
class Pairwise(AbstractStrategy):
    """What the strategies that look at every pair share."""

    family: ClassVar[str] = "threshold"
    apart: ClassVar[bool] = False

    @property
    def complexity(self) -> str:
        return "O(d_vocab^3 d_vocab_out n_ctx) and counting"

    @property
    def source(self) -> str:
        return "ours; docs/explanation/threshold-proofs.md, Theorem 2"

    @property
    def parameters(self) -> dict[str, Any]:
        return {}

    def bound(self, request: Request) -> Bound:
        """Count, for every query and label, the sequences that may fail.

        Guarantee: correct_at_least is at most the mass answered right, for every weight setting and every task.
        Assumes: nothing.
        Cost: see `complexity`; counting is measured.
        Source: docs/explanation/threshold-proofs.md, Theorem 2.
        """
        if is_whole_block(request.weights, request.question) and not self.apart:
            return one_pass(request, self.name)
        refuse_if_too_long(request, self.name, self.estimated_seconds(request.weights))
        started = time.perf_counter()
        engine = Engine.of(request.weights, request.question)
        labels = engine.by_weight()
        done = engine.look_at_labels(labels, first_effort(request.weights, joint=not self.apart, apart=self.apart), request.budget)
        require_whole(len(done), len(labels), request.budget, self.name)
        request.shared.get(claims_key(self.name), lambda: {label: cells.contents() for label, cells in engine.cells.items()})
        return found(request, engine, started, upper=False)

    def estimated_seconds(self, weights: Model) -> float:
        """About how long the proof takes; decides only what is worth starting."""
        return seconds_for_pairs(weights) * (15 * max(1.0, weights.n_ctx / 10) ** 2.5 if self.apart else 1)

    def length(self, weights: Model, task: AbstractTask) -> ProofLength:
        """Tables and terms of every pair; walks, harms and counting depend on the weights and come on top."""
        if isinstance(weights, Network) and is_whole_block(weights):
            return length_of_block(weights)
        pairs: dict[int, int] = {}
        for label in task.labels:
            n = len(task.label_automaton(label).tokens)
            pairs[n] = pairs.get(n, 0) + n
        return ProofLength({**table_flops(weights), **pair_flops(weights, pairs)}, 0, unexplained_dimensions(weights))


def unexplained_dimensions(weights: Model) -> int:
    """All five tables are looked up."""
    v, k, out = weights.d_vocab, weights.n_ctx, weights.d_vocab_out
    return 2 * v * out + k * out + k * v + v * v


def claims_key(name: str) -> Hashable:
    """Under which the claims that a strategy has found for every pair are shared."""
    return ("claims by pair", name)


def found(request: Request, engine: Engine, started: float, *, upper: bool) -> Bound:
    """What the claims prove. Pairs that were not looked at count as failing, and for the upper bound as right."""
    weights, question = request.weights, request.question
    tally, pairs = engine.tally()
    tables = length_by_sizes(ThresholdQuartic(), weights, request.task)
    breakdown = {name: flops for name, flops in tables.flops_breakdown.items() if name != "terms"}
    return Bound(
        question.total - engine.failing,
        engine.right if upper else None,
        COMPILED,
        measured={
            "walks": tally.walks,
            **harm_flops(weights, tally.joint, tally.apart),
            **({"listed sequences": tally.listed * (weights.d_vocab_out - 1)} if tally.listed else {}),
            "counting": tally.counting,
        },
        integer_ops=tally.counting,
        length=ProofLength({**breakdown, **pair_flops(weights, pairs)}, 0, tables.unexplained_dimensions),
        make_ledger=lambda: Ledger(question, weights.sha256, engine.lower_parts(), engine.upper_parts() if upper else None),
        counting_seconds=time.perf_counter() - started,
    )


def first_effort(weights: Model, *, joint: bool = True, apart: bool = False, upper: bool = False) -> Effort:
    """How hard to look at first, so that counting is not the bottleneck."""
    if weights.n_ctx <= 5:
        return Effort(400, classes=12, joint=joint, apart=apart, upper=upper)
    if apart:
        return Effort(25, joint=joint, apart=True, upper=upper)
    steps = 50 if weights.n_ctx > 10 else 100
    return Effort(steps, classes=12, joint=joint, upper=upper, ignore=1e-6 if weights.d_vocab <= 64 else 1e-5)


@dataclass(frozen=True)
class ThresholdQuartic(Pairwise):
    """For every query and label the worst of the outputs that matter, with a weight for each."""

    name: ClassVar[str] = "threshold-quartic"


@dataclass(frozen=True)
class ThresholdExactOutput(Pairwise):
    """For every query, label and output the exact threshold; failures add up, those of earlier outputs taken off."""

    name: ClassVar[str] = "threshold-exact-output"
    apart: ClassVar[bool] = True
