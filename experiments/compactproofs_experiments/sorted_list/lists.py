"""The task: a list of different numbers in any order, a separator, and then the same numbers in order.

Numbers are 0 .. n_values - 1 and the separator is the token n_values. A list of `length` numbers stands at positions 0 .. length - 1, the
separator at position `length`, and the r-th smallest number (r = 1 ..) at position length + r. Output j = 0 .. length - 1 is read at
position length + j and has to be the (j + 1)-th smallest number. The token there, the query, is the j-th smallest, or the separator for
j = 0. All lists are equally likely: each set of numbers stands in length! orders.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np


class Pair(NamedTuple):
    """The sets that contain a query q and the label m, and nothing between them."""

    query: int
    """The separator for output 0."""
    label: int
    below: int
    """How many numbers of a set are less than q."""
    above: int
    """How many are greater than m."""


@dataclass(frozen=True)
class Lists:
    """Which lists there are."""

    n_values: int
    length: int

    @property
    def separator(self) -> int:
        return self.n_values

    @property
    def sets(self) -> int:
        """How many sets of numbers there are."""
        return comb(self.n_values, self.length)

    def pairs(self, output: int) -> Iterator[Pair]:
        """All pairs of an output. Their sets are disjoint, and every set belongs to one."""
        n, above = self.n_values, self.length - 1 - output
        if output == 0:
            for m in range(n - above):
                yield Pair(self.separator, m, 0, above)
            return
        for q in range(output - 1, n):
            for m in range(q + 1, n - above):
                yield Pair(q, m, output - 1, above)

    def size(self, pair: Pair) -> int:
        """How many sets belong to a pair."""
        smaller = 0 if pair.query == self.separator else pair.query
        return comb(smaller, pair.below) * comb(self.n_values - 1 - pair.label, pair.above)

    def sets_of(self, pair: Pair) -> Iterator[tuple[int, ...]]:
        """The sets of a pair, in ascending order of their members: for tests."""
        own = (pair.label,) if pair.query == self.separator else (pair.query, pair.label)
        smaller = 0 if pair.query == self.separator else pair.query
        for low in combinations(range(smaller), pair.below):
            for high in combinations(range(pair.label + 1, self.n_values), pair.above):
                yield (*low, *own, *high)

    def tokens(self, order: np.ndarray, output: int) -> np.ndarray:
        """(list, position): what the network has read when it answers, for lists (list, length) of numbers in their order."""
        separators = np.full((len(order), 1), self.separator)
        return np.concatenate([order, separators, np.sort(order, axis=1)[:, :output]], axis=1)
