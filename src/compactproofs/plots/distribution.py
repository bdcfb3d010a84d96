"""Many models at once: distributions of what was proven, and how bounds depend on the singular ratio of EQKE."""

from __future__ import annotations

from typing import Any

import numpy as np

from compactproofs.plots.interactive import Figure, figure_of
from compactproofs.plots.marks import family_of
from compactproofs.results.models import ModelResults

QUANTITIES = (
    "accuracy",
    "normalised cubic bound",
    "normalised best subcubic bound",
    "normalised best threshold bound",
    "singular ratio of EQKE",
)


def quantities(results: ModelResults) -> dict[str, float]:
    """The quantities of the paper's distribution table for one model."""

    def best(family: str) -> float:
        found = [results.normalised(p) for p in results.proofs if p["status"] == "proven" and family_of(p) == family]
        return max(found, default=float("nan"))

    ratio = float("nan") if results.singular_ratio is None else results.singular_ratio
    accuracy = float("nan") if results.accuracy is None else results.true_accuracy
    values = (accuracy, best("cubic"), best("subcubic"), best("threshold"), ratio)
    return dict(zip(QUANTITIES, values, strict=True))


def proven_share(results: ModelResults) -> float:
    """The best bound over the accuracy: how much of what a model gets right is proven."""
    return 0.0 if results.best is None else results.normalised(results.best)


def distribution_table(models: list[ModelResults]) -> list[dict[str, Any]]:
    """For each quantity: mean, standard deviation, least, quartiles, greatest, and the model nearest to the median."""
    table = [quantities(model) for model in models]
    rows = []
    for name in QUANTITIES:
        values = np.array([row[name] for row in table])
        known = values[np.isfinite(values)]
        if len(known) == 0:
            continue
        least, first, median, third, most = np.quantile(known, [0, 0.25, 0.5, 0.75, 1])
        nearest = int(np.nanargmin(np.abs(values - median)))
        numbers = {"mean": known.mean(), "std": known.std(), "min": least, "25 %": first, "median": median, "75 %": third, "max": most}
        rows.append({"quantity": name, **{key: float(x) for key, x in numbers.items()}, "typical": models[nearest].name})
    return rows


def box_plots(models: list[ModelResults]) -> dict[str, Figure]:
    """A figure for each quantity that is known of any model: every model a point, and a box around them where they are enough for one."""
    table = [quantities(model) for model in models]
    figures = {}
    for name in QUANTITIES:
        known = [(row[name], model.name) for row, model in zip(table, models, strict=True) if np.isfinite(row[name])]
        if known:
            values, names = zip(*known, strict=True)
            figures[name] = _points(list(values), list(names), name)
    return figures


FEWEST_FOR_A_BOX = 5
"""Quartiles of fewer models say nothing."""


def _points(values: list[float], names: list[str], quantity: str) -> Figure:
    shown = {"text": names, "hovertemplate": "%{text}<br>%{x:.8g}<extra></extra>", "marker": {"size": 6, "color": "#0072b2"}}
    data: dict[str, Any]
    if len(values) < FEWEST_FOR_A_BOX:
        data = {"type": "scatter", "mode": "markers", "x": values, "y": [0] * len(values), **shown}
    else:
        data = {"type": "box", "x": values, "name": "", "boxpoints": "all", "jitter": 0.5, "pointpos": 0, "hoveron": "points", **shown}
    figure = figure_of([data], quantity, "")
    figure["layout"]["yaxis"] |= {"showticklabels": False, "zeroline": False, "showgrid": False}
    figure["layout"]["xaxis"]["nticks"] = 5
    return figure


def singular_ratio(models: list[ModelResults]) -> Figure:
    """Normalised bounds of each attention error against the singular ratio of EQKE, with a linear fit for `svd`."""
    points: dict[str, list[tuple[float, float]]] = {}
    for model in models:
        ratio = quantities(model)["singular ratio of EQKE"]
        best: dict[str, float] = {}
        for proof in model.proofs:
            error = proof["parameters"].get("attention_error")
            if proof["status"] == "proven" and proof["family"] == "subcubic" and "exact_EQKE" not in str(error):
                best[error] = max(best.get(error, 0.0), model.normalised(proof))
        for error, bound in best.items():
            if np.isfinite(ratio):
                points.setdefault(error, []).append((ratio, bound))
    data: list[Figure] = []
    for number, (error, found) in enumerate(sorted(points.items())):
        across, up = zip(*found, strict=True)
        data.append({"type": "scatter", "mode": "markers", "name": error, "x": across, "y": up, "marker": {"symbol": number, "size": 6}})
    if len(points.get("svd", [])) > 2:
        x, y = np.array(points["svd"]).T
        slope, start = np.polyfit(x, y, 1)
        explained = float(np.corrcoef(x, y)[0, 1] ** 2)
        ends = [float(x.min()), float(x.max())]
        name = f"svd: {slope:.2g} x + {start:.3f}, R² = {explained:.2f}"
        data.append({"type": "scatter", "mode": "lines", "name": name, "x": ends, "y": [slope * e + start for e in ends]})
    return figure_of(data, "first / second singular value of EQKE", "best bound / accuracy")
