"""What to look at next, over all queries and labels: where most is undecided for the least work. Goes on until the time is up.

Pairs are looked at once, many at a time; then each by itself: on finer grids where rounding is what keeps its bounds apart, else in halves
or by two sums at once, whichever has closed more of the gaps it was tried on for what it took; and sequence by sequence where few are in
doubt.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import partial

import numpy as np

from compactproofs.arrays.compiling import compile_seconds
from compactproofs.budget import Budget, in_threads
from compactproofs.counting.outcome import Progress
from compactproofs.search.branches import Branch, Look, Plot, decide, look, look_by_twos
from compactproofs.search.chains import Chains
from compactproofs.search.engine import Claim, Effort, Engine
from compactproofs.search.experience import Experience
from compactproofs.search.pairs import Tries
from compactproofs.search.together import MOST_OUTPUTS, Twos

LEVELS = (250, 1000, 4000, 16000)
"""Counting steps per unit, one after the other."""
TWOS = (60, 120, 240, 400)
"""The same for two sums at once."""

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
_STALE = 0.7
"""A step that is not worth this part of what it was when it began to wait goes on waiting."""


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


class Step(Enum):
    """What may be done about a branch."""

    LOOK = "look at it on a grid of this level"
    DIVIDE = "look at its halves, on a grid of this level"
    BELOW = "bound what fails by two sums at once, on a grid of this level"
    ABOVE = "bound what is right so"
    DECIDE = "decide its sequences one by one"


@dataclass(frozen=True, eq=False)
class Twig:
    """A step about a branch of a pair, or about its root, which comes to be with it."""

    pair: Pair
    branch: Branch | None
    step: Step = Step.LOOK
    level: int = 0
    estimated: float = 0.0
    """About the seconds that it takes"""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a step has found, and the processor seconds that it took."""

    looks: list[tuple[Branch, Look]]
    seconds: float
    halves: tuple[Branch, ...] = ()


Task = Portion | Twig
_BY_TWOS = (Step.BELOW, Step.ABOVE)
_EXPECTED = {Step.LOOK: 0.5, Step.DIVIDE: 0.4, Step.BELOW: 0.1, Step.ABOVE: 0.2, Step.DECIDE: 1.0}
_WINS_LITTLE = 0.8
"""Two sums at once are tried where the halves of a branch leave more than this part of its gap."""
_AT_ONCE = 0.03
"""Steps by two sums at once that will take more than this part of the time that is left are left out,"""
_LONGEST = 2.0
"""or more than so many seconds."""
_AGAIN = 0.25
"""Of what is expected beforehand, on a finer grid"""


class Growth:
    """The queue of an engine. An iterator that ends when there is nothing to do for the moment, and goes on later."""

    def __init__(self, engine: Engine, effort: Effort, narrow: int, progress: Progress | None = None, *, twos: bool = True) -> None:
        self._engine, self._effort, self._progress, self._twos = engine, effort, progress, twos
        question = engine.question
        self._lists = question.uniform and question.total <= COUNTABLE
        self._narrow = 0 if self._lists else narrow  # what can be known exactly shall be
        self._chains: dict[int, Chains] = {}
        self._queue: list[tuple[float, int, Task]] = []
        self._number = 0
        self._gap = engine.failing + engine.right - question.total
        self._left = Budget()
        self._experiences: dict[tuple[Step, int, bool, int], Experience] = {}

    def warm_up(self) -> None:
        """Look at one pair in every way and forget it: compiled code is loaded at its first call, which takes longer than what it does."""
        for label in self._engine.by_weight()[:1]:
            query = self._engine.portions(label)[0][0]
            (claims,) = self._engine.claims(label, [query], self._effort)
            pair = Pair(label, query, _first(*claims))
            self._work(Twig(pair, None))
            if self._lists and pair.first is not None:
                self._work(Twig(pair, None, Step.DECIDE))

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
                    self._push(Twig(Pair(label, q), None), totals[q], cost)

    def add_pair(self, label: int, query: int) -> None:
        """Look again at a pair, if its bounds are apart."""
        cells = self._engine.cells[label]
        if cells.gap(query) > 0:
            pair = Pair(label, query, _first(cells.failing[query], cells.right[query]))
            deciding = self._lists and pair.first is not None and cells.gap(query) <= _MOST_LISTED
            self._push_twig(pair, None, Step.DECIDE if deciding else Step.LOOK, 0, cells.gap(query))

    def run(self, budget: Budget) -> None:
        """Work until the bounds are close, there is nothing left to do, or the time is up."""
        self._left = budget
        for _, learn in in_threads(self._work, self, budget):
            learn()
            if self._progress is not None:
                self._progress(self._engine.question.total - self._gap, self._engine.question.total)

    def __iter__(self) -> Growth:
        return self

    def __next__(self) -> Task:
        while self._queue and self._gap > self._narrow:
            priority, _, task = heapq.heappop(self._queue)
            if isinstance(task, Twig) and task.step in _BY_TWOS and self._seconds(task) > min(_AT_ONCE * self._left.left, _LONGEST):
                continue  # what has begun is waited for
            now = self._priority(task)
            if now is None or priority <= _STALE * now:
                return task
            if now < 0:  # what it may still win is less than it was
                self._put(task, now)
        raise StopIteration

    # ------------------------------------------------------------ what comes first

    def _push(self, task: Task, gap: int, seconds: float) -> None:
        self._put(task, -gap / self._engine.question.total / seconds)

    def _put(self, task: Task, priority: float) -> None:
        self._number += 1
        heapq.heappush(self._queue, (priority, self._number, task))

    def _push_twig(self, pair: Pair, branch: Branch | None, step: Step, level: int, gap: int) -> None:
        states = 2 if branch is None or pair.plot is None else branch.states(pair.plot)
        outputs = 8 if branch is None else len(branch.outputs)
        if step in _BY_TWOS:
            estimated = self._cost_of_twos(pair.label, states, TWOS[level], outputs)
        else:
            estimated = self._cost(pair.label, states, LEVELS[level], outputs) * (4 if step is Step.DIVIDE else 1)
        twig = Twig(pair, branch, step, level, estimated)
        now = self._priority(twig)
        self._put(twig, self._worth(twig, gap) if now is None else now)

    def _priority(self, task: Task) -> float | None:
        """Less is sooner; None if it does not change while the task waits."""
        if isinstance(task, Portion) or task.branch is None:
            return None
        return self._worth(task, task.branch.useful_gap)

    def _worth(self, twig: Twig, gap: int) -> float:
        return -gap / self._engine.question.total * self._experience(twig).part / self._seconds(twig)

    def _seconds(self, twig: Twig) -> float:
        """What a step will take, about."""
        return twig.estimated * self._experience(twig).slowness

    def _experience(self, twig: Twig) -> Experience:
        """Of such steps: on wholes or parts, with about so many outputs."""
        whole = twig.branch is None or twig.branch.parent is None
        outputs = 0 if twig.branch is None else len(twig.branch.outputs).bit_length()
        expected = _EXPECTED[twig.step] * (_AGAIN if twig.level > 0 and twig.step in _BY_TWOS else 1.0)
        return self._experiences.setdefault((twig.step, twig.level, whole, outputs), Experience(expected))

    def _cost(self, label: int, states: int, steps: int, outputs: int) -> float:
        """About the seconds that a look takes."""
        n, k = len(self._engine.subjects[label].tokens), self._engine.weights.n_ctx
        return n * k * (1e-8 * self._engine.weights.d_vocab_out + 1e-9 * states * steps * (3 + outputs / 8))

    def _cost_of_twos(self, label: int, states: int, steps: int, outputs: int) -> float:
        """The same for a look by two sums at once."""
        n, k = len(self._engine.subjects[label].tokens), self._engine.weights.n_ctx
        few = min(outputs, MOST_OUTPUTS)
        return n * k * (1e-8 * self._engine.weights.d_vocab_out + 2e-10 * few * states * steps * math.sqrt(steps))

    # ------------------------------------------------------------ steps

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
        started, compiled = time.thread_time(), compile_seconds()
        if pair.plot is None:
            pair.plot = Plot.of(self._engine.evaluation, self._engine.subjects[pair.label], pair.query)
        halves: tuple[Branch, ...] = ()
        if branch is None:
            branch = pair.root = Branch.root(pair.plot, self._engine.cells[pair.label].totals[pair.query])
            tokens = self._chain(pair.label, pair.query)
            if tokens:
                classes = branch.chain(pair.plot, self._chains[pair.label], tokens)
                return partial(self._grown, task, Outcome(self._look_at_classes(pair.plot, classes, branch.mass), 0.0))
        if task.step is Step.DIVIDE:
            halves = branch.halves_by(pair.plot, branch.token)
            looks = [(half, self._look(task, pair.plot, half)) for half in halves]
        else:
            looks = [(branch, self._look(task, pair.plot, branch))]
        seconds = time.thread_time() - started if compile_seconds() == compiled else 0.0
        return partial(self._grown, task, Outcome(looks, seconds, halves))

    def _look(self, twig: Twig, plot: Plot, branch: Branch) -> Look:
        if twig.step is Step.DECIDE:
            known = branch.latest if branch.latest is not None else twig.pair.first
            if known is not None:
                return decide(plot, branch, known)
        small = 0 if self._lists else min((self._gap >> _SMALL) >> plot.unit, 1 << 61)
        if twig.step in _BY_TWOS:
            return look_by_twos(plot, branch, Twos(TWOS[twig.level], small, twig.step is Step.ABOVE))
        found = look(plot, branch, Tries(LEVELS[twig.level], 0, small, True, not self._lists, True))
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

    def _grown(self, twig: Twig, outcome: Outcome) -> None:
        """Keep what was found about some branches; the last is a part of whatever the others are a part of."""
        pair, before = twig.pair, self._gap
        if pair.root is None or pair.plot is None:
            return
        useful, gap = (0, 0) if twig.branch is None else (twig.branch.useful_gap, twig.branch.gap)
        if twig.branch is not None and outcome.halves:
            twig.branch.divide(outcome.halves)
        for branch, found in outcome.looks[:-1]:
            branch.keep(found)
        for branch, found in outcome.looks[-1:]:
            branch.learn(found)
        total = self._engine.cells[pair.label].totals[pair.query]
        whole = (Claim(min(mass, total), tree=pair.root) for mass in (pair.root.failing, pair.root.right))
        self._tighten(pair.label, pair.query, *whole)
        if useful > 0 and outcome.seconds > 0.0:
            all_of_it = self._engine.question.total
            self._experience(twig).learn(useful / all_of_it, min(before - self._gap, useful) / all_of_it, twig.estimated, outcome.seconds)
        if twig.branch is not None and outcome.halves and twig.branch.gap / max(gap, 1) > _WINS_LITTLE:
            self._try_twos(pair, twig.branch)
        classes = twig.branch is None and len(outcome.looks) > 1
        for branch, found in outcome.looks:
            if not classes:
                self._go_on(twig, pair, branch, found)
            elif branch.gap > 0:
                self._push_twig(pair, branch, Step.LOOK, 0, branch.gap)

    def _go_on(self, twig: Twig, pair: Pair, branch: Branch, found: Look) -> None:
        """What to do next about a branch that was looked at."""
        if branch.gap <= 0 or twig.step is Step.DECIDE or len(found.listed[0]) + len(found.listed[1]):
            return
        gap = branch.gap
        if twig.step in _BY_TWOS:
            if twig.level + 1 < len(TWOS):
                self._push_twig(pair, branch, twig.step, twig.level + 1, gap)
            return
        last = _BEFORE_LISTS if self._lists else len(LEVELS) - 1
        if twig.level < last and (self._lists or gap < 2 * found.doubt):
            self._push_twig(pair, branch, Step.LOOK, twig.level + 1, gap)
            return
        if pair.plot is not None and branch.may_be_divided(pair.plot):
            self._push_twig(pair, branch, Step.DIVIDE, max(0, twig.level - 1), gap)
        else:
            self._try_twos(pair, branch)

    def _try_twos(self, pair: Pair, branch: Branch) -> None:
        wanted = self._twos and not self._lists and branch.gap > 0 and len(branch.outputs) > 1
        for step in _BY_TWOS if wanted else ():
            self._push_twig(pair, branch, step, 0, branch.gap)


def _first(failing: Claim, right: Claim) -> Look | None:
    """The first look at a pair, if it was one without classes."""
    if failing.record is None or failing.record[1] != 0 or (right.record is not None and right.record[0] != 0):
        return None
    above = np.array([-1]) if right.record is None else right.record[1:]
    below = failing.record[2:]
    return Look(failing.mass, right.mass, below, above, below[4 : 4 + below[3]] if below[0] else below[:0])
