"""Witnesses of rules `pairs` and `failures`: for each query and label, how its outputs are covered or caught.

The search is that of `strategies.threshold.pairs`, with every choice written down. Nothing here is trusted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from compactproofs import checker
from compactproofs.certificates.listing import sequences_at_least_zero
from compactproofs.certificates.steps import STEP_BITS, Class, FloatHarms, class_automaton_of, count_class
from compactproofs.counting.grid import dominant_tokens, natural_unit
from compactproofs.form.evaluation import Evaluation
from compactproofs.strategies.threshold import pairs as kernels
from compactproofs.strategies.threshold.engine import Effort

_WEIGHT_BITS = 60
_FACTOR_BITS = 30
_LARGEST_FACTOR = 1e100
_NO_ORDER = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Term:
    """Sequences that one term counts."""

    count: int
    named: dict[str, Any]
    """`joint` and `weights`, or `apart`, `less` and `factors`"""
    counted: Class
    bits: int
    """the checker's harms are about 2^bits times ours"""


@dataclass(frozen=True)
class Cover:
    """For each class of an order of tokens, terms that cover every output that might win."""

    order: np.ndarray
    classes: list[list[Term]]

    @cached_property
    def count(self) -> int:
        return sum(term.count for terms in self.classes for term in terms)

    def witness(self) -> dict[str, Any]:
        steps = [term.counted.step(term.bits) for terms in self.classes for term in terms]
        shift = max(0, min((step.bit_length() for step in steps), default=0) - STEP_BITS)
        classes = [[{**term.named, "steps": term.counted.specification(term.bits, shift)} for term in terms] for terms in self.classes]
        return {"shift": shift, "by_class": {"order": self.order.tolist(), "classes": classes}}


@dataclass(frozen=True)
class Catch:
    """For each class one output that certainly wins on so many sequences, or none."""

    order: np.ndarray
    classes: list[tuple[int, Class] | None]
    bits: int

    @cached_property
    def count(self) -> int:
        return sum(found[1].count for found in self.classes if found is not None)

    def witness(self) -> dict[str, Any]:
        steps = [found[1].step(self.bits) for found in self.classes if found is not None]
        shift = max(0, min((step.bit_length() for step in steps), default=0) - STEP_BITS)
        classes = [
            None if found is None else {"output": found[0], "steps": found[1].specification(self.bits, shift)} for found in self.classes
        ]
        return {"shift": shift, "by_class": {"order": self.order.tolist(), "classes": classes}}


@dataclass
class PairSearch:
    """One query and one label, in float64."""

    evaluation: Evaluation
    m: int
    q: int
    bits: int
    """the checker's harms are about 2^bits times ours"""
    error: float = 0.0
    """of float32 arithmetic, in favour of every output"""
    G: np.ndarray = field(init=False, repr=False)
    A: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        e, m, q = self.evaluation, self.m, self.q
        k, n = len(e.PVOU), m + 1
        self.G, self.A = np.empty((e.EVOU.shape[1], k, n)), np.empty((k, n))
        EU = e.EU
        if self.error:
            EU = EU.copy()
            EU[q, m] -= self.error
        kernels.fill_terms(e.attention, e.EVOU, e.PVOU, EU, np.arange(n), m, q, self.G, self.A)
        self.last = np.zeros(n, dtype=bool)
        self.last[q] = True
        everything = np.array([o for o in range(len(self.G)) if o != m], dtype=np.int64)
        self.harmful = self.relevant(everything, _NO_ORDER, 0)

    def relevant(self, outputs: np.ndarray, order: np.ndarray, c: int) -> np.ndarray:
        e = self.evaluation
        following, accepting, start = class_automaton_of(order, c, self.m)
        return np.asarray(
            kernels.relevant_outputs(self.G, self.A, outputs, self.q, e.tolerance, e.floor, following, accepting, start), dtype=np.int64
        )

    def table(self, h: np.ndarray) -> FloatHarms:
        return FloatHarms(h, self.last, 0)

    def _order(self, effort: Effort) -> np.ndarray:
        """The most attended tokens, for classes; none if the effort has no classes."""
        if effort.classes == 0 or len(self.A) == 1:
            return _NO_ORDER
        return np.asarray(dominant_tokens(self.A[:-1].sum(axis=0), self.m, effort.classes), dtype=np.int64)

    def cover(self, effort: Effort, enough: int) -> Cover:
        """The best cover that this effort finds; classes are tried only if more than `enough` sequences fail without."""
        plain = Cover(_NO_ORDER, [self._terms(_NO_ORDER, 0, effort)])
        order = self._order(effort)
        if plain.count <= enough or len(order) == 0:
            return plain
        by_class = Cover(order, [self._terms(order, c, effort) for c in range(len(order) + 1)])
        return min(plain, by_class, key=lambda cover: cover.count)

    def _terms(self, order: np.ndarray, c: int, effort: Effort) -> list[Term]:
        outputs = self.relevant(self.harmful, order, c)
        if len(outputs) == 0:
            return []
        token = int(order[c]) if c < len(order) else self.m
        units = [1.0] * len(self.G)
        for o in outputs.tolist():
            units[o] = natural_unit(self.G[o], self.last, self.m, token)
        joint: list[Term] | None = None
        if effort.joint:
            joint = [self._joint(outputs, np.array(units), order, c, effort.steps)]
        if joint is not None and (joint[0].count == 0 or not effort.apart):
            return joint
        single = [self._single(o, units[o], order, c, effort.steps) for o in outputs.tolist()]
        single.sort(key=lambda term: -term.count)
        apart: list[Term] = []
        total = 0
        for term in single:
            best = term
            o = int(term.named["joint"][0])
            for before in single[: min(len(apart), kernels.PARENTS)]:
                p = int(before.named["joint"][0])
                for multiplier in kernels.MULTIPLIERS:
                    if best.count <= total >> 10:
                        break
                    times = min(multiplier * units[o] / max(units[p], 1e-250), _LARGEST_FACTOR)
                    other = self._less(o, p, times, order, c, effort.steps)
                    best = other if other.count < best.count else best
            apart.append(best)
            total += best.count
        return joint if joint is not None and joint[0].count <= total else apart

    def _joint(self, outputs: np.ndarray, units: np.ndarray, order: np.ndarray, c: int, steps: int) -> Term:
        e = self.evaluation
        if len(outputs) == 1:
            return self._single(int(outputs[0]), float(units[outputs[0]]), order, c, steps)
        weights = kernels.balanced(units, outputs)
        h = kernels.worst_output(self.G, self.A, outputs, weights, e.tolerance, e.floor)
        counted = count_class(self.table(h), order, c, self.m, steps)
        whole = [max(1, round(x * 2**_WEIGHT_BITS)) for x in weights[outputs].tolist()]
        return Term(counted.count, {"joint": outputs.tolist(), "weights": whole}, counted, self.bits + _WEIGHT_BITS)

    def _single(self, o: int, unit: float, order: np.ndarray, c: int, steps: int) -> Term:
        e = self.evaluation
        h = kernels.bounded(self.G[o], self.A, e.tolerance, e.floor, True)
        counted = count_class(self.table(h), order, c, self.m, steps, unit)
        return Term(counted.count, {"joint": [o], "weights": [1]}, counted, self.bits)

    def _less(self, o: int, p: int, times: float, order: np.ndarray, c: int, steps: int) -> Term:
        e = self.evaluation
        h = kernels.difference(self.G, self.A, o, p, times, e.tolerance, e.floor)
        counted = count_class(self.table(h), order, c, self.m, steps)
        factors = [1 << _FACTOR_BITS, round(times * 2**_FACTOR_BITS)]
        return Term(counted.count, {"apart": o, "less": p, "factors": factors}, counted, self.bits + _FACTOR_BITS)

    def catch(self, effort: Effort) -> Catch:
        """The best that this effort finds, of no classes and classes."""
        orders = [_NO_ORDER, self._order(effort)]
        found = [Catch(order, [self._caught(order, c, effort.steps) for c in range(len(order) + 1)], self.bits) for order in orders]
        return max(found, key=lambda catch: catch.count)

    def _caught(self, order: np.ndarray, c: int, steps: int) -> tuple[int, Class] | None:
        e = self.evaluation
        best: tuple[int, Class] | None = None
        token = int(order[c]) if c < len(order) else self.m
        for o in self._most_harmful(order, c):
            unit = float(natural_unit(self.G[o], self.last, self.m, token))
            h = kernels.bounded(self.G[o], self.A, e.tolerance, e.floor, False)
            counted = count_class(self.table(h), order, c, self.m, steps, unit, up=False)
            if counted.count > (0 if best is None else best[1].count):
                best = o, counted
        return best

    def _most_harmful(self, order: np.ndarray, c: int) -> list[int]:
        """The two outputs that seem to spoil most sequences of a class."""
        outputs = self.relevant(self.harmful, order, c)
        token = int(order[c]) if c < len(order) else self.m
        rough = []
        for o in outputs.tolist():
            unit = float(natural_unit(self.G[o], self.last, self.m, token))
            h = kernels.bounded(self.G[o], self.A, self.evaluation.tolerance, self.evaluation.floor, True)
            rough.append((-count_class(self.table(h), order, c, self.m, kernels.RANKING_STEPS, unit).count, o))
        return [o for _, o in sorted(rough)[:2]]

    def sums(self, sequences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each sequence (one per row, the query last): which are certainly right and which certainly wrong."""
        e = self.evaluation
        places = np.arange(sequences.shape[1])
        mass = self.A[places, sequences].sum(axis=1)
        margin = 2 * (e.tolerance * mass + len(places) * e.floor)
        worst = np.full(len(sequences), -np.inf)
        for o in self.harmful:
            worst = np.maximum(worst, self.G[o][places, sequences].sum(axis=1))
        return worst < -margin, worst > margin

    def right_among_counted(self, pair: checker.Pair, cover: Cover) -> list[list[int]]:
        """Sequences that a cover counts as failures although they are right."""
        counted = self._counted(pair, cover)
        return [row[:-1] for row in counted[self.sums(counted)[0]].tolist()]

    def wrong_not_caught(self, pair: checker.Pair, catch: Catch, cover: Cover) -> list[list[int]]:
        """Sequences that are wrong although a catch does not count them; all of them are among those that the cover counts."""
        counted = self._counted(pair, cover)
        wrong = counted[self.sums(counted)[1]].tolist()
        witness = catch.witness()
        specification = witness["by_class"]["classes"][0]
        if len(catch.order) or specification is None:
            return [] if len(catch.order) else [row[:-1] for row in wrong]
        below = checker.coarser(pair.terms(specification["output"], up=False), witness["shift"], up=False)
        table = checker.Steps.of(specification["steps"], len(self.A), "pair").rounded(below, up=False)
        return [row[:-1] for row in wrong if not table.counts(row)]

    def _counted(self, pair: checker.Pair, cover: Cover) -> np.ndarray:
        """The sequences that a cover by one term, without classes, counts: one per row. None if it is another kind of cover."""
        witness = cover.witness()
        classes = witness["by_class"]["classes"]
        if len(classes) != 1 or len(classes[0]) != 1:
            return np.zeros((0, len(self.A)), dtype=np.int64)
        (term,) = classes[0]
        harms = checker.coarser(checker.term_harms(pair, term, set(), "pair"), witness["shift"], up=True)
        return sequences_at_least_zero(*checker.Steps.of(term["steps"], len(self.A), "pair").rounded(harms, up=True), self.m)
