"""What the paper ran: five configurations, and the proofs to compare."""

from __future__ import annotations

from dataclasses import dataclass

from compactproofs.errors import SweepError
from compactproofs.strategies.base import AbstractStrategy
from compactproofs.strategies.registry import DEFAULT, all_strategies
from compactproofs.training.recipe import Recipe

SEEDS = 151
"""Models per configuration in the paper."""


@dataclass(frozen=True)
class Configuration:
    """One kind of model."""

    name: str
    recipe: Recipe


CONFIGURATIONS = (
    Configuration("k4", Recipe(n_ctx=4, d_vocab=64)),
    Configuration("k5", Recipe(n_ctx=5, d_vocab=64)),
    Configuration("k10", Recipe(n_ctx=10, d_vocab=64)),
    Configuration("k20", Recipe(n_ctx=20, d_vocab=64)),
    Configuration("k10-v128", Recipe(n_ctx=10, d_vocab=128)),
)
"""Quickest first."""


def configurations(name: str) -> tuple[Configuration, ...]:
    """The configuration of this name, or all five."""
    if name == "all":
        return CONFIGURATIONS
    found = tuple(each for each in CONFIGURATIONS if each.name == name)
    if not found:
        raise SweepError(f"unknown configuration {name!r}; known: {', '.join(each.name for each in CONFIGURATIONS)}, all")
    return found


def reproduced_strategies() -> list[AbstractStrategy]:
    """Brute force, cubic, the hundred subcubic ones as published and repaired, fifty with the envelope, and the named threshold proofs.

    The portfolio comes last: it starts from what the others have found.
    """
    named = [s for s in all_strategies(variant="both") if s.family != "threshold" or s.label == s.name]
    return [s for s in named if s.name != DEFAULT] + [s for s in named if s.name == DEFAULT]
