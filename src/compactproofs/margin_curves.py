"""How much of the inputs is answered right by more than each margin, from both sides; and the mean cross-entropy that follows from it."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np

from compactproofs.arrays.rounding import add_down, add_up, round_down, round_up
from compactproofs.budget import Budget
from compactproofs.counting.gaps import Gaps, evaluate_gaps
from compactproofs.counting.losses import excess_upper, loss_upper, mean_lower, mean_of_shares, mean_upper
from compactproofs.counting.outcome import Progress
from compactproofs.counting.weighing import is_plain
from compactproofs.errors import InfeasibleError, TaskError, UnsupportedError
from compactproofs.form.tables import interval_circuits
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.model.weights import Weights
from compactproofs.proving import Seconds, prove
from compactproofs.search.engine import Engine
from compactproofs.search.outputs import within_reach
from compactproofs.strategies.base import AbstractStrategy
from compactproofs.strategies.registry import DEFAULT
from compactproofs.tasks import AbstractTask, check_fits, task_for
from compactproofs.tasks.margin import margin_of_text, question_with_margin, require_margin
from compactproofs.tasks.question import Question
from compactproofs.version import __version__

ENUMERABLE = 1 << 26
"""Where there are no more sequences than this, each is evaluated."""
MOST_MARGINS = 1000
FOR_LOSSES = (-12.0, -8.0, *(float(margin) for margin in range(-6, 14)))
"""Margins from which losses are bounded if none are given."""
_STEPS = 50
"""Counting steps of single outputs."""


@dataclass(frozen=True)
class Point:
    """One margin."""

    margin: float
    at_least: int
    """So many inputs, at least, are answered right by more than the margin."""
    at_most: int


@dataclass(frozen=True)
class MarginCurve:
    """Certified shares of inputs that are answered right by more than each margin; and losses, if they were asked for."""

    points: tuple[Point, ...]
    """Margins ascend; counts descend."""
    total: int
    method: str
    """`enumeration`, or the strategy that proved each point."""
    loss: tuple[float, float] | None
    """Bounds of the mean cross-entropy in nats, rounded outwards."""
    seconds: float

    def largest_margin(self, share: Fraction) -> float | None:
        """The largest margin of the curve by more than which at least that share of all inputs is answered right for certain."""
        found = [point.margin for point in self.points if Fraction(point.at_least, self.total) >= share]
        return max(found, default=None)

    def as_json(self) -> dict[str, Any]:
        return {
            "points": [
                {
                    "margin": point.margin,
                    "lower": round_down(Fraction(point.at_least, self.total)),
                    "upper": round_up(Fraction(point.at_most, self.total)),
                    "right_at_least": str(point.at_least),
                    "right_at_most": str(point.at_most),
                }
                for point in self.points
            ],
            "total": str(self.total),
            "method": self.method,
            "log_loss": None if self.loss is None else {"lower": self.loss[0], "upper": None if math.isinf(self.loss[1]) else self.loss[1]},
            "margin_of_99_percent": self.largest_margin(Fraction(99, 100)),
            "seconds": self.seconds,
            "version": __version__,
        }


def margins_of_text(text: str) -> list[float]:
    """What A:B:STEP says: A, A + STEP, ... up to B, each the nearest float64 to the exact decimal.

    Example:
        >>> margins_of_text("0:1:0.25")
        [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    parts = text.split(":")
    try:
        first, last, step = (Decimal(part) for part in parts)
        sensible = all(number.is_finite() for number in (first, last, step)) and step > 0 and last >= first
        sensible = sensible and (last - first) / step < MOST_MARGINS
    except (ValueError, InvalidOperation):
        sensible = False
    if not sensible:
        raise TaskError(f"--margins {text:.40}: expected A:B:STEP, such as 0:10:0.5, at most {MOST_MARGINS} of them, with a step above 0")
    count = int((last - first) / step) + 1
    return [margin_of_text(str(first + j * step)) for j in range(count)]


def margin_curve(
    weights: Model,
    margins: Sequence[float],
    task: AbstractTask | None = None,
    *,
    strategy: str | AbstractStrategy = DEFAULT,
    seconds: float | None = None,
    log_loss: bool = False,
    progress: Progress | None = None,
) -> MarginCurve:
    """Bound the share of inputs that are answered right by more than each margin, and with `log_loss` the mean cross-entropy.

    A network of one head without norms and MLP, of at most 2^26 inputs, is evaluated on all of them if there is time; else each margin is
    a proof of its own, and `seconds` are for all of them together.

    Example:
        >>> import compactproofs as cp
        >>> curve = cp.margin_curve(cp.zoo("max-of-10"), [0.0, 4.0], strategy="threshold-cubic-pooled")
        >>> [point.at_least / curve.total > 0.98 for point in curve.points]
        [True, True]
    """
    task = task_for(weights) if task is None else task
    check_fits(task, weights)
    started = time.perf_counter()
    wanted = sorted({require_margin(margin) for margin in margins})
    if not wanted:
        raise TaskError("no margins; expected at least one")
    if isinstance(weights, Weights) and is_plain(task) and task.total <= ENUMERABLE and strategy == DEFAULT:
        with suppress(InfeasibleError):  # there is no time for it
            found = evaluate_gaps(weights, task, wanted, losses=log_loss, seconds=seconds, progress=progress)
            return MarginCurve(_points(found), task.total, "enumeration", found.loss, time.perf_counter() - started)
    if log_loss:
        require_additive(weights)
    budget, name = Budget(seconds), strategy if isinstance(strategy, str) else strategy.label
    proving = 0.4 if log_loss else 1.0
    raw = []
    for done, margin in enumerate(wanted):
        share: Seconds = "usual" if seconds is None else max(0.0, proving * seconds - budget.used) / (len(wanted) - done)
        proof = prove(weights, strategy, task, upper=True, seconds=share, margin=margin)
        if proof.status == "infeasible" and proof.flops == 0:  # the strategy is not about such questions
            raise UnsupportedError(proof.reason or "")
        raw.append(Point(margin, proof.correct_at_least, proof.total if proof.correct_at_most is None else proof.correct_at_most))
        if progress is not None:
            progress(done + 1, len(wanted))
    points = monotone(raw)
    loss = _losses(weights, task, points, budget) if log_loss else None
    return MarginCurve(points, task.total, name, loss, time.perf_counter() - started)


def _points(gaps: Gaps) -> tuple[Point, ...]:
    return tuple(Point(*row) for row in zip(gaps.margins, gaps.at_least, gaps.at_most, strict=True))


def monotone(points: Sequence[Point]) -> tuple[Point, ...]:
    """The same bounds, each at least as good: who wins by more than a larger margin wins by more than a smaller one.

    Guarantee: if all points hold, all of the result do. (docs/explanation/margins.md, Lemma M.)
    """
    least, most = [point.at_least for point in points], [point.at_most for point in points]
    for j in range(len(points) - 2, -1, -1):
        least[j] = max(least[j], least[j + 1])
    for j in range(1, len(points)):
        most[j] = min(most[j], most[j - 1])
    return tuple(Point(point.margin, a, b) for point, a, b in zip(points, least, most, strict=True))


def require_additive(weights: Model) -> None:
    """Raise unless gaps of all inputs can be bounded from the tables of one head."""
    if isinstance(weights, Network):
        raise UnsupportedError("log-loss is bounded for networks of one head without norms and MLP; margins are, for every network")


def gap_range(weights: Model, question: Question) -> tuple[float, float]:
    """Bounds of the gaps of all inputs.

    Guarantee: no gap is smaller than the first or larger than the second.
    Assumes: one head, an affine readout. Attention is a convex combination, so a difference of logits lies between its extreme entries.
    Cost: O(d_vocab_out^2 d_vocab) for all labels.
    """
    tables = interval_circuits(weights)
    v, out = weights.d_vocab, weights.d_vocab_out
    smallest, greatest = math.inf, -math.inf
    for label in question.task.labels:
        tokens, others = question.label_automaton(label).tokens, np.arange(out) != label
        if not len(tokens) or out == 1:
            continue
        low, high = np.zeros(out - 1), np.zeros(out - 1)  # for each other output, by how much the label wins
        for part in (tables.EVOU.reshape(-1, v, out)[:, tokens], tables.PVOU, tables.EU[tokens]):
            flat = part.reshape(-1, out)
            wins = flat[:, [label]] - flat[:, others]
            low, high = add_down(low, wins.lower.min(axis=0)), add_up(high, wins.upper.max(axis=0))
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            return -math.inf, math.inf
        smallest, greatest = min(smallest, float(low.min())), max(greatest, float(high.min()))
    return (smallest, greatest) if smallest <= greatest else (-math.inf, math.inf)


def _losses(weights: Model, task: AbstractTask, points: Sequence[Point], budget: Budget) -> tuple[float, float]:
    """Bounds of the mean cross-entropy: the better of two upper ones."""
    others, total = weights.d_vocab_out - 1, task.total
    if others == 0:
        return 0.0, 0.0
    smallest, greatest = gap_range(weights, Question(task))
    margins = [point.margin for point in points]
    above = [Fraction(point.at_least, total) for point in points]
    least = mean_lower(margins, [Fraction(point.at_most, total) for point in points], greatest)
    candidates = [mean_upper(margins, above, smallest, lambda gap: loss_upper(gap, others))]
    excess = mean_upper(margins, above, smallest, excess_upper)
    if excess is not None:
        candidates.append(excess + mean_of_shares(margins, _all_within(weights, task, margins, budget), others))
    known = [bound for bound in candidates if bound is not None]
    return round_down(least), round_up(min(known)) if known else math.inf


def _all_within(weights: Model, task: AbstractTask, margins: Sequence[float], budget: Budget) -> list[Fraction]:
    """For each margin at least the mean number of outputs that the label does not beat by it. What there is no time for takes over what is
    known of the next larger margin: it is no more."""
    others = Fraction(weights.d_vocab_out - 1)
    found = [others] * len(margins)
    for stride in (8, 4, 2, 1):
        for j in range(0, len(margins), stride):
            if found[j] == others and not budget.over:
                question = _question(task, weights.d_vocab_out, margins[j])
                own = Budget(None if budget.left == math.inf else budget.left)
                found[j] = Fraction(within_reach(Engine.of(weights, question), _STEPS, own), task.total)
    for j in range(len(found) - 2, -1, -1):
        found[j] = min(found[j], found[j + 1])
    return found


def _question(task: AbstractTask, outputs: int, margin: float) -> Question:
    return question_with_margin(task, outputs, margin) or Question(task)
