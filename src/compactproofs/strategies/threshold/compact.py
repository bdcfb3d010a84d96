"""Compact threshold proofs: how little understanding a bound needs, under a budget of FLOPs."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from compactproofs.arrays.environment import require_ieee754
from compactproofs.errors import InfeasibleError, StrategyError
from compactproofs.ledger.ledger import Ledger
from compactproofs.ledger.verify import INTERVALS, verify
from compactproofs.model.kinds import Model
from compactproofs.model.weights import Weights
from compactproofs.search.compact import (
    Case,
    Plan,
    Sizes,
    blank,
    cost_of,
    find_hints,
    fixed_flops,
    ledger_of,
    options_of,
    plan,
    table_flops,
)
from compactproofs.strategies.base import AbstractStrategy, Bound, ProofLength, Request, require_max_of_k, require_plain
from compactproofs.strategies.threshold.limits import refuse_if_too_long
from compactproofs.strategies.threshold.tabled import trivial_ledger
from compactproofs.tasks import AbstractTask
from compactproofs.tasks.question import Question

_FINE = (2000,)
"""Steps to a label where counting does not depend on them."""

_COARSE = (3, 4, 6, 8, 12, 16, 24)

_SAFETY = 0.995
"""Counting in intervals may take a little longer than in the float64 search."""


@dataclass(frozen=True)
class Found:
    """The best so far."""

    sizes: Sizes
    plan: Plan


@dataclass(frozen=True)
class CompactStrategy(AbstractStrategy):
    """What compact strategies share: a search over sizes, then one proof in intervals."""

    flops: int | None = None
    """The proof takes at most so many, and sizes are searched for; None: the usual sizes"""

    family: ClassVar[str] = "threshold"

    def __post_init__(self) -> None:
        if self.flops is None:
            return
        try:
            found = int(float(self.flops))
        except (TypeError, ValueError, OverflowError):
            found = 0
        if found < 1:
            raise StrategyError(f"{self.name}: flops={self.flops!r:.40}; expected a number of FLOPs, such as 1000000")
        object.__setattr__(self, "flops", found)

    @property
    def label(self) -> str:
        return self.name if self.flops is None else f"{self.name}/{self.flops}"

    @property
    def source(self) -> str:
        return "ours; docs/explanation/compact-end.md"

    @property
    def parameters(self) -> dict[str, Any]:
        return {"flops": self.flops}

    def bound(self, request: Request) -> Bound:
        """Search for what to look at, then prove it.

        Guarantee: correct_at_least is at most the mass answered right, for every weight setting.
        Assumes: max-of-K, one head without norms, biases and MLP.
        Cost: at most `flops`, counting included.
        Source: docs/explanation/compact-end.md.
        """
        require_ieee754()
        weights = require_plain(request.weights, self.name)
        require_max_of_k(request.task, self.name)
        refuse_if_too_long(request, self.name, estimated_seconds(weights))
        if weights.d_vocab_out == 1:
            return Bound(request.question.total, None, INTERVALS, make_ledger=lambda: trivial_ledger(request), length=_nothing())
        started = time.perf_counter()
        most = float("inf") if self.flops is None else float(self.flops)
        found = self.search(weights, request, most)
        searched = time.perf_counter()
        for safety in (1.0, _SAFETY, 0.97, 0.9):
            ledger, length = _written(weights, request.question, found.sizes, most * safety)
            if self.flops is not None and not ledger.lower:
                raise InfeasibleError(f"{self.label}: no such proof within {self.flops} FLOPs proves anything here. Allow more")
            verified = verify(ledger, weights)
            if length.flops + verified.operations <= most:
                break
        return Bound(
            verified.correct_at_least,
            None,
            INTERVALS,
            measured={"counting": verified.operations},
            integer_ops=verified.operations,
            length=None if self.flops is None else length,
            make_ledger=lambda: ledger,
            search_seconds=searched - started,
        )

    def search(self, weights: Weights, request: Request, most: float) -> Found:
        """Sizes that prove much: from a start, one change at a time."""
        question, seen = request.question, set[Sizes]()
        if self.flops is None:
            return Found(self.usual(weights), Plan(0.0, 0, []))

        def look(sizes: Sizes) -> Found:
            seen.add(sizes)
            case = Case.of(weights, question, sizes)
            if fixed_flops(case) > most:
                return Found(sizes, Plan(0.0, 0, []))
            cost = cost_of(case)
            return Found(sizes, plan(options_of(weights, question, find_hints(weights, sizes), steps_for(weights)), cost, most))

        best = max((look(sizes) for sizes in dict.fromkeys(self.starts(weights, question, most))), key=lambda found: found.plan.proven)
        improved, enough = True, looks_for(weights)
        while improved and len(seen) < enough:
            improved = False
            for sizes in self.neighbours(weights, best.sizes):
                if sizes in seen or len(seen) >= enough or request.budget.stopped or request.budget.left < 0.5:
                    continue
                found = look(sizes)
                if found.plan.proven > best.plan.proven:
                    best, improved = found, True
        return best

    def within(self, flops: int) -> CompactStrategy:
        return replace(self, flops=flops if self.flops is None else min(flops, self.flops))

    @abstractmethod
    def usual(self, weights: Weights) -> Sizes:
        """Without a budget."""

    @abstractmethod
    def starts(self, weights: Weights, question: Question, most: float) -> Iterator[Sizes]:
        """Where to begin."""

    @abstractmethod
    def neighbours(self, weights: Weights, sizes: Sizes) -> Iterator[Sizes]:
        """Sizes with one thing changed, within what the strategy is about."""

    def length(self, weights: Model, task: AbstractTask) -> ProofLength:
        """Tables of every label that has rows; with a budget, of the last label alone. `bound` says how long its proof is."""
        plain = require_plain(weights, self.name)
        require_max_of_k(task, self.name)
        question = Question(task)
        if plain.d_vocab_out == 1:
            return _nothing()
        if self.flops is None:
            sizes = self.usual(plain)
            return _length(plain, question, sizes, list(range(sizes.first_token, plain.d_vocab)))
        most = float(self.flops)
        sizes = min(self.starts(plain, question, most), key=lambda each: fixed_flops(Case.of(plain, question, each)))
        return _length(plain, question, sizes, [plain.d_vocab - 1])


def _nothing() -> ProofLength:
    return ProofLength({}, 0, 0)


def _written(weights: Weights, question: Question, sizes: Sizes, most: float) -> tuple[Ledger, ProofLength]:
    hints = find_hints(weights, sizes)
    found = plan(options_of(weights, question, hints, steps_for(weights)), cost_of(Case.of(weights, question, sizes)), most)
    length = _length(weights, question, sizes, found.labels) if found.labels else _nothing()
    return ledger_of(weights, question, hints, found), length


def _length(weights: Weights, question: Question, sizes: Sizes, labels: list[int]) -> ProofLength:
    return ProofLength(table_flops(weights, question, blank(weights, sizes), labels), 0, _unexplained(weights, sizes))


def _unexplained(weights: Weights, sizes: Sizes) -> int:
    """Every number of a table that the proof looks up: rows of values and scores, the direct path, or coordinates and lengths instead."""
    v, k, out, d = weights.d_vocab, weights.n_ctx, weights.d_vocab_out, weights.d_model
    rows = v - sizes.first_token + k
    scores = v * rows if sizes.score_rank is None else (v + rows) * (sizes.score_rank + 1)
    direct = v * out if sizes.direct_rank is None else (v + out) * (sizes.direct_rank + 1)
    return rows * out + scores + direct + (2 * d + 3 if sizes.first_token else 0)


def steps_for(weights: Model) -> tuple[int, ...]:
    """Grids to choose from: fine ones where two pointers count, coarse ones, with fewer distinct harms, where that takes long."""
    return _FINE if weights.n_ctx <= 4 else (*_FINE, 48, 16) if weights.n_ctx == 5 else _COARSE


def looks_for(weights: Model) -> int:
    """So many sizes are tried."""
    return 60 if weights.n_ctx <= 5 else max(3, 12 * 64**2 // weights.d_vocab**2)


def _usual_near(weights: Model) -> int:
    """Near tokens to begin with: in longer sequences more of them stand beside one label."""
    return 4 if weights.n_ctx <= 4 else 6 if weights.n_ctx <= 5 else 10


def estimated_seconds(weights: Model) -> float:
    """About how long the search takes at least; decides only what is worth starting."""
    return 2e-7 * weights.d_vocab**3 * max(1.0, weights.n_ctx / 5)


@dataclass(frozen=True)
class ThresholdNear(CompactStrategy):
    """Tokens near the label one by one, all others together; a weight for every output of every label."""

    name: ClassVar[str] = "threshold-near"

    @property
    def complexity(self) -> str:
        return "O(d_vocab^2 (d_model + d_vocab)) and counting"

    def starts(self, weights: Weights, question: Question, most: float) -> Iterator[Sizes]:
        out = weights.d_vocab_out
        yield from (Sizes(0, _usual_near(weights), out, min(c, out), None, None, True) for c in (2, out))

    def usual(self, weights: Weights) -> Sizes:
        return Sizes(0, _usual_near(weights) + 2, weights.d_vocab_out, weights.d_vocab_out, None, None, True)

    def neighbours(self, weights: Weights, sizes: Sizes) -> Iterator[Sizes]:
        yield from _near(sizes)
        yield from (replace(sizes, direct_outputs=c) for c in {0, 1, 2, 4, 8, weights.d_vocab_out} if c <= weights.d_vocab_out)


@dataclass(frozen=True)
class ThresholdNearBlocks(CompactStrategy):
    """Outputs near the label one by one, those below and those above with one weight each; small labels are given up."""

    name: ClassVar[str] = "threshold-near-blocks"

    @property
    def complexity(self) -> str:
        return "O(d_vocab^2 d_model) and counting"

    def starts(self, weights: Weights, question: Question, most: float) -> Iterator[Sizes]:
        for rank in (None, 4):
            base = Sizes(0, _usual_near(weights), 2, 2, _at_most(rank, weights), None)
            yield from _fitting(weights, question, base, 0.85 * most)

    def usual(self, weights: Weights) -> Sizes:
        return Sizes(weights.d_vocab // 8, _usual_near(weights), 4, 2, None, None)

    def neighbours(self, weights: Weights, sizes: Sizes) -> Iterator[Sizes]:
        yield from _near(sizes)
        yield from _rows(weights, sizes)
        yield from _outputs(weights, sizes)
        yield from _ranks(weights, sizes, "direct_rank")


@dataclass(frozen=True)
class ThresholdLowRank(CompactStrategy):
    """The same with scores and the direct path in a few directions, and lengths of what is left."""

    name: ClassVar[str] = "threshold-low-rank"

    @property
    def complexity(self) -> str:
        return "O(d_vocab d_model (d_model + d_vocab)) and counting, with d_vocab instead of d_vocab^2 for scores and the direct path"

    def starts(self, weights: Weights, question: Question, most: float) -> Iterator[Sizes]:
        near = _usual_near(weights)
        for direct, score, tokens, share in ((0, 3, near, 0.8), (0, 1, near - 1, 0.9), (0, 2, near, 0.85), (4, 4, near, 0.8)):
            sizes = Sizes(0, tokens, 4, 1, _at_most(direct, weights), _at_most(score, weights))
            yield from _fitting(weights, question, sizes, share * most)

    def usual(self, weights: Weights) -> Sizes:
        return Sizes(3 * weights.d_vocab // 8, _usual_near(weights), 2, 2, 0, _at_most(3, weights))

    def neighbours(self, weights: Weights, sizes: Sizes) -> Iterator[Sizes]:
        yield from _rows(weights, sizes)
        yield from _ranks(weights, sizes, "score_rank")
        yield from _ranks(weights, sizes, "direct_rank")
        yield from _near(sizes)
        yield from _outputs(weights, sizes)


def _at_most(rank: int | None, weights: Weights) -> int | None:
    return None if rank is None else min(rank, weights.d_model)


def _fitting(weights: Weights, question: Question, sizes: Sizes, most: float) -> Iterator[Sizes]:
    """The same with the most rows whose tables take at most so many FLOPs: the rest is for labels and counting."""
    step = max(1, weights.d_vocab // 32)
    for first in range(0, weights.d_vocab, step):
        found = replace(sizes, first_token=first)
        if fixed_flops(Case.of(weights, question, found)) <= most or first + step >= weights.d_vocab:
            yield found
            return


def _near(sizes: Sizes) -> Iterator[Sizes]:
    yield replace(sizes, label_by_position=not sizes.label_by_position)
    yield from (replace(sizes, near_tokens=n) for n in (sizes.near_tokens + 1, sizes.near_tokens - 1, sizes.near_tokens + 3) if n >= 1)


def _rows(weights: Weights, sizes: Sizes) -> Iterator[Sizes]:
    unit = max(1, weights.d_vocab // 64)
    for change in (-2, 2, -1, 1, -4, 4):
        first = sizes.first_token + change * unit
        if 0 <= first < weights.d_vocab:
            yield replace(sizes, first_token=first)


def _outputs(weights: Weights, sizes: Sizes) -> Iterator[Sizes]:
    for c in (1, 2, 4, 8):
        if c <= weights.d_vocab_out:
            yield replace(sizes, near_outputs=c, direct_outputs=min(c, max(sizes.direct_outputs, 1)))
            yield replace(sizes, near_outputs=max(c, sizes.near_outputs), direct_outputs=c)


def _ranks(weights: Weights, sizes: Sizes, name: str) -> Iterator[Sizes]:
    """One rank less, one more; after the last, the table itself."""
    ranks = [rank for rank in (0, 1, 2, 3, 4, 6, 8, 12) if rank <= weights.d_model and (rank > 0 or name == "direct_rank")]
    now = sizes.direct_rank if name == "direct_rank" else sizes.score_rank
    if now is None:
        others: list[int | None] = [ranks[-1], ranks[len(ranks) // 2]]
    else:
        others = [*[rank for rank in ranks if rank < now][-1:], min((rank for rank in ranks if rank > now), default=None)]
    for rank in others:
        yield replace(sizes, direct_rank=rank) if name == "direct_rank" else replace(sizes, score_rank=rank)
