"""Steps, offsets and classes for counting, found with the compiled programmes that the strategies use. Nothing here is trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from compactproofs.counting.additive import count_exponent
from compactproofs.counting.grid import FINE, class_automaton, count_on_grid, dominant_tokens, find_offsets, natural_unit, scores
from compactproofs.tasks import MaxOfK

DEPTH = 16
"""Scores below so many negative units are clipped (as in `counting.grid`)."""

CLASSES = 12

STEP_BITS = 53
"""Bits of the smallest step, after the common shift: all that the search's step has, so that both count on the same grid."""

_FLOAT_BITS = 900
_NO_ORDER = np.empty(0, dtype=np.int64)

Harms = list[dict[int, int]]


@dataclass(frozen=True)
class FloatHarms:
    """Harms in float64, times a power of two."""

    h: np.ndarray
    """(position, token)"""
    last: np.ndarray
    """(token,): may stand at the last position"""
    exponent: int
    """the checker's harms are about h * 2^exponent"""

    @classmethod
    def of(cls, harms: Harms, m: int) -> FloatHarms:
        size = max(abs(x).bit_length() for row in harms for x in row.values())
        exponent = max(0, size - _FLOAT_BITS)
        h = np.zeros((len(harms), m + 1))
        for i, row in enumerate(harms):
            for t, x in row.items():
                h[i, t] = float(x >> exponent)
        last = np.zeros(m + 1, dtype=bool)
        last[list(harms[-1])] = True
        return cls(h, last, exponent)


@dataclass(frozen=True)
class Class:
    """One class of sequences, counted in steps of `unit / steps`."""

    unit: float
    steps: int
    offsets: list[int]
    count: int

    def step(self, exponent: int) -> int:
        """The step as an integer, where harms are 2^exponent times as large."""
        mantissa, power = np.frexp(self.unit / self.steps)
        size = int(power) + exponent - 53
        whole = int(mantissa * 2.0**53)
        return max(1, whole << size if size >= 0 else whole >> -size)

    def specification(self, exponent: int, shift: int) -> dict[str, Any]:
        """In the format's terms."""
        return {"step": max(1, self.step(exponent) >> shift), "offsets": self.offsets, "depth": DEPTH * self.steps}


def class_automaton_of(order: np.ndarray, c: int, m: int) -> tuple[np.ndarray, np.ndarray, int]:
    """The sequences of label m in class c of `order`."""
    a = MaxOfK(1, m + 1).label_automaton(m)
    if len(order) == 0:
        return a.following, a.accepting, a.start
    following, accepting = class_automaton(a.following, a.accepting, order, c)
    return following, accepting, a.start


def count_class(f: FloatHarms, order: np.ndarray, c: int, m: int, steps: int, unit: float | None = None, up: bool = True) -> Class:
    """Choose unit and offsets for the class number c of `order`, and count."""
    following, accepting, start = class_automaton_of(order, c, m)
    token = int(order[c]) if c < len(order) else m
    unit = float(natural_unit(f.h, f.last, m, token)) if unit is None else unit
    H, offsets = np.empty(f.h.shape, dtype=np.int64), np.empty(len(f.h), dtype=np.int64)
    scores(f.h, f.last, steps * FINE / unit, DEPTH * steps * FINE, up, H)
    find_offsets(H, token, up, offsets)
    found = count_on_grid(f.h, f.last, unit, steps, token, following, accepting, start, up, np.zeros(1, dtype=np.int64))
    return Class(unit, steps, offsets.tolist(), int(found) << count_exponent(len(f.h), m + 1))


def count_by_class(harms: Harms, m: int, steps: int, small: int) -> dict[str, Any]:
    """The better of counting all sequences together and by classes of the most harmful tokens; classes only if more than `small` fail."""
    f = FloatHarms.of(harms, m)
    order, best = _NO_ORDER, [count_class(f, _NO_ORDER, 0, m, steps)]
    if len(harms) > 5 and best[0].count > small:
        by_harm = np.asarray(dominant_tokens(np.abs(f.h[:-1]).sum(axis=0), m, CLASSES), dtype=np.int64)
        classes = [count_class(f, by_harm, c, m, steps) for c in range(len(by_harm) + 1)]
        if sum(x.count for x in classes) < best[0].count:
            order, best = by_harm, classes
    shift = max(0, min(x.step(f.exponent).bit_length() for x in best) - STEP_BITS)
    described = [x.specification(f.exponent, shift) for x in best]
    return {"shift": shift, "by_class": {"order": order.tolist(), "classes": described}}
