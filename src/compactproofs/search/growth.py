"""What to look at next, over all queries and labels: where most is undecided for the least work. Goes on until the time is up.

Pairs are looked at once, many at a time; then each by itself: on finer grids where rounding is what keeps its bounds apart, in halves
where different outputs spoil different sequences, and sequence by sequence where few are in doubt.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from compactproofs.budget import Budget, in_threads
from compactproofs.counting.outcome import Progress
from compactproofs.search.branches import MOST_STATES, Branch, Look, Plot, decide, look
from compactproofs.search.chains import Chains
from compactproofs.search.engine import Claim, Effort, Engine
from compactproofs.search.pairs import Tries

LEVELS = (250, 1000, 4000, 16000)
"""Counting steps per unit, one after the other."""

_MOST_LISTED = 100_000
"""So many sequences of a branch are decided one by one."""
COUNTABLE = 1 << 31
"""Sequences are decided one by one if there are no more in all."""
_SMALL = 13
"""What is below two to minus this of all that is undecided is not worth a finer count."""
_CLASS_STEPS = 100
"""The classes of a chain are first looked at with so many steps."""
_CLASS_SMALL = 17
"""What is below two to minus this of a pair is too little to look twice at one of its classes."""
_BEFORE_LISTS = 1
"""The level of pairs whose sequences may be listed, at most, before they are split."""


@dataclass(frozen=True, eq=False)
class Portion:
    """Queries of a label that are looked at together, for the first time."""

    label: int
    queries: list[int]


@dataclass(eq=False)
class Pair:
    """A query and a label, and the tree that is grown for them."""

    label: int
    query: int
    first: Look | None = None
    """What the first look at it has found, if that is a look at the whole"""
    plot: Plot | None = None
    root: Branch | None = None


@dataclass(frozen=True, eq=False)
class Twig:
    """Something to do about a branch of a pair, or about its root: look at it with so many steps, or decide its sequences (0)."""

    pair: Pair
    branch: Branch | None
    level: int
    deciding: bool = False


Task = Portion | Twig


class Growth:
    """The queue of an engine. An iterator that ends when there is nothing to do for the moment, and goes on later."""

    def __init__(self, engine: Engine, effort: Effort, narrow: int, progress: Progress | None = None) -> None:
        self._engine, self._effort, self._progress = engine, effort, progress
        question = engine.question
        self._lists = question.uniform and question.total <= COUNTABLE
        self._narrow = 0 if self._lists else narrow  # what can be known exactly shall be
        self._chains: dict[int, Chains] = {}
        self._queue: list[tuple[float, int, Task]] = []
        self._number = 0
        self._gap = engine.failing + engine.right - question.total

    def warm_up(self) -> None:
        """Look at one pair in every way and forget it: compiled code is loaded at its first call, which takes longer than what it does."""
        for label in self._engine.by_weight()[:1]:
            query = self._engine.portions(label)[0][0]
            (claims,) = self._engine.claims(label, [query], self._effort)
            pair = Pair(label, query, _first(*claims))
            self._work(Twig(pair, None, 0))
            if self._lists and pair.first is not None:
                self._work(Twig(pair, None, 0, deciding=True))

    def add_labels(self, labels: Iterable[int]) -> None:
        """Look at all pairs of these labels."""
        for label in labels:
            totals = self._engine.cells[label].totals
            for portion in self._engine.portions(label):
                chained = [q for q in portion if totals[q] and self._chain(label, q)]
                queries = [q for q in portion if q not in chained]
                if queries:
                    cost = len(queries) * self._cost(label, 2, self._effort.steps, 2)
                    self._push(Portion(label, queries), sum(totals[q] for q in queries), cost)
                for q in chained:
                    cost = len(self._chain(label, q)) * self._cost(label, 2, _CLASS_STEPS, 8)
                    self._push(Twig(Pair(label, q), None, 0), totals[q], cost)

    def add_pair(self, label: int, query: int) -> None:
        """Look again at a pair, if its bounds are apart."""
        cells = self._engine.cells[label]
        if cells.gap(query) > 0:
            pair = Pair(label, query, _first(cells.failing[query], cells.right[query]))
            deciding = self._lists and pair.first is not None and cells.gap(query) <= _MOST_LISTED
            self._push_twig(Twig(pair, None, 0, deciding), cells.gap(query))

    def run(self, budget: Budget) -> None:
        """Work until the bounds are close, there is nothing left to do, or the time is up."""
        for _, learn in in_threads(self._work, self, budget):
            learn()
            if self._progress is not None:
                self._progress(self._engine.question.total - self._gap, self._engine.question.total)

    def __iter__(self) -> Growth:
        return self

    def __next__(self) -> Task:
        if not self._queue or self._gap <= self._narrow:
            raise StopIteration
        return heapq.heappop(self._queue)[2]

    def _push(self, task: Task, gap: int, seconds: float) -> None:
        self._number += 1
        heapq.heappush(self._queue, (-gap / self._engine.question.total / seconds, self._number, task))

    def _push_twig(self, twig: Twig, gap: int) -> None:
        branch, plot = twig.branch, twig.pair.plot
        states = 2 if branch is None or plot is None else branch.states(plot)
        outputs = 8 if plot is None else len(plot.candidates)
        self._push(twig, gap, self._cost(twig.pair.label, states, LEVELS[twig.level], outputs))

    def _cost(self, label: int, states: int, steps: int, outputs: int) -> float:
        """About the seconds that a look takes; decides only what comes first."""
        n, k = len(self._engine.subjects[label].tokens), self._engine.weights.n_ctx
        return n * k * (1e-8 * self._engine.weights.d_vocab_out + 1e-9 * states * steps * (3 + outputs / 8))

    def _chain(self, label: int, query: int) -> tuple[int, ...]:
        """The tokens of the chain of a pair, if it needs one. Where sequences are decided one by one, none does."""
        if self._lists:
            return ()
        if label not in self._chains:
            self._chains[label] = Chains.of(self._engine.evaluation, self._engine.subjects[label])
        return self._chains[label].tokens(query)

    def _work(self, task: Task) -> Callable[[], None]:
        """Do something about it; what is returned keeps what was found."""
        if isinstance(task, Portion):
            return partial(self._looked, task, self._engine.claims(task.label, task.queries, self._effort))
        pair, branch = task.pair, task.branch
        if pair.plot is None:
            pair.plot = Plot.of(self._engine.evaluation, self._engine.subjects[pair.label], pair.query)
        if branch is None:
            branch = pair.root = Branch.root(pair.plot, self._engine.cells[pair.label].totals[pair.query])
            tokens = self._chain(pair.label, pair.query)
            if tokens:
                classes = branch.chain(pair.plot, self._chains[pair.label], tokens)
                return partial(self._grown, task, self._look_at_classes(pair.plot, classes, branch.mass))
        return partial(self._grown, task, [(branch, self._look(task, pair.plot, branch))])

    def _look(self, twig: Twig, plot: Plot, branch: Branch) -> Look:
        if twig.deciding:
            known = branch.latest if branch.latest is not None else twig.pair.first
            if known is not None:
                return decide(plot, branch, known)
        small = 0 if self._lists else (self._gap >> _SMALL) >> plot.unit
        tries = Tries(LEVELS[twig.level], 0, min(small, 1 << 61), True, not self._lists, True)
        found = look(plot, branch, tries)
        few = self._lists and 0 < found.failing + found.right - branch.mass <= _MOST_LISTED
        return decide(plot, branch, found) if few else found

    def _look_at_classes(self, plot: Plot, classes: list[Branch], mass: int) -> list[tuple[Branch, Look]]:
        tries = Tries(_CLASS_STEPS, 0, min(mass >> _CLASS_SMALL >> plot.unit, 1 << 61), True, False, True)
        return [(branch, look(plot, branch, tries)) for branch in classes]

    def _looked(self, task: Portion, claims: list[tuple[Claim, Claim]]) -> None:
        for query, (failing, right) in zip(task.queries, claims, strict=True):
            self._tighten(task.label, query, failing, right)
            self.add_pair(task.label, query)

    def _tighten(self, label: int, query: int, failing: Claim, right: Claim) -> None:
        cells = self._engine.cells[label]
        before = cells.gap(query)
        cells.tighten(query, failing, right)
        self._gap += cells.gap(query) - before

    def _grown(self, twig: Twig, looks: list[tuple[Branch, Look]]) -> None:
        """Keep what was found about a branch, or about all classes of a chain; the last is a part of whatever the others are a part of."""
        pair = twig.pair
        if pair.root is None or pair.plot is None:
            return
        for branch, found in looks[:-1]:
            branch.keep(found)
        for branch, found in looks[-1:]:
            branch.learn(found)
        total = self._engine.cells[pair.label].totals[pair.query]
        whole = (Claim(min(mass, total), tree=pair.root) for mass in (pair.root.failing, pair.root.right))
        self._tighten(pair.label, pair.query, *whole)
        for branch, found in looks:
            if branch is pair.root or twig.branch is not None:
                self._go_on(twig, pair.plot, branch, found)
            elif branch.gap > 0:
                self._push_twig(Twig(pair, branch, 0), branch.gap)

    def _go_on(self, twig: Twig, plot: Plot, branch: Branch, found: Look) -> None:
        """What to do next about a branch that was looked at."""
        gap = found.failing + found.right - branch.mass
        if gap <= 0 or twig.deciding or len(found.listed[0]) + len(found.listed[1]):
            return
        last = _BEFORE_LISTS if self._lists else len(LEVELS) - 1
        rounding = self._lists or found.token < 0 or (gap < 2 * found.doubt < branch.mass // 2)
        halves = () if found.token < 0 or (twig.level < last and rounding) else branch.split_by(plot, found.token)
        for half in halves:
            self._push_twig(Twig(twig.pair, half, max(0, twig.level - 1)), min(gap // 2, half.mass))
        if not halves and twig.level < last and (rounding or branch.states(plot) > MOST_STATES):
            self._push_twig(Twig(twig.pair, branch, twig.level + 1), gap)


def _first(failing: Claim, right: Claim) -> Look | None:
    """The first look at a pair, if it was one without classes."""
    if failing.record is None or failing.record[1] != 0 or (right.record is not None and right.record[0] != 0):
        return None
    above = np.array([-1]) if right.record is None else right.record[1:]
    below = failing.record[2:]
    return Look(failing.mass, right.mass, below, above, below[4 : 4 + below[3]] if below[0] else below[:0])
