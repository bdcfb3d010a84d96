"""The proof explorer's data: for every label and query, what each strategy proves, what harms, and what is left unproven.

For one label m and query q the sequence is right if the harms of its tokens add up to less than zero. Harms are shown in units of what one
copy of the label takes off, at its worst position; the budget is what the query itself leaves: tokens x_0 .. x_{k-2} are safe together if
their harms add up to less than the budget.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from compactproofs.bounds.pairs import Pair, harmful_outputs, joint_harms, pair_of
from compactproofs.counting.subject import Subject, for_queries, subject_of
from compactproofs.errors import InfeasibleError
from compactproofs.form.evaluation import Evaluation, prepare
from compactproofs.form.tables import float_circuits
from compactproofs.ledger.inspect import proven_by_query, unproven_by_query
from compactproofs.model.forward import forward
from compactproofs.model.weights import Weights
from compactproofs.search.covers import balanced
from compactproofs.search.grids import natural_unit
from compactproofs.strategies.base import AbstractStrategy, Request

EXPLORED = (
    "threshold-best",
    "threshold-cubic",
    "threshold-cubic-pooled",
    "threshold-quadratic-pooled",
    "cubic",
    "subcubic/max_diff_exact/exact_EQKE+max_diff_exact/envelope",
    "subcubic/mean_query+max_diff/svd/mean_query+diff",
)
"""Strategies that the explorer shows, the first one first."""

LARGEST_VOCABULARY = 128
"""Beyond, the map has too many cells for a page."""

_DIGITS = 3


def explore(weights: Weights, strategies: list[AbstractStrategy], request: Request) -> dict[str, Any]:
    """The explorer's data for some strategies, without those that take longer than allowed; empty for large vocabularies."""
    if weights.d_vocab > LARGEST_VOCABULARY or weights.d_vocab_out < weights.d_vocab:
        return {}
    task = request.task
    totals = {label: task.label_automaton(label).totals_by_last(task.n_ctx) for label in task.labels}
    evaluation = prepare(weights)
    with np.errstate(all="ignore"):
        subjects = [subject_of(request.question, m) for m in range(weights.d_vocab)]
        views = [[_View(evaluation, subject, q) for q in range(subject.label + 1)] for subject in subjects]
        examples = [[view.worst_sequence for view in row] for row in views]
        answers = _answers(weights, examples)
    found: dict[str, dict[str, Any]] = {}
    for strategy in strategies:
        try:
            counts, unproven = _looked_at(strategy, replace(request))  # each has all the time
        except InfeasibleError:
            continue
        if counts is None:
            continue
        pairs = [list(zip(counts[m], totals[m], strict=True)) for m in sorted(counts)]
        found[strategy.label] = {
            "certified": [[_ratio(proven, total) for proven, total in row] for row in pairs],
            "lost": [[_ratio(total - proven, task.total) for proven, total in row] for row in pairs],
            **_examples(weights, unproven),
        }
    return {
        "strategies": found,
        "harms": [[view.harms for view in row] for row in views],
        "budget": [[view.budget for view in row] for row in views],
        "output": [[view.output for view in row] for row in views],
        "examples": examples,
        "examples_right": answers,
    }


def _looked_at(
    strategy: AbstractStrategy, request: Request
) -> tuple[dict[int, list[int]] | None, dict[int, list[list[int] | None]] | None]:
    """What the strategy proves by label and query, and what it does not; of a threshold strategy from one proof."""
    make_ledger = strategy.bound(request).make_ledger if strategy.family == "threshold" else None
    if make_ledger is None:
        return strategy.by_pair(request), strategy.unproven(request)
    ledger = make_ledger()
    return proven_by_query(ledger, request.weights), unproven_by_query(ledger, request.weights)


class _View:
    """One label and query, in float64: for looking at, not a proof."""

    def __init__(self, evaluation: Evaluation, subject: Subject, q: int) -> None:
        pair, masses = pair_of(evaluation, subject.tokens, subject.label, q), for_queries(subject, np.array([q]))
        others = np.array([o for o in range(len(pair.G)) if o != subject.label], dtype=np.int64)
        harmful = harmful_outputs(pair, others, masses, subject.automaton)
        outputs = harmful if len(harmful) else _most_dangerous(pair, others, q)
        self.harms: list[float] = []
        self.budget, self.output = 0.0, -1
        self.worst_sequence: list[int] = []
        if len(outputs) == 0:
            return
        m = subject.usual
        weights = balanced(np.array([natural_unit(pair.G[o], masses, m, m) for o in outputs]))
        h = joint_harms(pair._replace(tolerance=0.0, floor=0.0), outputs, weights)
        unit = float(natural_unit(h, masses, m, m))
        worst = h[:-1].max(axis=0) / unit if len(h) > 1 else np.zeros(m + 1)
        self.harms = [_short(x) for x in worst]
        self.budget = _short(-h[-1, q] / unit)
        self.worst_sequence = _worst_sequence(h, m, q)
        places, chosen = np.arange(len(h)), np.array(self.worst_sequence)
        sums = [pair.G[o][places, chosen].sum() for o in outputs]
        self.output = int(outputs[int(np.argmax(sums))])


def _most_dangerous(pair: Pair, others: np.ndarray, q: int) -> np.ndarray:
    """The output that comes nearest to winning."""
    if len(others) == 0:
        return others
    best = [pair.G[o][:-1].max(axis=1).sum() + pair.G[o][-1, q] for o in others]
    return others[[int(np.argmax(best))]]


def _worst_sequence(h: np.ndarray, m: int, q: int) -> list[int]:
    """The most harmful token everywhere; the label where that costs least, unless the query is the label."""
    tokens = h[:-1].argmax(axis=1)
    if q != m and m not in tokens and len(tokens):
        loss = h[np.arange(len(tokens)), tokens] - h[:-1, m]
        tokens[int(np.argmin(loss))] = m
    return [*tokens.tolist(), q]


def _answers(weights: Weights, examples: list[list[list[int]]]) -> list[list[int]]:
    """Whether the model gets the examples right, in float64: 1 or 0; -1 without an example or where no such sequence exists."""
    answers = []
    for m, row in enumerate(examples):
        usable = [x for x in row if x and max(x) == m]
        logits = forward(weights, np.array(usable)) if usable else np.zeros((0, weights.d_vocab_out))
        others = np.where(np.arange(weights.d_vocab_out) == m, -np.inf, logits)
        right = iter((logits[:, m] > others.max(axis=1)).astype(int).tolist())
        answers.append([next(right) if x and max(x) == m else -1 for x in row])
    return answers


def _examples(weights: Weights, unproven: dict[int, list[list[int] | None]] | None) -> dict[str, Any]:
    """Sequences that a strategy does not prove, and the model's answers; nothing if the strategy cannot tell."""
    if unproven is None:
        return {}
    sequences = [[x or [] for x in unproven[m]] for m in sorted(unproven)]
    return {"examples": sequences, "examples_right": _answers(weights, sequences)}


def _ratio(part: int, whole: int) -> float:
    """part / whole for integers of any size; 1 if there is nothing."""
    return float(f"{part / whole:.9g}") if whole else 1.0


def _short(x: float) -> float:
    """A few significant digits: enough to draw."""
    return float(f"{x:.{_DIGITS}g}") if np.isfinite(x) else 0.0


def direct_tables(weights: Weights) -> dict[str, np.ndarray]:
    """The five tables in float32, EQKE and EQKP with the attention scale inside."""
    with np.errstate(all="ignore"):
        tables = float_circuits(weights)
        largest = float(np.finfo(np.float32).max)
        return {name: np.clip(np.nan_to_num(table), -largest, largest).astype(np.float32) for name, table in vars(tables).items()}
