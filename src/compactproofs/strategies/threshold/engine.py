"""Bounds on the number of failures for every (query, label), by the compiled kernels on all cores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from compactproofs.budget import Budget, in_threads
from compactproofs.cores import available_cores
from compactproofs.counting.additive import count_exponent
from compactproofs.counting.evaluation import Evaluation, prepare
from compactproofs.errors import DisagreementError, InfeasibleError
from compactproofs.model.weights import Weights
from compactproofs.strategies.base import Request
from compactproofs.strategies.threshold import pairs
from compactproofs.strategies.threshold.enumeration import enumerate_failures
from compactproofs.tasks import AbstractTask
from compactproofs.tasks.label_automaton import LabelAutomaton

_SECONDS_PER_TERM = 3e-9
"""About what it takes to look at one output of one token at one position, on one core."""


@dataclass(frozen=True)
class Effort:
    """What to try for one (query, label). Every choice gives true bounds."""

    steps: int
    """Counting steps per unit."""
    classes: int = 0
    """Look again, at most at so many classes of most attended tokens, where the bounds are apart."""
    joint: bool = True
    """Bound the worst output of each token."""
    apart: bool = False
    """Bound outputs one by one, with differences."""
    lower: bool = False
    """Bound failures from below too."""
    ignore: float = 1e-6
    """Do not look again at pairs with fewer failures than this, relative to all sequences of the query."""


@dataclass
class Failures:
    """Bounds on the number of failures of one label, by query: exact integers."""

    totals: list[int]
    """Sequences that carry the label and end in the query."""
    upper: list[int]
    lower: list[int]
    upper_by: dict[int, Effort | None] = field(default_factory=dict)
    """The effort that gave a query's upper bound, None if its sequences were looked at one by one: for writing the proof down."""
    lower_by: dict[int, Effort | None] = field(default_factory=dict)
    """The same for lower bounds."""

    def tighten(self, query: int, upper: int, lower: int, effort: Effort | None = None) -> None:
        """Keep the better of old and new bounds. Bounds that contradict each other can only be an error of this package."""
        if upper < self.upper[query]:
            self.upper[query], self.upper_by[query] = upper, effort
        if lower > self.lower[query]:
            self.lower[query], self.lower_by[query] = lower, effort
        if not 0 <= self.lower[query] <= self.upper[query]:
            raise DisagreementError(
                f"a query's failures are at least {self.lower[query]} and at most {self.upper[query]}",
                f"query {query}, by {self.lower_by.get(query)} and {self.upper_by.get(query)}",
            )

    def gap(self, query: int) -> int:
        return self.upper[query] - self.lower[query]


@dataclass
class Engine:
    """The evaluation tables of one model, and the work done with them."""

    weights: Weights
    task: AbstractTask
    evaluation: Evaluation
    automata: dict[int, LabelAutomaton]
    operations: int = field(default=0)
    """Integer operations of counting so far."""
    looks: int = field(default=0)
    """Pairs of query and label looked at so far."""

    @classmethod
    def of(cls, weights: Weights, task: AbstractTask) -> Engine:
        return cls(weights, task, prepare(weights), {label: task.label_automaton(label) for label in task.labels})

    def unknown(self) -> dict[int, Failures]:
        """The bounds before anything has been looked at: any number of failures."""
        totals = {label: a.totals_by_last(self.weights.n_ctx) for label, a in self.automata.items()}
        return {label: Failures(counts, list(counts), [0] * len(counts)) for label, counts in totals.items()}

    def bound_labels(self, labels: Iterable[int], effort: Effort, into: dict[int, Failures], budget: Budget) -> list[int]:
        """Look at every pair of the given labels, one label after the other, and tighten the bounds; returns the labels that were done."""
        tasks = [(label, queries) for label in labels for queries in self._portions(label, len(into[label].totals))]
        done = self._look(tasks, effort, into, budget)
        unfinished = {label for label, _ in tasks[len(done) :]}
        return [label for label in dict.fromkeys(label for label, _ in done) if label not in unfinished]

    def _portions(self, label: int, queries: int) -> list[np.ndarray]:
        """The queries of a label in portions that take about a tenth of a second each, so that a proof can be stopped between them."""
        terms = len(self.automata[label].tokens) * self.weights.n_ctx * self.weights.d_vocab_out
        size = max(1, min(int(0.1 / (terms * _SECONDS_PER_TERM)), queries if self.weights.n_ctx <= 5 else 8))  # counting takes the longer
        return [np.arange(start, min(start + size, queries)) for start in range(0, queries, size)]

    def bound_some(self, chosen: Iterable[tuple[int, int]], effort: Effort, into: dict[int, Failures], budget: Budget) -> None:
        """Look at the given (label, query number) pairs and tighten their bounds."""
        self._look([(label, np.array([query])) for label, query in chosen], replace(effort, ignore=0.0), into, budget)

    def _look(
        self, tasks: list[tuple[int, np.ndarray]], effort: Effort, into: dict[int, Failures], budget: Budget
    ) -> list[tuple[int, np.ndarray]]:
        done = []
        for (label, queries), (results, operations) in in_threads(lambda task: self._bound(*task, effort), tasks, budget):
            done.append((label, queries))
            scale = count_exponent(self.weights.n_ctx, len(self.automata[label].tokens))
            for query, row in zip(queries.tolist(), results.tolist(), strict=True):
                into[label].tighten(query, row[pairs.UPPER] << scale, row[pairs.LOWER] << scale, effort)
            self.operations += operations
            self.looks += len(queries)
        return done

    def enumerate(self, chosen: list[tuple[int, int]], most: int, into: dict[int, Failures], budget: Budget) -> None:
        """Decide the given (label, query number) pairs sequence by sequence, where that takes at most `most` sequences each."""
        e = self.evaluation

        def run(pair: tuple[int, int]) -> tuple[bool, np.ndarray]:
            label, query = pair
            a, result = self.automata[label], np.zeros(2, dtype=np.int64)
            done = enumerate_failures(
                *(e.attention, e.EVOU, e.PVOU, e.EU, a.tokens, query, label, usual_token(a, label)),
                *(e.tolerance, e.floor, a.following, a.accepting, a.start, most, result),
            )
            return done, result

        for (label, query), (done, result) in in_threads(run, chosen, budget):
            self.looks += 1
            if done:
                into[label].tighten(query, int(result[pairs.UPPER]), int(result[pairs.LOWER]), None)

    def _bound(self, label: int, queries: np.ndarray, effort: Effort) -> tuple[np.ndarray, int]:
        e, a = self.evaluation, self.automata[label]
        results, work = np.zeros((len(queries), 2), dtype=np.int64), np.zeros(1, dtype=np.int64)
        n = len(a.tokens)
        small = fraction_of(self.weights.d_vocab ** (self.weights.n_ctx - 1), effort.ignore) >> count_exponent(self.weights.n_ctx, n)
        pairs.bound_queries(
            *(e.attention, e.EVOU, e.PVOU, e.EU),
            *(a.tokens, queries, label, usual_token(a, label)),
            *(e.tolerance, e.floor, a.following, a.accepting, a.start),
            *(effort.steps, effort.classes, min(small, 2**61), effort.joint, effort.apart, effort.lower, results, work),
        )
        return results, int(work[0])


def by_weight(failures: dict[int, Failures]) -> list[int]:
    """Labels in the order of how many sequences carry them, most first: what to look at while there is time."""
    return sorted((label for label, f in failures.items() if f.totals), key=lambda label: -sum(failures[label].totals))


def require_whole(done: int, wanted: int, budget: Budget, name: str) -> None:
    """Raise if a proof that is all or nothing has run out of time."""
    if done < wanted:
        why = "was interrupted" if budget.stopped else f"is not finished after the {budget.used:.1f} s allowed"
        raise InfeasibleError(f"{name} {why}: {done} of {wanted} labels are done. Allow more (--seconds), or try threshold-best.")


def estimated_seconds(weights: Weights) -> float:
    """About how long looking at every pair takes; decides only what is worth starting."""
    terms = weights.d_vocab**3 / 2 * weights.d_vocab_out * weights.n_ctx
    return terms * _SECONDS_PER_TERM / available_cores()


def refuse_if_too_long(request: Request, name: str, estimate: float) -> None:
    """Raise if a proof is likely to take longer than allowed."""
    if request.seconds is not None and estimate > request.seconds:
        raise InfeasibleError(
            f"{name} would take about {estimate:.1f} s at d_vocab={request.weights.d_vocab}, more than the {request.seconds:g} s allowed. "
            "Allow more (--seconds), or try threshold-cubic-pooled or threshold-quadratic-pooled."
        )


def usual_token(automaton: LabelAutomaton, label: int) -> int:
    """Hint: the number of the token that usually helps the label, namely the label itself if it is a token."""
    found = np.flatnonzero(automaton.tokens == label)
    return int(found[0]) if len(found) else 0


def fraction_of(total: int, part: float) -> int:
    """About part * total, for totals beyond floating point."""
    return total * int(part * 2**40) >> 40
