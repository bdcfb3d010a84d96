"""Our means beside the published ones, strategy by strategy."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from compactproofs.results.published import Published, published_for
from compactproofs.strategies.subcubic import QueryHandling
from compactproofs_experiments.reproduction.summaries import Configuration, Runs, Spread, spread

FAR = 3.0
"""Means further apart than so many standard errors of their difference disagree."""

NEGLIGIBLE = 0.001
"""A difference of accuracies that matters to nobody, however small the spread is."""

NEAR = 2.0
"""Published standard deviations; for a weaker statement, and for a single model, which has no standard error."""


@dataclass(frozen=True)
class Comparison:
    """One published strategy. What is None was not run, or gave no bound for any model."""

    published: Published
    ours: Spread | None
    """What the authors' code computes, on our models. Brute force and cubic are sound as published, so this is the proof itself."""
    estimated: bool
    """True if brute force was out of reach for some model, and `ours` is the measured accuracy, as the published number is."""
    repaired: Spread | None
    """The sound version of the same strategy."""
    envelope: Spread | None
    """The sound version with the query handling `envelope`."""

    @property
    def difference(self) -> float | None:
        """Our mean minus the published one."""
        return None if self.ours is None else self.ours.mean - self.published.bound

    @property
    def distance(self) -> float | None:
        """The same in published standard deviations."""
        return None if self.difference is None or not self.published.bound_std else self.difference / self.published.bound_std

    @property
    def standard_errors(self) -> float | None:
        """The same in standard errors of the difference of the two means; None for a single model."""
        if self.ours is None or self.difference is None or self.ours.std is None:
            return None
        error = sqrt(self.published.bound_std**2 / self.published.seeds + self.ours.std**2 / self.ours.n)
        return self.difference / error if error > 0 else None

    @property
    def near(self) -> bool:
        """Whether the means are within `NEAR` published standard deviations; without any of those, equal."""
        return self.difference == 0 or (self.distance is not None and abs(self.distance) <= NEAR)

    @property
    def agrees(self) -> bool:
        """Whether chance explains the difference of the means, or it is negligible."""
        if self.difference is None:
            return False
        if abs(self.difference) < NEGLIGIBLE:
            return True
        return self.near if self.standard_errors is None else abs(self.standard_errors) <= FAR


def compare(configuration: Configuration) -> list[Comparison]:
    """Every strategy published for this configuration, the largest published bound first."""
    published = published_for(configuration.n_ctx, configuration.d_vocab)
    return sorted((_compare(configuration, row) for row in published), key=lambda c: (-c.published.bound, c.published.label))


def _compare(configuration: Configuration, published: Published) -> Comparison:
    def bounds(label: str, variant: str | None) -> Spread | None:
        return _spread(configuration.find(label, variant))

    if not published.choices:
        runs = configuration.find(published.label, None)
        estimated = published.label == "brute-force" and (runs is None or len(runs.bounds) < len(configuration.models))
        ours = spread(a.value for a in configuration.accuracies.values()) if estimated else _spread(runs)
        return Comparison(published, ours, estimated, None, None)
    envelope = "/".join(("subcubic", *published.choices[:2], QueryHandling.ENVELOPE))
    return Comparison(
        published,
        ours=bounds(published.label, "published"),
        estimated=False,
        repaired=bounds(published.label, "repaired"),
        envelope=bounds(envelope, "repaired"),
    )


def _spread(runs: Runs | None) -> Spread | None:
    return None if runs is None else spread(runs.bounds.values())
