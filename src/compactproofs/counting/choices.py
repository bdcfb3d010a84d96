"""Which tokens may stand where, and sequences as numbers: what brute force enumerates and sampling draws from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from compactproofs.tasks import AbstractTask


@dataclass(frozen=True, eq=False)
class Choices:
    """Position i may have any of tokens[i, : sizes[i]]."""

    tokens: np.ndarray
    """(n_ctx, most)"""
    sizes: np.ndarray
    """(n_ctx,)"""
    last: int
    """The last position before the query that has a choice; -1 if there is none."""
    masses: np.ndarray | None = None
    """(n_ctx, d_vocab): how likely each token is to be drawn; None: all the same."""

    @classmethod
    def of(cls, task: AbstractTask) -> Choices:
        allowed = np.ones((task.n_ctx, task.d_vocab), dtype=bool) if task.allowed is None else task.allowed
        sizes = allowed.sum(axis=1).astype(np.int64)
        tokens = np.zeros((task.n_ctx, int(sizes.max())), dtype=np.int64)
        for i, row in enumerate(allowed):
            tokens[i, : sizes[i]] = np.flatnonzero(row)
        last = max((i for i in range(task.n_ctx - 1) if sizes[i] > 1), default=-1)
        return cls(tokens, sizes, last, None if task.uniform else task.masses)

    @property
    def queries(self) -> list[int]:
        """Tokens that may stand at the last position."""
        return [int(t) for t in self.tokens[-1, : self.sizes[-1]]]

    @property
    def n_last(self) -> int:
        """How many tokens the last position with a choice has."""
        return int(self.sizes[self.last]) if self.last >= 0 else 1

    @property
    def prefixes(self) -> int:
        """How many ways there are to fill the positions before `last`."""
        return math.prod(self.sizes[: max(self.last, 0)].tolist())

    def sequence(self, code: int, query: int) -> list[int]:
        """The sequence with this number (first position highest, up to `last`) and query."""
        row = [int(self.tokens[i, 0]) for i in range(len(self.sizes) - 1)]
        for i in range(self.last, -1, -1):
            code, j = divmod(code, int(self.sizes[i]))
            row[i] = int(self.tokens[i, j])
        return [*row, query]

    def drawn(self, generator: np.random.Generator, size: int) -> np.ndarray:
        """So many sequences, independent, each as likely as its mass says; exactly so."""
        if self.masses is not None:
            columns = [
                np.searchsorted(np.cumsum(row), generator.integers(0, int(row.sum()), size=size), side="right") for row in self.masses
            ]
            return np.ascontiguousarray(np.stack(columns, axis=1).astype(np.int64))
        if (self.sizes == self.sizes[0]).all():
            numbers = generator.integers(0, int(self.sizes[0]), size=(size, len(self.sizes)))
        else:
            numbers = np.stack([generator.integers(0, int(n), size=size) for n in self.sizes], axis=1)
        return np.ascontiguousarray(self.tokens[np.arange(len(self.sizes)), numbers])
