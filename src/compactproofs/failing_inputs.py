"""Which inputs can fail: for each label how many at most, by a proof, and one that does, found by a search and decided exactly."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compactproofs.budget import Budget
from compactproofs.counting.brute_force import truth_of
from compactproofs.counting.kernels import CORRECT, UNCERTAIN
from compactproofs.counting.truth import AbstractTruth
from compactproofs.errors import TaskError
from compactproofs.ledger.inspect import proven_by_query, unproven_by_query
from compactproofs.model.forward import forward
from compactproofs.model.kinds import Model
from compactproofs.proving import prove
from compactproofs.strategies.registry import DEFAULT
from compactproofs.tasks import AbstractTask, check_fits, task_for
from compactproofs.tasks.label_automaton import DEAD, LabelAutomaton
from compactproofs.tasks.question import Question
from compactproofs.version import __version__

YES, NO, UNKNOWN = "yes", "no", "not known"
"""Whether there is an input that fails: with the input, proven, or neither."""

DEFAULT_SECONDS = 30.0
ENUMERABLE = 1 << 25
"""So many sequences of a label are evaluated one by one if nothing else finds one that fails."""
_BATCH = 1 << 14
_PROVING = 0.5
"""Which part of the time the proof may take."""


@dataclass(frozen=True)
class Failures:
    """What is known about the failing inputs of one label."""

    label: int
    total: int
    """Inputs with this label."""
    failing_at_most: int
    """No more of them fail: proven."""
    any_fails: str
    """`yes` (there is an `example`), `no` (proven) or `not known`."""
    example: tuple[int, ...] | None
    """An input that fails: decided exactly."""
    output: int | None
    """Which output has the largest logit on the example, the label aside."""
    by: float | None
    """By about how much that output wins (floating point: only whether it does is decided exactly)."""
    queries: tuple[tuple[int, int], ...]
    """The worst last tokens: how many inputs that end in each may fail, most first."""

    def as_json(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "total": str(self.total),
            "failing_at_most": str(self.failing_at_most),
            "any_fails": self.any_fails,
            "example": None if self.example is None else list(self.example),
            "output": self.output,
            "by": self.by,
            "worst_last_tokens": [{"token": token, "failing_at_most": str(mass)} for token, mass in self.queries],
        }


@dataclass(frozen=True)
class Counterexamples:
    """What is known about failing inputs, by label."""

    labels: tuple[Failures, ...]
    total: int
    seconds: float

    @property
    def failing_at_most(self) -> int:
        return sum(each.failing_at_most for each in self.labels)

    def as_json(self) -> dict[str, Any]:
        return {
            "labels": [each.as_json() for each in self.labels],
            "failing_at_most": str(self.failing_at_most),
            "total": str(self.total),
            "seconds": self.seconds,
            "version": __version__,
        }


def counterexamples(
    weights: Model,
    task: AbstractTask | None = None,
    *,
    label: int | None = None,
    seconds: float = DEFAULT_SECONDS,
    seed: int = 0,
) -> Counterexamples:
    """Say for each label, or for one, whether an input that carries it fails.

    A threshold proof bounds how many do. Where it leaves any, failing inputs are looked for: among those that the proof finds worst, by
    changing single tokens, and, where there are few enough, one by one. Every example is decided exactly: some other output's logit is at
    least the label's, over the reals.

    Example:
        >>> import compactproofs as cp
        >>> found = cp.counterexamples(cp.zoo("max-of-4"), label=40)
        >>> found.labels[0].any_fails in ("yes", "no")
        True
    """
    task = task_for(weights) if task is None else task
    check_fits(task, weights)
    if label is not None and label not in task.labels:
        raise TaskError(f"label {label}: no input carries it; labels: {_some(task.labels)}")
    started, budget = time.perf_counter(), Budget(seconds)
    proof = prove(weights, DEFAULT, task, upper=True, seconds=_PROVING * seconds)
    question = Question(task)
    ledger = proof.ledger
    proven = {} if ledger is None else proven_by_query(ledger, weights)
    worst = {} if ledger is None else unproven_by_query(ledger, weights)
    wanted = [each for each in task.labels if label in (None, each)]
    search = _Search(weights, task, truth_of(weights), np.random.default_rng(seed))
    found, left = [], [m for m in wanted if _failing(question, proven, m)]
    for m in wanted:
        own = Budget(budget.left / max(1, len(left) - left.index(m))) if m in left else None
        starts = [sequence for sequence in worst.get(m, []) if sequence is not None]
        example = None if own is None else search.failing(m, question.label_automaton(m), starts, own)
        found.append(_about(search, question, proven, m, example))
    return Counterexamples(tuple(found), task.total, time.perf_counter() - started)


def _some(labels: Sequence[int]) -> str:
    shown = ", ".join(map(str, labels[:8]))
    return shown if len(labels) <= 8 else f"{shown}, ... {labels[-1]}"


def _by_query(question: Question, proven: dict[int, list[int]], label: int) -> list[int]:
    """How many inputs may fail, for each last token of the label."""
    totals = question.totals_by_last(label)
    return [total - right for total, right in zip(totals, proven.get(label, [0] * len(totals)), strict=True)]


def _failing(question: Question, proven: dict[int, list[int]], label: int) -> int:
    return sum(_by_query(question, proven, label))


def _about(search: _Search, question: Question, proven: dict[int, list[int]], label: int, example: list[int] | None) -> Failures:
    masses = _by_query(question, proven, label)
    tokens = question.label_automaton(label).tokens.tolist()
    worst = sorted(((token, mass) for token, mass in zip(tokens, masses, strict=True) if mass > 0), key=lambda each: -each[1])[:5]
    output, by = (None, None) if example is None else search.winner(example, label)
    verdict = YES if example is not None else NO if not sum(masses) else UNKNOWN
    total = sum(question.totals_by_last(label))
    return Failures(label, total, sum(masses), verdict, None if example is None else tuple(example), output, by, tuple(worst))


@dataclass(frozen=True)
class _Search:
    """Looks for inputs that fail. Floating point guides it; `truth` decides."""

    weights: Model
    task: AbstractTask
    truth: AbstractTruth
    generator: np.random.Generator

    def failing(self, label: int, automaton: LabelAutomaton, starts: list[list[int]], budget: Budget) -> list[int] | None:
        """An input of the label that fails, if one is found in time."""
        if starts:
            rows = np.array(starts, dtype=np.int64)
            rows = rows[np.argsort(self.gaps(rows, label), kind="stable")]
            found = self.first_wrong(rows, label)
            if found is not None:
                return found
        everything = sum(automaton.totals_by_last(self.task.n_ctx))
        for number, start in enumerate(self._starts(automaton, starts)):
            if budget.over or (number >= _TRIES and everything <= ENUMERABLE):
                break
            found = self.first_wrong(self.descended(np.array(start), label, budget)[None], label)
            if found is not None:
                return found
        if everything <= ENUMERABLE:
            for rows in _batches(automaton, self.task.n_ctx):
                found = None if budget.over else self.first_wrong(rows, label)
                if budget.over or found is not None:
                    return found
        return None

    def first_wrong(self, rows: np.ndarray, label: int) -> list[int] | None:
        """The first of these sequences, which carry the label, that fails for certain."""
        rows = np.ascontiguousarray(rows[self._allowed(rows, label)])
        if not len(rows):
            return None
        verdicts = self.truth.verdicts(rows, np.full(len(rows), label, dtype=np.int64))
        for row in np.flatnonzero(verdicts != CORRECT).tolist():
            sequence: list[int] = rows[row].tolist()
            if verdicts[row] != UNCERTAIN or self.truth.is_correct(sequence, label) is False:
                return sequence
        return None

    def descended(self, row: np.ndarray, label: int, budget: Budget) -> np.ndarray:
        """Change one token at a time, always the best of all changes, while the label's lead shrinks."""
        lead = float(self.gaps(row[None], label)[0])
        while lead > 0.0 and not budget.over:
            near = np.repeat(row[None], len(row) * self.task.d_vocab, axis=0)
            at = np.arange(len(near))
            near[at, at // self.task.d_vocab] = at % self.task.d_vocab
            near = near[self._allowed(near, label)]
            leads = self.gaps(near, label)
            best = int(leads.argmin())
            if not leads[best] < lead:
                break
            row, lead = near[best], float(leads[best])
        return row

    def gaps(self, rows: np.ndarray, label: int) -> np.ndarray:
        """The label's logit minus the largest other one, in floating point: a guide."""
        logits = forward(self.weights, rows)
        others = np.where(np.arange(logits.shape[1]) == label, -np.inf, logits).max(axis=1)
        return np.asarray(np.nan_to_num(logits[:, label] - others, nan=np.inf))

    def winner(self, sequence: list[int], label: int) -> tuple[int, float]:
        """The largest other output, and about by how much it is larger than the label's."""
        logits = forward(self.weights, np.array([sequence]))[0]
        others = np.where(np.arange(len(logits)) == label, -np.inf, logits)
        output = int(others.argmax())
        return output, float(logits[output] - logits[label])

    def _allowed(self, rows: np.ndarray, label: int) -> np.ndarray:
        fits = np.asarray(self.task.automaton.label(rows) == label)
        allowed = self.task.allowed
        return fits if allowed is None else fits & allowed[np.arange(rows.shape[1]), rows].all(axis=1)

    def _starts(self, automaton: LabelAutomaton, starts: list[list[int]]) -> Iterator[list[int]]:
        yield from starts[:_TRIES]
        while True:
            yield _drawn(automaton, self.task.n_ctx, self.generator)


_TRIES = 50


def _useful(automaton: LabelAutomaton, n_ctx: int) -> np.ndarray:
    """(position, state): whether an accepted ending follows."""
    found = np.zeros((n_ctx + 1, len(automaton.following)), dtype=bool)
    found[n_ctx] = automaton.accepting
    for i in range(n_ctx - 1, -1, -1):
        found[i] = ((automaton.following != DEAD) & found[i + 1][automaton.following]).any(axis=1)
    return found


def _drawn(automaton: LabelAutomaton, n_ctx: int, generator: np.random.Generator) -> list[int]:
    """Some sequence of the label, every token a fair choice among those that can still end in it."""
    useful, state, row = _useful(automaton, n_ctx), automaton.start, []
    for i in range(n_ctx):
        following = automaton.following[state]
        number = int(generator.choice(np.flatnonzero((following != DEAD) & useful[i + 1][following])))
        row.append(int(automaton.tokens[number]))
        state = int(following[number])
    return row


def _batches(automaton: LabelAutomaton, n_ctx: int) -> Iterator[np.ndarray]:
    """All sequences of the label, many at a time."""
    useful = _useful(automaton, n_ctx)

    def grown(i: int, rows: np.ndarray, states: np.ndarray) -> Iterator[np.ndarray]:
        if i == n_ctx:
            yield automaton.tokens[rows]
            return
        row, number = np.nonzero((automaton.following[states] != DEAD) & useful[i + 1][automaton.following[states]])
        for start in range(0, len(row), _BATCH):
            r, t = row[start : start + _BATCH], number[start : start + _BATCH]
            yield from grown(i + 1, np.column_stack([rows[r], t]), automaton.following[states[r], t])

    if useful[0][automaton.start]:
        yield from grown(0, np.zeros((1, 0), dtype=np.int64), np.array([automaton.start]))
