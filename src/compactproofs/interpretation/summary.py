"""Statistics over many models: mean, spread and quartiles by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compactproofs.interpretation.interpretation import Interpretation
from compactproofs.interpretation.numbers import Statistics, finite, mean_and_std


@dataclass(frozen=True)
class Summary:
    """One statistic over many models."""

    models: int
    """Models for which it has a value; the numbers below are over those. None if there are none."""
    mean: float | None
    std: float | None
    """Of a sample (divided by models - 1); None for fewer than two models."""
    minimum: float | None
    lower_quartile: float | None
    median: float | None
    upper_quartile: float | None
    maximum: float | None


def summarise(models: Sequence[Interpretation]) -> dict[str, Summary]:
    """Every statistic that any of the models has, in order."""
    return summarise_statistics([model.statistics for model in models])


def summarise_statistics(models: Sequence[Statistics]) -> dict[str, Summary]:
    """The same from the statistics alone."""
    names = dict.fromkeys(name for statistics in models for name in statistics)
    return {name: _summary([statistics.get(name) for statistics in models]) for name in names}


def _summary(values: list[float | None]) -> Summary:
    known = np.array([value for value in values if value is not None])
    n = len(known)
    if not n:
        return Summary(0, None, None, None, None, None, None, None)
    with np.errstate(all="ignore"):
        mean, std = mean_and_std(known)
        sample_std = finite(std * np.sqrt(n / (n - 1))) if n > 1 else None
        quartiles = (finite(x) for x in np.quantile(known, [0.0, 0.25, 0.5, 0.75, 1.0]))
        return Summary(n, finite(mean), sample_std, *quartiles)
