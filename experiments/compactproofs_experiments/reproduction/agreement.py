"""A configuration beside the published results: everything that the pages say about agreement is derived from here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from compactproofs.strategies.subcubic import QueryHandling
from compactproofs_experiments.reproduction.comparison import FAR, Comparison, compare
from compactproofs_experiments.reproduction.disagreement import Disagreement, disagreements
from compactproofs_experiments.reproduction.markdown import count
from compactproofs_experiments.reproduction.soundness import Excess, contradictory_upper_bounds, excess
from compactproofs_experiments.reproduction.summaries import Configuration, Runs, best_by_model


@dataclass(frozen=True)
class Agreement:
    """One configuration beside the published results."""

    configuration: Configuration
    comparisons: tuple[Comparison, ...]
    published: Excess
    """What the authors' code computes, against the truth."""
    sound: Excess
    """Our proofs, against the truth."""
    upper_bounds_too_small: int
    """Models whose proven upper bound is below the exact count."""

    @property
    def compared(self) -> list[Comparison]:
        """Strategies with both means."""
        return [c for c in self.comparisons if c.ours is not None]

    @property
    def agreeing(self) -> int:
        """How many means differ by no more than chance explains, or by next to nothing."""
        return sum(c.agrees for c in self.compared)

    @cached_property
    def disagreements(self) -> list[Disagreement]:
        """The others, in groups."""
        return disagreements(self.comparisons)

    @property
    def in_short(self) -> str:
        """A sentence or two."""
        if not self.compared:
            return "none of the published strategies was run." if self.comparisons else "nothing was published about this configuration."
        text = f"{self.agreeing} of {count(len(self.compared), 'mean')} within {FAR:g} standard errors{self._exceptions}."
        if not self.published.against_exact + self.published.against_certificate:
            return text
        if not self.published.exceeding:
            return f"{text} No value of the authors' computation exceeds what is known of the truth."
        how_many = f"{self.published.exceeding:,} of {count(self.published.bounds, 'value')}"
        return f"{text} {how_many} of the authors' computation exceed the truth, on {count(self.published.models, 'model')}."

    @property
    def _exceptions(self) -> str:
        beyond = len(self.compared) - self.agreeing
        if not beyond:
            return ""
        handlings, sides = {group.handling for group in self.disagreements}, {group.higher for group in self.disagreements}
        which = "more" if sides == {True} else "less" if sides == {False} else "more or less"
        text = f"; for {count(beyond, 'other')} we get {which}"
        if len(handlings) == 1 and None not in handlings:
            text += f", all with query handling `{self.disagreements[0].handling}`"
        return text


def agreement(configuration: Configuration) -> Agreement:
    """Compare one configuration with what was published about it."""
    return Agreement(
        configuration,
        comparisons=tuple(compare(configuration)),
        published=excess(configuration, sound=False),
        sound=excess(configuration, sound=True),
        upper_bounds_too_small=contradictory_upper_bounds(configuration),
    )


@dataclass(frozen=True)
class Pair:
    """One model and one strategy: the bound as published and as repaired."""

    model: str
    label: str
    published: float
    repaired: float


def pairs(configuration: Configuration, handling: QueryHandling) -> list[Pair]:
    """Every model and strategy of a query handling with both bounds."""
    found = []
    for runs in configuration.runs:
        repaired = configuration.find(runs.label, "repaired")
        if runs.variant == "published" and runs.choices[2:] == (handling,) and repaired is not None:
            both = runs.bounds.keys() & repaired.bounds.keys()
            found += [Pair(key, runs.label, runs.bounds[key], repaired.bounds[key]) for key in sorted(both)]
    return found


def reach(runs: Iterable[Runs]) -> dict[str, float]:
    """The best bound of each model among these strategies."""
    return best_by_model(r.bounds for r in runs)
