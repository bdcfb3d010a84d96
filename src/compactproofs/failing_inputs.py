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
from compactproofs.failing_region import FailingRegion
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
    region: FailingRegion
    """All failing inputs, of these labels, lie in it."""

    @property
    def failing_at_most(self) -> int:
        return sum(each.failing_at_most for each in self.labels)

    def as_json(self) -> dict[str, Any]:
        return {
            "labels": [each.as_json() for each in self.labels],
            "failing_at_most": str(self.failing_at_most),
            "region": self.region.as_json(),
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
    places: dict[int, tuple[int, ...]] = {}
    found, left = [], [m for m in wanted if _failing(question, proven, m)]
    for m in wanted:
        own = Budget(budget.left / max(1, len(left) - left.index(m))) if m in left else None
        starts = [sequence for sequence in worst.get(m, []) if sequence is not None]
        outcome = _Outcome(None, False) if own is None else search.failing(m, question.label_automaton(m), starts, own)
        found.append(_about(search, question, proven, m, outcome))
        tokens = question.label_automaton(m).tokens.tolist()
        open_ones = (token for token, mass in zip(tokens, _by_query(question, proven, m), strict=True) if mass and not outcome.all_right)
        places[m] = tuple(open_ones)
    region = FailingRegion.of(task, places)
    return Counterexamples(tuple(found), task.total, time.perf_counter() - started, region)


def _some(labels: Sequence[int]) -> str:
    shown = ", ".join(map(str, labels[:8]))
    return shown if len(labels) <= 8 else f"{shown}, ... {labels[-1]}"


def _by_query(question: Question, proven: dict[int, list[int]], label: int) -> list[int]:
    """How many inputs may fail, for each last token of the label."""
    totals = question.totals_by_last(label)
    return [total - right for total, right in zip(totals, proven.get(label, [0] * len(totals)), strict=True)]


def _failing(question: Question, proven: dict[int, list[int]], label: int) -> int:
    return sum(_by_query(question, proven, label))


@dataclass(frozen=True)
class _Outcome:
    """What a search has found."""

    example: list[int] | None
    all_right: bool
    """Every sequence of the label was decided, and none fails."""


def _about(search: _Search, question: Question, proven: dict[int, list[int]], label: int, outcome: _Outcome) -> Failures:
    example, masses = outcome.example, _by_query(question, proven, label)
    masses = [0] * len(masses) if outcome.all_right else masses
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

    def failing(self, label: int, automaton: LabelAutomaton, starts: list[list[int]], budget: Budget) -> _Outcome:
        """An input of the label that fails, if one is found in time."""
        paths = _Paths.of(automaton, self.task)
        if starts:
            rows = np.array(starts, dtype=np.int64)
            found = self.first_wrong(rows[np.argsort(self.gaps(rows, label), kind="stable")], label)
            if found.example is not None:
                return found
        everything = sum(automaton.totals_by_last(self.task.n_ctx))
        for number, start in enumerate(self._starts(paths, starts)):
            if budget.over or (number >= _TRIES and everything <= ENUMERABLE):
                break
            found = self.first_wrong(self.descended(np.array(start), label, budget)[None], label)
            if found.example is not None:
                return found
        all_right = everything <= ENUMERABLE
        for rows in paths.batches() if all_right else ():
            found = _Outcome(None, False) if budget.over else self.first_wrong(rows, label)
            all_right = all_right and found.all_right
            if budget.over or found.example is not None:
                return found
        return _Outcome(None, all_right)

    def first_wrong(self, rows: np.ndarray, label: int) -> _Outcome:
        """The first of these sequences, which carry the label, that fails for certain; or whether all are right."""
        rows = np.ascontiguousarray(rows[self._allowed(rows, label)])
        if not len(rows):
            return _Outcome(None, True)
        verdicts, all_right = self.truth.verdicts(rows, np.full(len(rows), label, dtype=np.int64)), True
        for row in np.flatnonzero(verdicts != CORRECT).tolist():
            sequence: list[int] = rows[row].tolist()
            right = False if verdicts[row] != UNCERTAIN else self.truth.is_correct(sequence, label)
            if right is False:
                return _Outcome(sequence, False)
            all_right = all_right and right is True
        return _Outcome(None, all_right)

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

    def _starts(self, paths: _Paths, starts: list[list[int]]) -> Iterator[list[int]]:
        yield from starts[:_TRIES]
        while True:
            yield paths.drawn(self.generator)


_TRIES = 50


@dataclass(frozen=True, eq=False)
class _Paths:
    """The sequences of a label that are allowed."""

    automaton: LabelAutomaton
    allowed: np.ndarray
    """(position, token number)"""
    useful: np.ndarray
    """(position, state): whether an accepted ending follows"""

    @classmethod
    def of(cls, automaton: LabelAutomaton, task: AbstractTask) -> _Paths:
        n_ctx, (states, tokens) = task.n_ctx, automaton.following.shape
        allowed = np.ones((n_ctx, tokens), dtype=bool) if task.allowed is None else task.allowed[:, automaton.tokens]
        useful = np.zeros((n_ctx + 1, states), dtype=bool)
        useful[n_ctx] = automaton.accepting
        for i in range(n_ctx - 1, -1, -1):
            useful[i] = ((automaton.following != DEAD) & allowed[i] & useful[i + 1][automaton.following]).any(axis=1)
        return cls(automaton, allowed, useful)

    def moves(self, i: int, states: np.ndarray) -> np.ndarray:
        """(state, token number): which tokens may come at position i."""
        following = self.automaton.following[states]
        return np.asarray((following != DEAD) & self.allowed[i] & self.useful[i + 1][following])

    def drawn(self, generator: np.random.Generator) -> list[int]:
        """Some sequence, every token a fair choice among those that can still end in the label. There must be one."""
        state, row = self.automaton.start, []
        for i in range(len(self.allowed)):
            number = int(generator.choice(np.flatnonzero(self.moves(i, np.array([state]))[0])))
            row.append(int(self.automaton.tokens[number]))
            state = int(self.automaton.following[state, number])
        return row

    def batches(self) -> Iterator[np.ndarray]:
        """All sequences, many at a time."""
        following = self.automaton.following

        def grown(i: int, rows: np.ndarray, states: np.ndarray) -> Iterator[np.ndarray]:
            if i == len(self.allowed):
                yield self.automaton.tokens[rows]
                return
            row, number = np.nonzero(self.moves(i, states))
            for start in range(0, len(row), _BATCH):
                r, t = row[start : start + _BATCH], number[start : start + _BATCH]
                yield from grown(i + 1, np.column_stack([rows[r], t]), following[states[r], t])

        yield from grown(0, np.zeros((1, 0), dtype=np.int64), np.array([self.automaton.start]))
