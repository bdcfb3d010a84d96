"""Strategies whose means are far from the published ones, in as few groups as their three choices allow, with the causes that are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compactproofs.reproduction.comparison import FAR, NEGLIGIBLE, Comparison
from compactproofs.reproduction.markdown import listed
from compactproofs.strategies.subcubic import AttentionError, DirectPath, QueryHandling

UNKNOWN = "no cause is known"

_EXTENTS = (("direct path", DirectPath), ("attention error", AttentionError))


@dataclass(frozen=True)
class Disagreement:
    """Strategies of one query handling (or one that is not subcubic) with means on the same side of the published ones."""

    members: tuple[Comparison, ...]
    described: int
    """Compared strategies to which the description applies: the members, and those that agree nevertheless."""
    handling: str | None
    """None for brute force and cubic."""
    directs: tuple[str, ...]
    errors: tuple[str, ...]
    higher: bool
    """Whether we get more than was published."""

    @property
    def negligible(self) -> bool:
        """Whether every member differs by so little that only a tiny published spread makes it far."""
        return all(abs(member.difference or 0.0) < NEGLIGIBLE for member in self.members)

    @property
    def description(self) -> str:
        """The strategies in words."""
        if self.handling is None:
            return listed([f"`{member.published.label}`" for member in self.members])
        parts = [f"query handling `{self.handling}`"]
        for (name, everything), chosen in zip(_EXTENTS, (self.directs, self.errors), strict=True):
            if len(chosen) < len(everything):
                parts.append(f"{name} {_alternatives(chosen, everything)}")
        return ", ".join(parts)

    def cause(self, n_ctx: int) -> str:
        """What is known about the reason."""
        if self.negligible:
            return f"no difference reaches {NEGLIGIBLE}: the published spread of these rows is next to nothing"
        if self.handling is None and all(member.estimated for member in self.members):
            return "both are estimates of the accuracy; the published one is of another network (C9) and weights sequences wrongly (C10)"
        if all(member.standard_errors is not None and abs(member.standard_errors) <= FAR for member in self.members):
            return f"within {FAR:g} standard errors: our models are too few to tell"
        if self.handling is None:
            return "the models: on the same weights brute force and cubic count what the authors' code counts (`tests/golden`)"
        if self.handling == QueryHandling.DROP and n_ctx == 4 and self.higher:
            return (
                "the authors' present code too gives more than they published; the published rows seem to be of another version of it "
                "([C17](../strategies/errata.md))"
            )
        return UNKNOWN


def disagreements(comparisons: Sequence[Comparison]) -> list[Disagreement]:
    """Those that do not agree, grouped by query handling and side; the larger groups first."""
    known = [c for c in comparisons if c.ours is not None]
    groups: dict[tuple[str | None, bool, bool], list[Comparison]] = {}
    for c in known:
        if not c.agrees:
            handling = c.published.choices[2] if c.published.choices else None
            difference = c.difference or 0.0
            groups.setdefault((handling, difference > 0, abs(difference) < NEGLIGIBLE), []).append(c)
    found = [_group(members, handling, higher, known) for (handling, higher, _), members in groups.items()]
    return sorted(found, key=lambda group: (group.negligible, -len(group.members)))


def _group(members: list[Comparison], handling: str | None, higher: bool, known: Sequence[Comparison]) -> Disagreement:
    if handling is None:
        return Disagreement(tuple(members), len(members), None, (), (), higher)
    directs, errors = (tuple(dict.fromkeys(member.published.choices[n] for member in members)) for n in (0, 1))
    described = [c for c in known if c.published.choices[2:] == (handling,)]
    described = [c for c in described if c.published.choices[0] in directs and c.published.choices[1] in errors]
    return Disagreement(tuple(members), len(described), handling, directs, errors, higher)


def _alternatives(chosen: Sequence[str], everything: Iterable[str]) -> str:
    """The chosen ones, or those that are not, whichever are fewer."""
    others = [name for name in everything if name not in chosen]
    shorter = len(others) < len(chosen)
    quoted = [f"`{name}`" for name in (others if shorter else chosen)]
    text = " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
    return f"other than {text}" if shorter else text
