"""Figures as plotly specifications (plain dictionaries): the page draws them, nothing is drawn here."""

from __future__ import annotations

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
    """What bounds are divided by: exact, or measured in a sample."""
    return float(results.summary["accuracy"]["accuracy"])


def pareto(results: ModelResults) -> Figure:
    """Tightness against length, ours and the published means."""
    truth = true_accuracy(results)
    usable = [p for p in results.proofs if p["status"] in ("proven", "computed")]
    data = [_family_trace(family, [p for p in usable if kind(p) == family], truth) for family in FAMILIES]
    frontier = _frontier([p for p in usable if p["status"] == "proven"])
    data.append(
        {
            "type": "scatter",
            "mode": "lines",
            "name": "frontier",
            "x": [p["flops"] for p in frontier],
            "y": [p["lower"] / truth for p in frontier],
            "line": {"shape": "hv", "width": 1.5, "dash": "dot", "color": "#888888"},
            "hoverinfo": "skip",
        }
    )
    rows = published_for(results.summary["n_ctx"], results.summary["d_vocab"])
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
    return _figure([d for d in data if d["x"]], "FLOPs to check (log scale)", "bound / true accuracy", log_x=True)


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
    return _figure(data, "FLOPs to check (log scale)", "unexplained dimensions (log scale)", log_x=True, log_y=True)


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
    return _figure(data, "largest token of the sequence", "fraction of all sequences not proven")


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
        return _figure(data, axis, "component")

    return {
        "singular values": _figure([values], "number", "singular value of EQKE (log scale)", log_y=True),
        "query directions": lines(U, "query token"),
        "size directions": lines(Vh.T, "key token"),
    }


def margins(results: ModelResults) -> Figure:
    """How far EVOU copies: the largest other output minus the token's own, weighted by sequences with that maximum."""
    EVOU = np.asarray(results.tables["EVOU"], dtype=np.float64)
    n, k = min(EVOU.shape), results.summary["n_ctx"]
    own = EVOU[np.arange(n), np.arange(n)]
    others = np.where(np.eye(n, EVOU.shape[1], dtype=bool), -np.inf, EVOU[:n]).max(axis=1)
    share = [((t + 1) / n) ** k - (t / n) ** k for t in range(n)]
    return _histogram(others - own, share, "largest other output - own output, of EVOU's rows", "fraction of sequences with that maximum")


def attention_steps(results: ModelResults) -> Figure:
    """Attention scores by distance: (EQKE[q, i] - EQKE[q, j]) / (i - j), weighted by sequences with maximum i."""
    EQKE = np.asarray(results.tables["EQKE"], dtype=np.float64)
    v, k = len(EQKE), results.summary["n_ctx"]
    i, j = np.tril_indices(v, -1)
    slopes, weights = [], []
    for q in range(v):
        keep = i >= q
        slopes.append((EQKE[q, i] - EQKE[q, j])[keep] / (i - j)[keep])
        weights.append((((i + 1) / v) ** k - (i / v) ** k)[keep] / np.maximum(i[keep] * (i[keep] + 1), 1))
    return _histogram(np.concatenate(slopes), np.concatenate(weights), "difference of scores per step between tokens", "weight")


def gap_histogram(measurements: dict[str, Any]) -> Figure | None:
    """The gaps that the subcubic search needs, weighted by sequences; None if they were not measured."""
    found = measurements.get("histograms", {}).get("gaps")
    if not found:
        return None
    edges, weights = np.asarray(found["edges"], dtype=float), np.asarray(found["weights"], dtype=float)
    bars = {"type": "bar", "x": _rounded((edges[:-1] + edges[1:]) / 2), "y": _rounded(weights), "marker": {"color": "#0072b2"}}
    return _figure([bars], "gap", "weight")


def _family_trace(family: str, proofs: list[dict[str, Any]], truth: float) -> Figure:
    title, symbol, colour = FAMILIES[family]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": title,
        "x": [p["flops"] for p in proofs],
        "y": [p["lower"] / truth if truth else 0.0 for p in proofs],
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
    figure = _figure([data], x, y)
    figure["layout"]["yaxis"]["autorange"] = "reversed"
    return figure


def _histogram(values: np.ndarray, weights: Any, x: str, y: str) -> Figure:
    finite = np.isfinite(values)
    heights, edges = np.histogram(values[finite], bins=40, weights=np.asarray(weights)[finite])
    total = heights.sum() or 1.0
    data = {"type": "bar", "x": _rounded((edges[:-1] + edges[1:]) / 2), "y": _rounded(heights / total), "marker": {"color": "#0072b2"}}
    figure = _figure([data], x, y)
    figure["layout"]["bargap"] = 0.02
    return figure


def _rounded(x: np.ndarray) -> list[float]:
    return [float(f"{value:.4g}") if np.isfinite(value) else 0.0 for value in np.asarray(x, dtype=np.float64).ravel().tolist()]


def _figure(data: list[Figure], x: str, y: str, *, log_x: bool = False, log_y: bool = False) -> Figure:
    layout = {
        "xaxis": {"title": {"text": x}, "type": "log" if log_x else "linear"},
        "yaxis": {"title": {"text": y}, "type": "log" if log_y else "linear"},
        "margin": {"l": 60, "r": 10, "t": 10, "b": 50},
        "legend": {"orientation": "h", "y": -0.25},
        "hovermode": "closest",
    }
    return {"data": data, "layout": layout}
