"""Sequences that a table of integers counts, one by one."""

from __future__ import annotations

import numpy as np


def sequences_at_least_zero(start: int, D: list[dict[int, int]], m: int) -> np.ndarray:
    """All sequences with the label m and start + sum_i D[i][x_i] >= 0, in ascending order, one per row."""
    ahead = [sum(max(row.values()) for row in D[i:]) for i in range(len(D) + 1)]
    found, sums = np.zeros((1, 0), dtype=np.int64), np.array([start])
    for i, row in enumerate(D):
        tokens, entries = np.array(sorted(row)), np.array([row[t] for t in sorted(row)])
        total = sums[:, None] + entries[None]
        which, token = np.nonzero(total + ahead[i + 1] >= 0)
        found = np.concatenate([found[which], tokens[token][:, None]], axis=1)
        sums = total[which, token]
    return found[found.max(axis=1) == m]
