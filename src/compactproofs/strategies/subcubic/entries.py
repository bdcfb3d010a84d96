"""Entries of a gap table that speak of sequences at all, as a list. The others (almost half: queries above the label) cost nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Entries:
    """Some entries (q, m, c) of a gap table: four arrays of integers, all of one length."""

    query: np.ndarray
    label: np.ndarray
    others: np.ndarray
    """How many tokens are not the label, the query included if it is not."""
    gap: np.ndarray
    """All those tokens are at most label - gap."""

    @classmethod
    def at(cls, index: tuple[np.ndarray, ...], gaps: np.ndarray) -> Entries:
        """The entries at these indices of a gap table."""
        query, label, others = index
        return cls(query, label, others, gaps[index])

    @classmethod
    def applicable(cls, gaps: np.ndarray) -> Entries:
        """Every entry of a gap table that is `applicable`."""
        return cls.at(np.nonzero(applicable(gaps)), gaps)

    @property
    def largest_other(self) -> np.ndarray:
        """label - gap; within the tokens there are even where no other token occurs and the gap means nothing."""
        return np.asarray(np.clip(self.label - self.gap, 0, self.label))

    @property
    def own(self) -> np.ndarray:
        """1 where the query is the label, else 0."""
        return np.asarray(self.query == self.label, dtype=np.int64)

    def placed(self, values: np.ndarray, into: np.ndarray) -> np.ndarray:
        """A copy of a table (q, m, c) with these entries replaced."""
        result = into.copy()
        result[self.query, self.label, self.others] = values
        return result


def applicable(gaps: np.ndarray) -> np.ndarray:
    """Entries (q, m, c) that speak of sequences at all: booleans.

    The query is at most the label; with c = 0 it is the label; with c >= 1 the gap leaves a token, and the query, if it is not the
    label, keeps the gap too.
    """
    v, _, k = gaps.shape
    q, m, c = np.arange(v)[:, None, None], np.arange(v)[None, :, None], np.arange(k)[None, None]
    others = (gaps >= 1) & (gaps <= m) & ((q == m) | (m - q >= gaps))
    return np.asarray(np.where(c == 0, q == m, others & (q <= m)))


def largest_gaps(v: int, k: int) -> np.ndarray:
    """(q, m, c): the largest gap that leaves a token and, if it is not the label, the query; 0 where there is none."""
    q, m = np.arange(v)[:, None], np.arange(v)[None]
    return np.broadcast_to(np.where(q == m, m, np.maximum(m - q, 0))[:, :, None], (v, v, k))
