"""How bounds depend on how nearly EQKE has rank one (the paper's `fig:norm-accuracy-vs-singular-ratio`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compactproofs.strategies.subcubic import AttentionError
from compactproofs_experiments.reproduction.groups import NOT_RANK_ONE
from compactproofs_experiments.reproduction.summaries import Configuration, best_by_model

VARIANTS = ("published", "repaired")


@dataclass(frozen=True)
class Fit:
    """A line through bound / accuracy over the singular ratio."""

    models: int
    slope: float
    intercept: float
    explained: float
    """R squared; NaN if the bounds do not vary."""


@dataclass(frozen=True)
class Cloud:
    """For one attention error and variant: the best strategy of each model, over direct paths and query handlings."""

    attention_error: AttentionError
    variant: str
    ratios: tuple[float, ...]
    bounds: tuple[float, ...]
    """Divided by the true accuracies."""

    @property
    def fit(self) -> Fit | None:
        """By least squares; None for fewer than three models or a single ratio."""
        x, y = np.array(self.ratios), np.array(self.bounds)
        if len(x) < 3 or np.ptp(x) == 0:
            return None
        slope, intercept = (float(c) for c in np.polyfit(x, y, 1))
        varies = float(((y - y.mean()) ** 2).sum())
        explained = 1 - float(((y - slope * x - intercept) ** 2).sum()) / varies if varies > 0 else float("nan")
        return Fit(len(x), slope, intercept, explained)


def clouds(configuration: Configuration) -> list[Cloud]:
    """One for each attention error that replaces EQKE by rank one, and variant, that was run."""
    ratios = {model.key: model.singular_ratio for model in configuration.models if model.singular_ratio is not None}
    found = []
    for error in AttentionError:
        for variant in VARIANTS if error is not NOT_RANK_ONE else ():
            runs = [r for r in configuration.runs if r.variant == variant and r.choices[1:2] == (error,)]
            best = {key: y for key, y in best_by_model(map(configuration.normalised, runs)).items() if key in ratios}
            if best:
                found.append(Cloud(error, variant, tuple(ratios[key] for key in best), tuple(best.values())))
    return found
