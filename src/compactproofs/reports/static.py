"""Figures for papers: SVG and PNG through matplotlib, without a browser."""

from __future__ import annotations

import io
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from compactproofs.errors import MissingExtraError
from compactproofs.model.files import write_atomically
from compactproofs.reports.distribution import quantities
from compactproofs.reports.figures import FAMILIES, kind, normalised
from compactproofs.reports.published import published_for
from compactproofs.reports.results import ModelResults

MARKERS = {"square": "s", "diamond": "D", "circle": "o", "circle-open": "o", "triangle-up": "^"}
"""The markers of `FAMILIES` as matplotlib calls them."""


NAMES = ("pareto", "unexplained", "tables", "singular", "losses", "singular-ratio")
"""What is drawn; the last two not for all models."""


def figure_files(folder: Path) -> list[Path]:
    """The files that `save_figures` may write."""
    return [folder / f"{name}.{suffix}" for name in NAMES for suffix in ("svg", "png")]


def require_matplotlib() -> None:
    """Say how to get matplotlib if it is not there."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("figures need matplotlib: pip install 'compactproofs[report]'")


def save_figures(models: list[ModelResults], folder: Path, write: Callable[[Path, bytes], None] = write_atomically) -> list[Path]:
    """Write the main plots as NAME.svg and NAME.png; returns the files. `write` is called with each and its content."""
    require_matplotlib()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []

    def save(name: str, figure: Any) -> None:
        for suffix in ("svg", "png"):
            path, drawn = folder / f"{name}.{suffix}", io.BytesIO()
            ours = {"Title": "compactproofs figure"}
            metadata = {"Date": None, **ours} if suffix == "svg" else ours
            figure.savefig(drawn, format=suffix, dpi=200, bbox_inches="tight", metadata=metadata)
            write(path, drawn.getvalue())
            written.append(path)

    with mpl.rc_context({"svg.hashsalt": "compactproofs", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        save("pareto", _pareto(Figure(figsize=(5.5, 3.5)), models))
        save("unexplained", _unexplained(Figure(figsize=(5.5, 3.5)), models))
        save("tables", _tables(Figure(figsize=(11, 2.6)), models[0]))
        save("singular", _singular(Figure(figsize=(8, 2.6)), models[0]))
        if models[0].explorer:
            save("losses", _losses(Figure(figsize=(5.5, 3.5)), models[0]))
        if len(models) > 2:
            save("singular-ratio", _ratio(Figure(figsize=(5.5, 3.5)), models))
    return written


def _scatter(axes: Any, models: list[ModelResults], y: Any) -> None:
    for family, (title, symbol, colour) in FAMILIES.items():
        chosen = [(m, p) for m in models for p in m.proofs if p["status"] in ("proven", "computed") and kind(p) == family]
        if chosen:
            face = "none" if symbol.endswith("open") else colour
            points = [(p["flops"], y(m, p)) for m, p in chosen]
            axes.scatter(
                *zip(*points, strict=True), s=14, marker=MARKERS[symbol], edgecolors=colour, facecolors=face, linewidths=0.7, label=title
            )
    axes.set_xscale("log")
    axes.set_xlabel("FLOPs to check")


def _pareto(figure: Any, models: list[ModelResults]) -> Any:
    axes = figure.subplots()
    _scatter(axes, models, normalised)
    summary = models[0].summary
    rows = [row for row in published_for(summary["n_ctx"], summary["d_vocab"]) if row.flops is not None]
    if rows:
        points = [(row.flops, row.normalized) for row in rows]
        axes.scatter(*zip(*points, strict=True), s=12, marker="x", color="#999999", linewidths=0.7, label="paper's means")
    axes.set_ylabel("bound / true accuracy")
    axes.legend(fontsize=7, frameon=False)
    return figure


def _unexplained(figure: Any, models: list[ModelResults]) -> Any:
    axes = figure.subplots()
    _scatter(axes, models, lambda _, p: p["unexplained_dimensions"])
    axes.set_yscale("log")
    axes.set_ylabel("unexplained dimensions")
    axes.legend(fontsize=7, frameon=False)
    return figure


def _tables(figure: Any, results: ModelResults) -> Any:
    names = ("EQKE", "EQKP", "EVOU", "PVOU", "EU")
    groups = {name: ("EQKE", "EQKP") if name.startswith("EQK") else ("EVOU", "PVOU", "EU") for name in names}
    for axes, name in zip(figure.subplots(1, 5), names, strict=True):
        largest = max(float(np.abs(results.tables[other]).max()) for other in groups[name]) or 1.0
        image = axes.imshow(results.tables[name], cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest")
        axes.set_title(name, fontsize=9)
        figure.colorbar(image, ax=axes, fraction=0.05)
    figure.tight_layout()
    return figure


def _singular(figure: Any, results: ModelResults) -> Any:
    U, S, Vh = np.linalg.svd(np.asarray(results.tables["EQKE"], dtype=np.float64))
    sign = 1.0 if U[:, 0].mean() >= 0 else -1.0
    values, query, size = figure.subplots(1, 3)
    values.semilogy(np.arange(1, len(S) + 1), np.maximum(S, 1e-30), ".")
    values.set_title("singular values of EQKE", fontsize=9)
    for n, style in zip(range(min(2, len(S))), ("-", ":"), strict=False):
        query.plot(sign * U[:, n] * np.sqrt(S[n]), style)
        size.plot(sign * Vh[n] * np.sqrt(S[n]), style)
    query.set_title("query directions", fontsize=9)
    size.set_title("size directions", fontsize=9)
    figure.tight_layout()
    return figure


def _losses(figure: Any, results: ModelResults) -> Any:
    axes = figure.subplots()
    styles = ("-", ":", "--", "-.", "-", ":", "--")
    for (label, found), style in zip(results.explorer["strategies"].items(), styles, strict=False):
        axes.plot([sum(row) for row in found["lost"]], style, label=label, linewidth=1.2)
    axes.set_xlabel("largest token of the sequence")
    axes.set_ylabel("fraction of all sequences not proven")
    axes.legend(fontsize=6, frameon=False)
    return figure


def _ratio(figure: Any, models: list[ModelResults]) -> Any:
    axes = figure.subplots()
    for name, marker in (
        ("normalised best subcubic bound", "o"),
        ("normalised cubic bound", "D"),
        ("normalised best threshold bound", "^"),
    ):
        points = [(q["singular ratio of EQKE"], q[name]) for q in map(quantities, models)]
        axes.scatter(*zip(*points, strict=True), s=12, marker=marker, label=name)
    axes.set_xlabel("first / second singular value of EQKE")
    axes.set_ylabel("bound / accuracy")
    axes.legend(fontsize=7, frameon=False)
    return figure
