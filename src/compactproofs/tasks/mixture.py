"""Mixtures: several distributions, and how much each of them counts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from compactproofs.errors import TaskError
from compactproofs.tasks.chains import Chain
from compactproofs.tasks.distributions import Product


@dataclass(frozen=True)
class Mixture:
    """Several distributions, each with its share: first one of them is chosen, then a sequence from it."""

    parts: tuple[tuple[Fraction, Product | Chain], ...]
    name: str = ""
    """How the theorem calls it."""

    def __post_init__(self) -> None:
        if not self.parts or any(share <= 0 for share, _ in self.parts):
            raise TaskError("a mixture needs parts with positive shares")
