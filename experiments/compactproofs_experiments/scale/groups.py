"""Strategies in groups that should grow alike, and their fits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from compactproofs_experiments.scale.fits import Fit, fit
from compactproofs_experiments.scale.records import AXES, BRUTE_FORCE_AXIS, Measurement, Size

COSTS = ("seconds", "flops")

_SYMBOLS = {"d_vocab_out": "v", "d_vocab": "v", "n_ctx": "k", "d_model": "d"}


@dataclass(frozen=True)
class Group:
    """One named strategy, or variants with the same stated complexity."""

    kind: str
    """The name of the strategy, and the variant if there are two."""
    stated: str
    """Complexity, empty if it differs."""
    members: dict[tuple[str, str], list[Measurement]]

    @property
    def title(self) -> str:
        """For tables."""
        name, _, variant = self.kind.partition(", ")
        return f"`{name}`, {variant}" if variant else f"`{name}`"

    @property
    def exponential(self) -> bool:
        """Whether the cost grows exponentially in k."""
        return self.kind == "brute-force"

    def sizes(self, axis: str) -> list[Size]:
        """The sizes of an axis; brute force has its own in k."""
        return BRUTE_FORCE_AXIS if axis == "k" and self.exponential else AXES[axis]

    def fits(self, axis: str, cost: str) -> list[Fit]:
        """Fits of the members that were measured at the most sizes of an axis (three at least)."""
        found = [self._points(rows, axis, cost) for rows in self.members.values()]
        most = max(map(len, found))
        if most < 3:
            return []
        return [fit(*zip(*points, strict=True), exponential=axis == "k" and self.exponential) for points in found if len(points) == most]

    def _points(self, rows: Sequence[Measurement], axis: str, cost: str) -> list[tuple[int, float]]:
        wanted = self.sizes(axis)
        return [(getattr(row, axis), float(getattr(row, cost))) for row in rows if row.size in wanted and row.complete]


def groups(rows: Sequence[Measurement], *, by_complexity: bool = False) -> list[Group]:
    """All groups, the shortest proofs first; the subcubic ones by variant, or by variant and stated complexity."""
    found: dict[tuple[str, str], dict[tuple[str, str], list[Measurement]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[_kind(row), row.complexity if by_complexity or row.strategy != "subcubic" else ""][row.label, row.variant].append(row)
    places = sorted(found, key=lambda each: (_ORDER.index(each[0]), len(each[1]), each[1]))
    return [Group(kind, short(complexity), dict(found[kind, complexity])) for kind, complexity in places]


def short(complexity: str) -> str:
    """A complexity in the paper's letters."""
    for name, symbol in _SYMBOLS.items():
        complexity = complexity.replace(name, symbol)
    return complexity.replace("v^3 v ", "v^4 ")


def ranges(fits: Sequence[Fit], attribute: str) -> tuple[float, float]:
    """The least and the greatest."""
    values = [getattr(each, attribute) for each in fits]
    return min(values), max(values)


def _kind(row: Measurement) -> str:
    if row.variant:
        return f"{row.strategy}, {row.variant}"
    return row.strategy if row.label == row.strategy else f"{row.strategy}/*"


_ORDER = (
    *("brute-force", "cubic", "subcubic, repaired", "subcubic, published"),
    *("threshold-quadratic-pooled", "threshold-cubic-pooled", "threshold-cubic-pooled/*", "threshold-cubic", "threshold-blocks"),
    *("threshold-quartic", "threshold-exact-output", "threshold-best"),
)
