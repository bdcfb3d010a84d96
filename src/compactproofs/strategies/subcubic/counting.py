"""How many sequences a gap table covers."""

from __future__ import annotations

from math import comb

import numpy as np

from compactproofs.strategies.subcubic.entries import Entries, applicable


def covered_by_pair(gaps: np.ndarray, credited: np.ndarray) -> list[list[int]]:
    """`count_covered` for every label m, by query q <= m."""
    v = len(gaps)
    nothing = np.zeros_like(credited)

    def count(m: int, q: int) -> int:
        here = nothing.copy()
        here[q, m] = credited[q, m]
        return count_covered(gaps, here)

    return [[count(m, q) if credited[q, m].any() else 0 for q in range(m + 1)] for m in range(v)]


def unproven_by_pair(gaps: np.ndarray, credited: np.ndarray) -> dict[int, list[list[int] | None]]:
    """For each label m by query q, a sequence that no credited entry speaks of; None if there is none."""
    v, _, k = gaps.shape
    use = credited & applicable(gaps)

    def example(m: int, q: int) -> list[int] | None:
        for c in range(0 if q == m else 1, k if m > 0 else 1):
            free = c - (q != m)
            nearest = m - int(gaps[q, m, c]) + 1
            if not use[q, m, c]:
                return [m - 1] * free + [m] * (k - 1 - free) + [q]
            if free > 0 and nearest < m:
                return [nearest] * free + [m] * (k - 1 - free) + [q]
        return None

    return {m: [example(m, q) for q in range(m + 1)] for m in range(v)}


def count_covered(gaps: np.ndarray, credited: np.ndarray) -> int:
    """Exact number of sequences of the credited entries; those that are not applicable count nothing.

    The c' = c - [q != m] free positions that hold other tokens can be chosen in C(n_ctx - 1, c') ways, each of them holds one of
    the m - g + 1 tokens at most m - g. Entries of different (q, m, c) speak of different sequences.
    """
    entries = Entries.at(np.nonzero(credited & applicable(gaps)), gaps)
    return count_sequences(entries.others - 1 + entries.own, entries.label - entries.gap + 1, gaps.shape[2])


def count_sequences(free: np.ndarray, choices: np.ndarray, n_ctx: int) -> int:
    """The sum over entries of C(n_ctx - 1, free) choices^free, an exact integer. Choices are not negative where any position is free."""
    most = int(choices.max(initial=0)) + 1
    kinds = np.bincount(free * most + np.where(free > 0, choices, 0), minlength=1)
    total = 0
    for kind in np.flatnonzero(kinds).tolist():
        positions, tokens = divmod(kind, most)
        total += int(kinds[kind]) * comb(n_ctx - 1, positions) * tokens**positions
    return total
