"""How many sequences a gap table covers."""

from __future__ import annotations

from math import comb

import numpy as np


def applicable(gaps: np.ndarray) -> np.ndarray:
    """Entries (q, m, c) that speak of sequences at all: booleans.

    The query is at most the label; with c = 0 it is the label; with c >= 1 the gap leaves a token, and the query, if it is not the
    label, keeps the gap too.
    """
    v, _, k = gaps.shape
    q, m, c = np.arange(v)[:, None, None], np.arange(v)[None, :, None], np.arange(k)[None, None]
    others = (gaps >= 1) & (gaps <= m) & ((q == m) | (m - q >= gaps))
    return np.asarray(np.where(c == 0, q == m, others & (q <= m)))


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
    """Exact number of sequences of the credited entries, all of which must be applicable.

    The c' = c - [q != m] free positions that hold other tokens can be chosen in C(n_ctx - 1, c') ways, each of them holds one of
    the m - g + 1 tokens at most m - g. Entries of different (q, m, c) speak of different sequences.
    """
    v, _, k = gaps.shape
    q, m, c = np.arange(v)[:, None, None], np.arange(v)[None, :, None], np.arange(k)[None, None]
    use = credited & applicable(gaps)
    free = np.broadcast_to(c - (q != m), gaps.shape)[use]
    choices = np.broadcast_to(m - gaps + 1, gaps.shape)[use]
    # Applicable entries with free positions have 1 <= choices <= v; without, the number of choices does not matter.
    kinds = np.bincount(free * (v + 1) + np.where(free > 0, choices, 0), minlength=1)
    total = 0
    for kind in np.flatnonzero(kinds).tolist():
        positions, tokens = divmod(kind, v + 1)
        total += int(kinds[kind]) * comb(k - 1, positions) * tokens**positions
    return total
