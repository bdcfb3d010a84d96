"""Figures as plotly specifications (plain dictionaries): the page draws them, nothing is drawn here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compactproofs.plots.marks import FAMILIES, Mark, frontier, marks_of
from compactproofs.results.models import ModelResults
from compactproofs.results.published import Published, published_for

Figure = dict[str, Any]

_MANY = 500
_MOST_DRAWN_ONE_BY_ONE = 5000
"""Marks; more are left to the graphics card."""

DIVERGING = [[0, "#2166ac"], [0.25, "#92c5de"], [0.5, "#f7f7f7"], [0.75, "#f4a582"], [1, "#b2182b"]]


def scatter(marks: Sequence[Mark], quantity: str, *, log_y: bool = False) -> Figure:
    """Marks by family, against FLOPs."""
    data: list[Figure] = []
    size = 9 if len(marks) < _MANY else 5
    for family, (title, symbol, colour) in FAMILIES.items():
        mine = [mark for mark in marks if mark.family == family]
        if mine:
            data.append(
                {
                    "type": "scattergl" if len(marks) > _MOST_DRAWN_ONE_BY_ONE else "scatter",
                    "mode": "markers",
                    "name": title,
                    "x": [mark.flops for mark in mine],
                    "y": [float(f"{mark.value:.6g}") for mark in mine],
                    "text": [mark.label for mark in mine],
                    "hovertemplate": f"%{{text}}<br>FLOPs %{{x:.3g}}<br>{quantity} %{{y:.5g}}<extra>{title}</extra>",
                    "marker": {
                        "symbol": symbol,
                        "size": size,
                        "color": colour,
                        "line": {"width": 1, "color": colour},
                    },
                }
            )
    figure = figure_of(data, "FLOPs to check (log scale)", quantity + (" (log scale)" if log_y else ""), log_x=True, log_y=log_y)
    for trace in data:
        if trace["name"] == FAMILIES["brute-force"][0] and len(data) > 1:
            trace["visible"] = "legendonly"  # so far away that it would squeeze all others together
    return figure


def pareto(models: Sequence[ModelResults]) -> Figure:
    """Tightness against length, ours and the published means; of one model with the frontier."""
    marks = marks_of(models, ModelResults.normalised)
    figure = scatter(marks, "bound / true accuracy")
    if len(models) == 1:
        short = [mark for mark in marks if mark.family != "brute-force"]
        best = frontier(short or marks)
        line = {"shape": "hv", "width": 1.5, "dash": "dot", "color": "#888888"}
        trace = {"type": "scatter", "mode": "lines", "name": "frontier of the proofs", "line": line, "hoverinfo": "skip"}
        if len(best) > 1:
            figure["data"].append({**trace, "x": [mark.flops for mark in best], "y": [mark.value for mark in best]})
    rows = published_beside(models)
    if rows:
        figure["data"].append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": f"the paper's means over {max(row.seeds for row in rows)} models",
                "x": [row.flops for row in rows],
                "y": [row.normalized for row in rows],
                "text": [row.label for row in rows],
                "hovertemplate": "%{text}<br>FLOPs %{x:.3g}<br>bound / accuracy %{y:.4f}<extra>published</extra>",
                "marker": {"symbol": "x-thin", "size": 7, "line": {"width": 1.2, "color": "#999999"}},
            }
        )
    return figure


def published_beside(models: Sequence[ModelResults]) -> list[Published]:
    """The published means that are drawn beside these models: of the same kind and sizes, without brute force."""
    sizes = {(model.sizes["n_ctx"], model.sizes["d_vocab"]) for model in models}
    comparable = len(sizes) == 1 and all(model.of_the_papers_kind for model in models)
    return [row for row in published_for(*min(sizes)) if row.flops is not None and row.label != "brute-force"] if comparable else []


def unexplained(models: Sequence[ModelResults]) -> Figure:
    """Unexplained dimensions against length."""
    return scatter(marks_of(models, lambda _, proof: proof["unexplained_dimensions"]), "unexplained dimensions", log_y=True)


def losses(results: ModelResults) -> Figure:
    """What each explored strategy does not prove, by the largest token of the sequence; those that prove everything are left out."""
    data = []
    for number, (label, found) in enumerate(results.explorer.get("strategies", {}).items()):
        lost = [sum(row) for row in found["lost"]]
        if not any(lost):
            continue
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": label,
                "x": list(range(len(lost))),
                "y": [x or None for x in lost],
                "marker": {"size": 4},
                "line": {"dash": ["solid", "dot", "dash", "longdash", "dashdot", "longdashdot", "solid"][number % 7], "width": 2},
                "hovertemplate": "largest token %{x}<br>%{y:.2e} of all sequences not proven<extra>" + label + "</extra>",
            }
        )
    return figure_of(data, "largest token of the sequence", "fraction of all sequences not proven (log scale)", log_y=True)


def table_heatmaps(results: ModelResults) -> dict[str, Figure]:
    """The five tables; score tables share one diverging scale, value tables another."""
    shared = {name: _largest(results, ("EQKE", "EQKP")) for name in ("EQKE", "EQKP")}
    shared |= {name: _largest(results, ("EVOU", "PVOU", "EU")) for name in ("EVOU", "PVOU", "EU")}
    axes = {
        "EQKE": ("key token", "query token"),
        "EQKP": ("position", "query token"),
        "EVOU": ("output", "token attended to"),
        "PVOU": ("output", "position"),
        "EU": ("output", "query token"),
    }
    return {name: _heatmap(results.tables[name], shared[name], *titles) for name, titles in axes.items()}


def singular_vectors(results: ModelResults) -> dict[str, Figure]:
    """The singular values of EQKE, and its first two singular vectors times the roots of their values."""
    U, S, Vh = np.linalg.svd(np.asarray(results.tables["EQKE"], dtype=np.float64))
    sign = 1.0 if U[:, 0].mean() >= 0 else -1.0
    U, Vh = U * sign, Vh * sign
    values = {"type": "bar", "x": list(range(1, len(S) + 1)), "y": _rounded(np.maximum(S, 1e-30)), "marker": {"color": "#0072b2"}}

    def lines(vectors: np.ndarray, axis: str) -> Figure:
        data = [
            {
                "type": "scatter",
                "mode": "lines",
                "name": f"number {n + 1}",
                "x": list(range(len(vectors))),
                "y": _rounded(vectors[:, n] * np.sqrt(S[n])),
                "line": {"dash": ["solid", "dot"][n], "width": 2},
            }
            for n in range(min(2, len(S)))
        ]
        return figure_of(data, axis, "component")

    return {
        "singular values": figure_of([values], "number", "singular value of EQKE (log scale)", log_y=True),
        "query directions": lines(U, "query token"),
        "size directions": lines(Vh.T, "key token"),
    }


HISTOGRAMS = {
    "attention_slope": "Attention: difference of scores per step between tokens, weighted by sequences; positive is right",
    "EVOU_diagonal_margin": "Copying: largest other output minus the token's own, weighted by sequences; negative is right",
    "EVOU_row_diff": "Values: largest minus smallest output of each row of EVOU",
    "gap": "Gaps that the subcubic search needs, weighted by sequences",
}
"""What the histograms of the measurements show; others are entries of residual factors."""


def histograms(measurements: dict[str, Any]) -> dict[str, tuple[str, Figure]]:
    """A caption and a figure for each histogram; those of residual factors have a normal distribution beside them."""
    found = {}
    for name, measured in measurements.get("histograms", {}).items():
        edges, weights = np.asarray(measured["bins"], dtype=np.float64), np.asarray(measured["weights"], dtype=np.float64)
        centres = _rounded((edges[:-1] + edges[1:]) / 2)
        data: list[Figure] = [{"type": "bar", "name": "measured", "x": centres, "y": _rounded(weights), "marker": {"color": "#0072b2"}}]
        if measured.get("expected"):
            counted = float(measured.get("total") or 0) or 1.0
            expected = np.asarray(measured["expected"], dtype=np.float64) / counted  # shares, as the bars are
            line = {"dash": "dot", "color": "#d55e00"}
            data.append({"type": "scatter", "mode": "lines", "name": "normal", "x": centres, "y": _rounded(expected), "line": line})
        figure = figure_of(data, name.replace("_", " "), "share")
        figure["layout"]["bargap"] = 0.02
        found[name] = (
            HISTOGRAMS.get(name, f"Entries of the residual factor {name}, and a normal distribution of the same mean and spread"),
            figure,
        )
    return found


def ablations(measurements: dict[str, Any]) -> Figure | None:
    """Accuracy with every subset of the tables set to zero; None if it was not measured."""
    results = measurements.get("ablations", {}).get("results")
    if not results:
        return None
    ordered = sorted(results, key=lambda r: -(r["accuracy"] or 0.0))
    names = [" ".join(r["zeroed"]) or "nothing" for r in ordered]
    bars = {"type": "bar", "orientation": "h", "y": names, "x": [r["accuracy"] for r in ordered], "marker": {"color": "#0072b2"}}
    figure = figure_of([bars], "accuracy", "tables set to zero")
    figure["layout"]["xaxis"]["range"] = [0, 1]
    figure["layout"]["yaxis"] |= {"type": "category", "autorange": "reversed", "dtick": 1, "tickfont": {"size": 9}}
    return figure


def _largest(results: ModelResults, names: tuple[str, ...]) -> float:
    return max(float(np.abs(np.nan_to_num(results.tables[name])).max()) for name in names) or 1.0


def _heatmap(table: np.ndarray, largest: float, x: str, y: str) -> Figure:
    data = {
        "type": "heatmap",
        "z": [_rounded(row) for row in np.asarray(table, dtype=np.float64)],
        "zmin": -largest,
        "zmax": largest,
        "colorscale": DIVERGING,
        "hovertemplate": f"{y} %{{y}}<br>{x} %{{x}}<br>%{{z}}<extra></extra>",
        "colorbar": {"thickness": 12},
    }
    figure = figure_of([data], x, y)
    figure["layout"]["yaxis"]["autorange"] = "reversed"
    return figure


def _rounded(x: np.ndarray) -> list[float]:
    return [float(f"{value:.4g}") if np.isfinite(value) else 0.0 for value in np.asarray(x, dtype=np.float64).ravel().tolist()]


def figure_of(data: list[Figure], x: str, y: str, *, log_x: bool = False, log_y: bool = False) -> Figure:
    """Traces with titled axes, in the page's style."""
    layout = {
        "xaxis": {"title": {"text": x}, "type": "log" if log_x else "linear"},
        "yaxis": {"title": {"text": y}, "type": "log" if log_y else "linear"},
        "margin": {"l": 60, "r": 10, "t": 36, "b": 50},
        "legend": {"orientation": "h", "y": -0.25},
        "hovermode": "closest",
    }
    return {"data": data, "layout": layout}
