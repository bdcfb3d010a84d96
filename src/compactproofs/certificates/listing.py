"""Sequences that a table of integers counts, one by one."""

from __future__ import annotations

import numpy as np

_NEVER = -(1 << 60)


def sequences_at_least_zero(start: int, D: list[dict[int, int]], m: int) -> np.ndarray:
    """All sequences with the label m and start + sum_i D[i][x_i] >= 0, in ascending order, one per row."""
    ahead = [[_NEVER, 0]]  # the most that the rest can add, if the label has not and if it has occurred
    for row in reversed(D):
        others = max((x for t, x in row.items() if t != m), default=_NEVER)
        label = row.get(m, _NEVER)
        unseen, seen = ahead[0]
        ahead.insert(0, [max(others + unseen, label + seen, _NEVER), max(max(others, label) + seen, _NEVER)])
    found, sums, seen_label = np.zeros((1, 0), dtype=np.int64), np.array([start]), np.zeros(1, dtype=np.int64)
    for i, row in enumerate(D):
        tokens, entries = np.array(sorted(row)), np.array([row[t] for t in sorted(row)])
        total = sums[:, None] + entries[None]
        seen_then = np.maximum(seen_label[:, None], (tokens == m)[None])
        which, token = np.nonzero(total + np.array(ahead[i + 1])[seen_then] >= 0)
        found = np.concatenate([found[which], tokens[token][:, None]], axis=1)
        sums, seen_label = total[which, token], seen_then[which, token]
    return found
