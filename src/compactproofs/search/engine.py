"""The state of an anytime search over every query and label, on all cores: what is known about each, and how it was found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from compactproofs.bounds.pairs import walk_operations
from compactproofs.budget import Budget, in_threads
from compactproofs.counting.count_up import unit_exponents
from compactproofs.counting.levels import smallest
from compactproofs.counting.subject import Subject, for_queries, subject_of
from compactproofs.errors import DisagreementError
from compactproofs.form.evaluation import Evaluation, prepare
from compactproofs.ledger.ledger import Part
from compactproofs.model.kinds import Model
from compactproofs.search.branches import Branch
from compactproofs.search.looking import look
from compactproofs.search.pairs import Tries, rooms
from compactproofs.search.records import Tally, part_above, part_below, part_of_tree
from compactproofs.search.writing import written
from compactproofs.tasks.question import Question

SECONDS_PER_TERM = 3e-9
"""About what it takes to look at one output of one token at one position, on one core."""

_MOST = 1 << 61


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
    upper: bool = False
    """Bound right answers too."""
    ignore: float = 1e-6
    """Do not look again at pairs whose bounds are as near as this, relative to all sequences of the query."""


@dataclass(frozen=True, eq=False)
class Claim:
    """A bound on some mass, and where it comes from: a record or a tree; neither: nothing is known."""

    mass: int
    record: np.ndarray | None = None
    tree: Branch | None = None

    @property
    def known(self) -> bool:
        return self.record is not None or self.tree is not None


class Cells:
    """What is known about one label, by query: how much may fail, and how much may be right."""

    def __init__(self, label: int, totals: list[int]) -> None:
        self.label, self.totals = label, totals
        self.failing = [Claim(total) for total in totals]
        self.right = [Claim(total) for total in totals]

    def tighten(self, query: int, failing: Claim, right: Claim) -> None:
        """Keep the better of old and new claims. Claims that contradict each other can only be an error of this package."""
        if failing.mass < self.failing[query].mass:
            self.failing[query] = failing
        if right.mass < self.right[query].mass:
            self.right[query] = right
        if self.gap(query) < 0:
            raise DisagreementError(
                f"of {self.totals[query]} sequences at most {self.failing[query].mass} fail and at most {self.right[query].mass} are right",
                f"label {self.label}, query number {query}",
            )

    def gap(self, query: int) -> int:
        """How much is undecided."""
        return self.failing[query].mass + self.right[query].mass - self.totals[query]

    @property
    def known(self) -> bool:
        """Whether anything is."""
        return any(claim.known for claim in (*self.failing, *self.right))

    def contents(self) -> tuple[list[Claim], list[Claim]]:
        """A copy of all claims."""
        return list(self.failing), list(self.right)


@dataclass(eq=False)
class Engine:
    """The evaluation tables of one model, the claims so far, and the work done."""

    weights: Model
    question: Question
    evaluation: Evaluation
    subjects: dict[int, Subject]
    cells: dict[int, Cells]

    @classmethod
    def of(cls, weights: Model, question: Question) -> Engine:
        labels = question.task.labels
        cells = {label: Cells(label, question.totals_by_last(label)) for label in labels}
        return cls(weights, question, prepare(weights, question.margin), {label: subject_of(question, label) for label in labels}, cells)

    def by_weight(self) -> list[int]:
        """Labels in the order of how much carries them, most first: what to look at while there is time."""
        return sorted((label for label, c in self.cells.items() if any(c.totals)), key=lambda label: -sum(self.cells[label].totals))

    def look_at_labels(self, labels: Iterable[int], effort: Effort, budget: Budget) -> list[int]:
        """Look at every pair of the given labels, one label after the other; returns the labels that were done."""
        tasks = [(label, queries) for label in labels for queries in self.portions(label)]
        done = self._look(tasks, effort, budget)
        unfinished = {label for label, _ in tasks[len(done) :]}
        return [label for label in dict.fromkeys(label for label, _ in done) if label not in unfinished]

    def portions(self, label: int) -> list[list[int]]:
        """The queries of a label in portions that take about a tenth of a second each, so that a proof can be stopped between them."""
        totals, k = self.cells[label].totals, self.weights.n_ctx
        queries = [q for q, total in enumerate(totals) if total > 0]
        terms = len(totals) * k * self.weights.d_vocab_out
        size = max(1, min(int(0.1 / (terms * SECONDS_PER_TERM)), len(totals) if k <= 5 else 8))  # counting takes the longer
        size = size if self.question.uniform else 1
        return [queries[start : start + size] for start in range(0, len(queries), size)]

    def look_at(self, chosen: Iterable[tuple[int, int]], effort: Effort, budget: Budget) -> None:
        """Look at the given (label, query number) pairs."""
        self._look([(label, [query]) for label, query in chosen], replace(effort, ignore=0.0), budget)

    def _look(self, tasks: list[tuple[int, list[int]]], effort: Effort, budget: Budget) -> list[tuple[int, list[int]]]:
        if not self.evaluation.tolerance < np.inf:  # float64 knows nothing about these weights
            return tasks
        done = []
        for (label, queries), claims in in_threads(lambda task: self.claims(*task, effort), tasks, budget):
            done.append((label, queries))
            for query, (failing, right) in zip(queries, claims, strict=True):
                self.cells[label].tighten(query, failing, right)
        return done

    def claims(self, label: int, queries: list[int], effort: Effort) -> list[tuple[Claim, Claim]]:
        """What a look at some queries of a label proves of each: how much may fail, and how much may be right."""
        subject, totals = self.subjects[label], [self.cells[label].totals[query] for query in queries]
        unit = int(unit_exponents(for_queries(subject, np.array(queries[:1]))).sum())  # the same for all, or one query at a time
        small = fraction_of(self.question.total, effort.ignore) // max(1, self.weights.d_vocab) >> unit
        tries = Tries(effort.steps, effort.classes, min(small, _MOST), effort.joint, effort.apart, effort.upper)
        about = np.array([min(total >> unit, _MOST) for total in totals], dtype=np.int64)
        sizes = rooms(tries, self.weights.d_vocab_out, self.weights.n_ctx, len(subject.tokens))
        below, above = (np.empty((len(queries), size), dtype=np.int64) for size in sizes)
        bounds = look(self.evaluation, subject, np.array(queries), tries, about, below, above)
        claims = []
        for x, ((failing, correct), total) in enumerate(zip(bounds.tolist(), totals, strict=True)):
            right = Claim(min(correct << unit, total), written(above[x])) if effort.upper else Claim(total)
            claims.append((Claim(min(failing << unit, total), written(below[x])), right))
        return claims

    def open_pairs(self) -> list[tuple[int, int]]:
        """Pairs whose claims do not meet."""
        return [(label, q) for label, cells in self.cells.items() for q in range(len(cells.totals)) if cells.gap(q) > 0]

    @property
    def failing(self) -> int:
        return sum(claim.mass for cells in self.cells.values() for claim in cells.failing)

    @property
    def right(self) -> int:
        return sum(claim.mass for cells in self.cells.values() for claim in cells.right)

    def lower_parts(self) -> tuple[Part, ...]:
        """The parts of a ledger that prove the lower bound."""
        return tuple(_part(*known, "below") for known in self._known(lambda cells: cells.failing))

    def upper_parts(self) -> tuple[Part, ...]:
        """The parts of a ledger that prove the upper bound."""
        return tuple(_part(*known, "above") for known in self._known(lambda cells: cells.right))

    def _known(self, side: Callable[[Cells], list[Claim]]) -> Iterator[tuple[Subject, int, Claim]]:
        """Subjects, queries and what is known about them."""
        for label, cells in sorted(self.cells.items()):
            for q, claim in enumerate(side(cells)):
                if claim.known:
                    yield self.subjects[label], q, claim

    def tally(self) -> tuple[Tally, dict[int, int]]:
        """What checking the lower bound takes; and how many pairs of each number of tokens it is about."""
        tally, pairs = Tally(), dict[int, int]()
        for subject, q, claim in self._known(lambda cells: cells.failing):
            n = len(subject.tokens)
            pairs[n] = pairs.get(n, 0) + 1
            if claim.tree is not None:
                masses = for_queries(subject, np.array([q]))
                walk = walk_operations(masses, smallest(subject.automaton, masses))
                tally.add_tree(subject, claim.tree, int(walk) * (self.weights.d_vocab_out - 1))
            elif claim.record is not None:
                tally.add(subject, claim.record)
        return tally, pairs


def _part(subject: Subject, query: int, claim: Claim, side: str) -> Part:
    """Where a claim comes from, as a part of a ledger: a tree, or the record of one look."""
    if claim.tree is not None:
        return part_of_tree(subject, query, claim.tree, side)
    if claim.record is None:
        raise ValueError("nothing is known")
    return (part_below if side == "below" else part_above)(subject, query, claim.record)


def fraction_of(total: int, part: float) -> int:
    """About part * total, for totals beyond floating point."""
    return total * int(part * 2**40) >> 40
