"""Witnesses over all queries and labels: covers and catches, refined where that is worth most, until the proven counts are reached."""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from compactproofs import checker
from compactproofs.certificates.pairs import Catch, Cover, PairSearch
from compactproofs.counting.evaluation import Evaluation, prepare
from compactproofs.model.weights import Weights
from compactproofs.strategies.threshold.engine import Effort, fraction_of
from compactproofs.strategies.threshold.pairwise import REFINEMENTS

_MOST_LISTED = 2_000_000
"""Sequences are listed one by one only if no more than so many are in doubt."""

_SECONDS = 120.0
"""Refinement ends after this long."""

Key = tuple[int, int]


@dataclass(frozen=True)
class Efforts:
    """How hard to search."""

    first: Effort
    refine: bool
    """whether to look again, harder, at pairs with many failures"""
    listing: bool
    """whether to list single sequences"""


@dataclass
class PairWitness:
    """The search over all pairs (label, query)."""

    weights: Weights
    tables: checker.Tables
    efforts: Efforts
    at_least: int | None
    at_most: int | None
    _deadline: float = field(default_factory=lambda: time.perf_counter() + _SECONDS)

    @cached_property
    def evaluation(self) -> Evaluation:
        return prepare(self.weights)

    @cached_property
    def _worst(self) -> list[list[int]]:
        return [self.tables.worst_position(m) for m in range(self.tables.v)]

    @cached_property
    def keys(self) -> list[Key]:
        return [(m, q) for m in range(self.tables.v) for q in range(m + 1)] if self.tables.out > 1 else []

    def search(self, key: Key) -> PairSearch:
        m, q = key
        T = self.tables
        error = (T.EU[q][m] - T.own[q][m]) / (1 << T.scale)
        return PairSearch(self.evaluation, m, q, 2 * T.bits + T.scale, error)

    def pair(self, key: Key) -> checker.Pair:
        return checker.Pair(self.tables, *key, self._worst[key[0]])

    @property
    def _total(self) -> int:
        return self.tables.v**self.tables.k

    @cached_property
    def _plain(self) -> dict[Key, Cover]:
        """Covers without classes, from which sequences are listed."""
        effort = Effort(self.efforts.first.steps, joint=True)
        return {key: self.search(key).cover(effort, 0) for key in self.keys}

    @cached_property
    def _lists(self) -> bool:
        return self.efforts.listing and sum(cover.count for cover in self._plain.values()) <= _MOST_LISTED

    def lower(self) -> dict[str, Any]:
        """Witness of rule `pairs`."""
        if self._lists:
            return {"pairs": [self._described(key, self._plain[key]) for key in self.keys]}
        small = fraction_of(self.tables.v ** (self.tables.k - 1), self.efforts.first.ignore)
        covers = {key: self.search(key).cover(self.efforts.first, small) for key in self.keys}
        failures = sum(cover.count for cover in covers.values())
        allowed = self._total - self.at_least if self.at_least is not None else failures
        queue = [(-cover.count, 0, key) for key, cover in covers.items()] if self.efforts.refine else []
        heapq.heapify(queue)
        while queue and failures > allowed and time.perf_counter() < self._deadline:
            _, level, key = heapq.heappop(queue)
            found = self.search(key).cover(REFINEMENTS[level], 0)
            if found.count < covers[key].count:
                failures -= covers[key].count - found.count
                covers[key] = found
            if level + 1 < len(REFINEMENTS):
                heapq.heappush(queue, (-covers[key].count, level + 1, key))
        useful = [key for key in self.keys if covers[key].count < self.tables.sequences(*key)]
        return {"pairs": [{"label": m, "query": q, **covers[m, q].witness(), "right": []} for m, q in useful]}

    def _described(self, key: Key, cover: Cover) -> dict[str, Any]:
        right = self.search(key).right_among_counted(self.pair(key), cover, _MOST_LISTED)
        return {"label": key[0], "query": key[1], **cover.witness(), "right": right}

    def upper(self) -> dict[str, Any]:
        """Witness of rule `failures`."""
        if self.at_most == self._total:
            return {"pairs": []}
        effort = Effort(steps=200 if self.tables.k <= 5 else 50, classes=12, lower=True)
        if self._lists:
            described = [self._caught(key) for key in self.keys]
            return {"pairs": [pair for pair in described if pair is not None]}
        catches = {key: self.search(key).catch(effort) for key in self.keys}
        wrong = sum(catch.count for catch in catches.values())
        wanted = self._total - self.at_most if self.at_most is not None else 0
        queue: list[tuple[int, int, Key]] = []
        if wrong < wanted:
            queue = [(-self.search(key).cover(effort, 0).count + catch.count, 0, key) for key, catch in catches.items()]
        heapq.heapify(queue)
        while queue and wrong < wanted and time.perf_counter() < self._deadline:
            priority, level, key = heapq.heappop(queue)
            found = self.search(key).catch(REFINEMENTS[level])
            if found.count > catches[key].count:
                wrong += found.count - catches[key].count
                priority += found.count - catches[key].count
                catches[key] = found
            if level + 1 < len(REFINEMENTS):
                heapq.heappush(queue, (priority, level + 1, key))
        return {"pairs": [{"label": m, "query": q, **catches[m, q].witness(), "wrong": []} for m, q in self.keys if catches[m, q].count]}

    def _caught(self, key: Key) -> dict[str, Any] | None:
        search = self.search(key)
        catch: Catch = search.catch(Effort(self.efforts.first.steps, lower=True))
        wrong = search.wrong_not_caught(self.pair(key), catch, self._plain[key], _MOST_LISTED)
        if not catch.count and not wrong:
            return None
        return {"label": key[0], "query": key[1], **catch.witness(), "wrong": wrong}
