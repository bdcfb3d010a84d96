"""Strategies whose means are far from the published ones, in as few groups as their three choices allow, with the causes that are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compactproofs.strategies.subcubic import AttentionError, DirectPath
from compactproofs_experiments.reproduction.comparison import Comparison
from compactproofs_experiments.reproduction.markdown import listed

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
    models_alike: bool
    """Whether brute force and cubic were compared and agree."""

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

    @property
    def cause(self) -> str:
        """What is known about the reason."""
        if self.handling is None and all(member.estimated for member in self.members):
            return "both are estimates of the accuracy; the published one is of another network (C9) and weights sequences wrongly (C10)"
        if self.handling is None:
            return "the models: on the same weights brute force and cubic count what the authors' code counts (`tests/golden`)"
        if not self.models_alike:
            return "not known; brute force or cubic, which count what the authors' code counts, differ too, so that it may be the models"
        return (
            "probably another version of the authors' code: on the same weights their present code gives what ours gives, and the models "
            "have the accuracy and the cubic bounds of the published ones ([C17](../strategies/errata.md))"
        )


def disagreements(comparisons: Sequence[Comparison]) -> list[Disagreement]:
    """Those that do not agree, grouped by query handling and side; the larger groups first."""
    known = [c for c in comparisons if c.ours is not None]
    plain = [c for c in known if not c.published.choices]
    alike = len(plain) == len([c for c in comparisons if not c.published.choices]) > 0 and all(c.agrees for c in plain)
    groups: dict[tuple[str | None, bool], list[Comparison]] = {}
    for c in known:
        if not c.agrees:
            handling = c.published.choices[2] if c.published.choices else None
            groups.setdefault((handling, (c.difference or 0.0) > 0), []).append(c)
    found = [_group(members, handling, higher, known, alike) for (handling, higher), members in groups.items()]
    return sorted(found, key=lambda group: -len(group.members))


def _group(members: list[Comparison], handling: str | None, higher: bool, known: Sequence[Comparison], alike: bool) -> Disagreement:
    if handling is None:
        return Disagreement(tuple(members), len(members), None, (), (), higher, alike)
    directs, errors = (tuple(dict.fromkeys(member.published.choices[n] for member in members)) for n in (0, 1))
    described = [c for c in known if c.published.choices[2:] == (handling,)]
    described = [c for c in described if c.published.choices[0] in directs and c.published.choices[1] in errors]
    return Disagreement(tuple(members), len(described), handling, directs, errors, higher, alike)


def _alternatives(chosen: Sequence[str], everything: Iterable[str]) -> str:
    """The chosen ones, or those that are not, whichever are fewer."""
    others = [name for name in everything if name not in chosen]
    shorter = len(others) < len(chosen)
    quoted = [f"`{name}`" for name in (others if shorter else chosen)]
    text = " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
    return f"other than {text}" if shorter else text
