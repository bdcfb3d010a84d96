"""The frontier of tightness and length."""

from __future__ import annotations

from collections.abc import Sequence


def on_frontier(points: Sequence[tuple[int | float, int | float]]) -> list[bool]:
    """Which points (length, bound) no other beats: dropped is a point if another is as short and as tight, and one of the two more so.

    Example:
        >>> on_frontier([(1, 0.5), (2, 0.4), (3, 0.9), (3, 0.8)])
        [True, False, True, False]
    """
    best: list[tuple[float, float]] = []
    for length, bound in sorted(points, key=lambda point: (point[0], -point[1])):
        if not best or bound > best[-1][1]:
            best.append((length, bound))
    kept = set(best)
    return [point in kept for point in points]
