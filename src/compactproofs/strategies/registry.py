"""Every strategy there is, in one visible table. A name and its parameters recreate a strategy; certificates store just that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compactproofs.errors import StrategyError
from compactproofs.strategies.base import AbstractStrategy
from compactproofs.strategies.brute_force import BruteForce

BUILT_IN: tuple[type[AbstractStrategy], ...] = (BruteForce,)
"""Strategy classes, cheapest understanding first."""

DEFAULT = "brute-force"
"""What `prove` runs if no strategy is named."""

FAMILIES = tuple(dict.fromkeys(cls.family for cls in BUILT_IN))


@dataclass(frozen=True)
class StrategyInfo:
    """One row of `compactproofs strategies`."""

    name: str
    family: str
    parameters: dict[str, Any]
    sound: bool
    complexity: str
    source: str

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


def strategies() -> list[StrategyInfo]:
    """What there is, with complexity, soundness and parameters.

    Example:
        >>> [row.name for row in strategies()]
        ['brute-force']
    """
    return [StrategyInfo(s.name, s.family, s.parameters, s.sound, s.complexity, s.source) for s in all_strategies()]


def all_strategies(family: str | None = None) -> list[AbstractStrategy]:
    """One object per strategy, of one family or of all."""
    if family is not None and family not in FAMILIES:
        raise StrategyError(f"unknown family {family!r}; families: {', '.join(FAMILIES)}")
    return [cls() for cls in BUILT_IN if family in (None, cls.family)]


def strategy(name: str, **parameters: Any) -> AbstractStrategy:
    """Recreate a strategy from its name and parameters."""
    for cls in BUILT_IN:
        if cls.name == name:
            try:
                return cls(**parameters)
            except TypeError as error:
                raise StrategyError(f"strategy {name!r} does not take these parameters: {error}") from None
    raise StrategyError(f"unknown strategy {name!r}; known strategies: {', '.join(cls.name for cls in BUILT_IN)}")
