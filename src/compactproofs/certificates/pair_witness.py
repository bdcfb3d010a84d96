"""Witnesses over all queries and labels, from the efforts that gave a proof its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from compactproofs import checker
from compactproofs.certificates.pairs import PairSearch
from compactproofs.form.evaluation import Evaluation, prepare
from compactproofs.model.weights import Weights
from compactproofs.strategies.threshold.engine import Effort, Failures, fraction_of
from compactproofs.strategies.threshold.pairwise import first_effort


@dataclass(frozen=True, eq=False)
class PairWitness:
    """Writes down what is known about the failures of each label, by query."""

    weights: Weights
    tables: checker.Tables
    failures: Mapping[int, Failures]

    @cached_property
    def evaluation(self) -> Evaluation:
        return prepare(self.weights)

    def lower(self) -> dict[str, Any]:
        """Witness of rule `pairs`."""
        described = []
        for m, known in sorted(self.failures.items()):
            worst = self.tables.worst_position(m)
            for q, effort in sorted(known.upper_by.items()):
                search = self._search(m, q)
                right = []
                if effort is None:
                    cover = search.cover(self._plain, 0)
                    right = search.right_among_counted(checker.Pair(self.tables, m, q, worst), cover)
                else:
                    small = fraction_of(self.tables.v ** (self.tables.k - 1), effort.ignore)
                    cover = search.cover(replace(effort, joint=True), small)
                described.append({"label": m, "query": q, **cover.witness(), "right": right})
        return {"pairs": described}

    def upper(self) -> dict[str, Any]:
        """Witness of rule `failures`."""
        described = []
        for m, known in sorted(self.failures.items()):
            worst = self.tables.worst_position(m)
            for q, effort in sorted(known.lower_by.items()):
                search = self._search(m, q)
                catch = search.catch(effort or self._plain)
                wrong = []
                if effort is None:
                    pair = checker.Pair(self.tables, m, q, worst)
                    wrong = search.wrong_not_caught(pair, catch, search.cover(self._plain, 0))
                described.append({"label": m, "query": q, **catch.witness(), "wrong": wrong})
        return {"pairs": described}

    @cached_property
    def _plain(self) -> Effort:
        """Without classes: how sequences are counted before they are listed one by one."""
        return Effort(first_effort(self.weights).steps)

    def _search(self, m: int, q: int) -> PairSearch:
        T = self.tables
        error = (T.EU[q][m] - T.own[q][m]) / (1 << T.scale)
        return PairSearch(self.evaluation, m, q, 2 * T.bits + T.scale, error)
