"""Every strategy there is, in one visible table. A name and its parameters recreate a strategy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from compactproofs.bounds.direct_path import DirectPath
from compactproofs.bounds.low_rank_scores import AttentionError
from compactproofs.errors import StrategyError
from compactproofs.strategies.base import AbstractStrategy
from compactproofs.strategies.brute_force import BruteForce
from compactproofs.strategies.cubic import Cubic
from compactproofs.strategies.subcubic import PUBLISHED_QUERY_HANDLINGS, QueryHandling, Subcubic
from compactproofs.strategies.threshold import (
    EXACT,
    ThresholdBest,
    ThresholdBlocks,
    ThresholdCubic,
    ThresholdCubicPooled,
    ThresholdExactOutput,
    ThresholdLowRank,
    ThresholdNear,
    ThresholdNearBlocks,
    ThresholdQuadraticPooled,
    ThresholdQuartic,
)
from compactproofs.text import did_you_mean

BUILT_IN: tuple[type[AbstractStrategy], ...] = (
    BruteForce,
    Cubic,
    Subcubic,
    ThresholdBest,
    ThresholdExactOutput,
    ThresholdQuartic,
    ThresholdCubic,
    ThresholdCubicPooled,
    ThresholdBlocks,
    ThresholdQuadraticPooled,
    ThresholdNear,
    ThresholdNearBlocks,
    ThresholdLowRank,
)
"""Strategy classes, cheapest understanding first."""

DEFAULT = "threshold-best"
"""What `prove` runs if no strategy is named."""

FAMILIES = tuple(dict.fromkeys(cls.family for cls in BUILT_IN))

VARIANTS = ("repaired", "published", "both")
"""Of the paper's subcubic strategies: sound, as the authors' code computes them, or each."""


@dataclass(frozen=True)
class StrategyInfo:
    """One row of `compactproofs strategies`."""

    name: str
    label: str
    family: str
    parameters: dict[str, Any]
    variant: str | None
    sound: bool
    complexity: str
    source: str

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


def strategies(variant: str = "both") -> list[StrategyInfo]:
    """What there is, with complexity, soundness and parameters.

    Example:
        >>> rows = strategies()
        >>> len(rows), sum(row.sound for row in rows)
        (321, 221)
    """
    return [
        StrategyInfo(s.name, s.label, s.family, s.parameters, s.variant, s.sound, s.complexity, s.source)
        for s in all_strategies(variant=variant)
    ]


def require_family(family: str | None) -> None:
    """Raise unless there is such a family."""
    if family is not None and family not in FAMILIES:
        raise StrategyError(f"unknown family {family!r}{did_you_mean(family, FAMILIES)}; families: {', '.join(FAMILIES)}")


def all_strategies(family: str | None = None, variant: str = "repaired") -> list[AbstractStrategy]:
    """One object per strategy, of one family or of all."""
    require_family(family)
    _require_variant(variant)
    everything: list[AbstractStrategy] = [BruteForce(), Cubic(), *_subcubic(variant), *_threshold()]
    return [s for s in everything if family in (None, s.family)]


def strategy(name: str, **parameters: Any) -> AbstractStrategy:
    """Recreate a strategy from its name and parameters, or from its label.

    Example:
        >>> strategy("subcubic/max_diff_exact/svd/envelope") == Subcubic("max_diff_exact", "svd", "envelope")
        True
    """
    name, *choices = name.split("/")
    for cls in BUILT_IN:
        if cls.name == name:
            try:
                return cls(*choices, **parameters)
            except TypeError as error:
                raise StrategyError(f"strategy {name!r} does not take these parameters: {error}") from None
    names = [cls.name for cls in BUILT_IN]
    raise StrategyError(f"unknown strategy {name!r}{did_you_mean(name, names) or ';'} known strategies: {', '.join(names)}")


def named_strategies(names: Sequence[str], variant: str = "repaired") -> list[AbstractStrategy]:
    """The strategies with these names or labels; of the paper's subcubic ones, the variants asked for."""
    _require_variant(variant)
    found: list[AbstractStrategy] = []
    for name in names:
        chosen = strategy(name)
        published = isinstance(chosen, Subcubic) and chosen.query_handling is not QueryHandling.ENVELOPE
        if variant != "published" or not published:
            found.append(chosen)
        if variant != "repaired" and published:
            found.append(strategy(name, repaired=False))
    return found


def _require_variant(variant: str) -> None:
    if variant not in VARIANTS:
        raise StrategyError(f"unknown variant {variant!r}; variants: {', '.join(VARIANTS)}")


def _subcubic(variant: str) -> list[AbstractStrategy]:
    repaired = [Subcubic(*choice) for choice in product(DirectPath, AttentionError, QueryHandling)]
    published = [Subcubic(*choice, repaired=False) for choice in product(DirectPath, AttentionError, PUBLISHED_QUERY_HANDLINGS)]
    chosen = {"repaired": repaired, "published": published, "both": repaired + published}[variant]
    return list(chosen)


def _threshold() -> list[AbstractStrategy]:
    """The named ones, and the pooled cubic one with every way to bound the direct path and attention. (The others take them too.)"""
    named: list[AbstractStrategy] = [
        *(ThresholdBest(), ThresholdExactOutput(), ThresholdQuartic(), ThresholdCubic()),
        *(ThresholdBlocks(), ThresholdQuadraticPooled()),
        *(ThresholdNear(), ThresholdNearBlocks(), ThresholdLowRank()),
    ]
    return named + [ThresholdCubicPooled(*choice) for choice in product((EXACT, *DirectPath), AttentionError)]
