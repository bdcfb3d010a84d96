"""Figures as plotly specifications (plain dictionaries): the page draws them, nothing is drawn here."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compactproofs.reports.published import published_for
from compactproofs.reports.results import ModelResults

Figure = dict[str, Any]

FAMILIES = {
    "brute-force": ("brute force", "square", "#777777"),
    "cubic": ("cubic", "diamond", "#0072b2"),
    "subcubic": ("subcubic, repaired", "circle", "#e69f00"),
    "published": ("subcubic, as published (not proofs)", "circle-open", "#cc79a7"),
    "threshold": ("threshold", "triangle-up", "#009e73"),
}
"""Name, marker and colour of each family: told apart by shape as well as by colour (a palette for colour-blind readers)."""

DIVERGING = [[0, "#2166ac"], [0.25, "#92c5de"], [0.5, "#f7f7f7"], [0.75, "#f4a582"], [1, "#b2182b"]]


def kind(proof: dict[str, Any]) -> str:
    """The family under which a proof is drawn."""
    return "published" if proof["variant"] == "published" else str(proof["family"])


def true_accuracy(results: ModelResults) -> float:
    """Exact, or measured in a sample."""
    return float(results.summary["accuracy"]["accuracy"])


def normalised(results: ModelResults, proof: dict[str, Any]) -> float:
    """A bound over the true accuracy; the bound itself if that is zero."""
    return float(proof["lower"]) / (true_accuracy(results) or 1.0)


def pareto(results: ModelResults) -> Figure:
    """Tightness against length, ours and the published means."""
    usable = [p for p in results.proofs if p["status"] in ("proven", "computed")]
    data = [_family_trace(family, [p for p in usable if kind(p) == family], results) for family in FAMILIES]
    frontier = _frontier([p for p in usable if p["status"] == "proven"])
    data.append(
        {
            "type": "scatter",
            "mode": "lines",
            "name": "frontier",
            "x": [p["flops"] for p in frontier],
            "y": [normalised(results, p) for p in frontier],
            "line": {"shape": "hv", "width": 1.5, "dash": "dot", "color": "#888888"},
            "hoverinfo": "skip",
        }
    )
    rows = [row for row in published_for(results.summary["n_ctx"], results.summary["d_vocab"]) if row.flops is not None]
    if rows:
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "paper's means over 151 models",
                "x": [row.flops for row in rows],
                "y": [row.normalized for row in rows],
                "text": [row.label for row in rows],
                "hovertemplate": "%{text}<br>FLOPs %{x:.3g}<br>bound / accuracy %{y:.4f}<extra>published</extra>",
                "marker": {"symbol": "x-thin", "size": 7, "line": {"width": 1.2, "color": "#999999"}},
            }
        )
    figure = figure_of([d for d in data if d["x"]], "FLOPs to check (log scale)", "bound / true accuracy", log_x=True)
    return without_brute_force(figure, usable)


def without_brute_force(figure: Figure, proofs: list[dict[str, Any]]) -> Figure:
    """Start with the range of all other proofs: brute force is so long that it would squeeze them together."""
    short = [p["flops"] for p in proofs if p["family"] != "brute-force"]
    if short:
        figure["layout"]["xaxis"]["range"] = [math.log10(max(min(short), 1)) - 0.1, math.log10(max(max(short), 2)) + 0.4]
    return figure


def unexplained(results: ModelResults) -> Figure:
    """Unexplained dimensions against length."""
    usable = [p for p in results.proofs if p["status"] in ("proven", "computed")]
    data = []
    for family, (title, symbol, colour) in FAMILIES.items():
        mine = [p for p in usable if kind(p) == family]
        if mine:
            data.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": title,
                    "x": [p["flops"] for p in mine],
                    "y": [p["unexplained_dimensions"] for p in mine],
                    "text": [p["label"] for p in mine],
                    "hovertemplate": "%{text}<br>FLOPs %{x:.3g}<br>unexplained %{y}<extra></extra>",
                    "marker": {"symbol": symbol, "size": 8, "color": colour},
                }
            )
    return figure_of(data, "FLOPs to check (log scale)", "unexplained dimensions (log scale)", log_x=True, log_y=True)


def losses(results: ModelResults) -> Figure:
    """What each explored strategy does not prove, by the largest token of the sequence."""
    data = []
    for number, (label, found) in enumerate(results.explorer.get("strategies", {}).items()):
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": label,
                "x": list(range(len(found["lost"]))),
                "y": [sum(row) for row in found["lost"]],
                "line": {"dash": ["solid", "dot", "dash", "longdash", "dashdot", "longdashdot", "solid"][number % 7], "width": 2},
                "hovertemplate": "largest token %{x}<br>%{y:.2e} of all sequences not proven<extra>" + label + "</extra>",
            }
        )
    return figure_of(data, "largest token of the sequence", "fraction of all sequences not proven")


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
            expected = np.asarray(measured["expected"], dtype=np.float64)
            line = {"dash": "dot", "color": "#d55e00"}
            data.append({"type": "scatter", "mode": "lines", "name": "normal", "x": centres, "y": _rounded(expected), "line": line})
        figure = figure_of(data, name.replace("_", " "), "weight")
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
    bars = {"type": "bar", "x": names, "y": [r["accuracy"] for r in ordered], "marker": {"color": "#0072b2"}}
    return figure_of([bars], "tables set to zero", "accuracy")


def _family_trace(family: str, proofs: list[dict[str, Any]], results: ModelResults) -> Figure:
    title, symbol, colour = FAMILIES[family]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": title,
        "x": [p["flops"] for p in proofs],
        "y": [normalised(results, p) for p in proofs],
        "text": [p["label"] for p in proofs],
        "hovertemplate": "%{text}<br>FLOPs %{x:.3g}<br>bound / accuracy %{y:.5f}<extra>" + title + "</extra>",
        "marker": {"symbol": symbol, "size": 9, "color": colour, "line": {"width": 1, "color": colour}},
    }


def _frontier(proofs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    best, kept = -1.0, []
    for proof in sorted(proofs, key=lambda p: (p["flops"], -p["lower"])):
        if proof["lower"] > best:
            kept.append(proof)
            best = proof["lower"]
    return kept


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
        "margin": {"l": 60, "r": 10, "t": 10, "b": 50},
        "legend": {"orientation": "h", "y": -0.3},
        "hovermode": "closest",
    }
    return {"data": data, "layout": layout}
