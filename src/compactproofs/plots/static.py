"""Figures for papers: SVG and PNG through matplotlib, without a browser."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from compactproofs.errors import MissingExtraError
from compactproofs.model.files import write_atomically
from compactproofs.plots.distribution import quantities
from compactproofs.plots.marks import FAMILIES, Mark, frontier, marks_of
from compactproofs.results.models import ModelResults
from compactproofs.results.published import Published, published_for

GREY = "#808080"
"""Shows on light and on dark pages."""

MARKERS = {"square": "s", "diamond": "D", "circle": "o", "circle-open": "o", "triangle-up": "^"}
"""The markers of `FAMILIES` as matplotlib calls them."""


NAMES = ("pareto", "unexplained", "tables", "singular", "losses", "singular-ratio")
"""What is drawn; all but the first two not for all results."""


def figure_files(folder: Path) -> list[Path]:
    """The files that `save_figures` may write."""
    return [folder / f"{name}.{suffix}" for name in NAMES for suffix in ("svg", "png")]


def require_matplotlib() -> None:
    """Say how to get matplotlib if it is not there."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("figures need matplotlib", "report")


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
        if models[0].tables:
            save("tables", _tables(Figure(figsize=(11, 2.6)), models[0]))
            save("singular", _singular(Figure(figsize=(8, 2.6)), models[0]))
        if models[0].explorer:
            save("losses", _losses(Figure(figsize=(5.5, 3.5)), models[0]))
        if len(models) > 2:
            save("singular-ratio", _ratio(Figure(figsize=(5.5, 3.5)), models))
    return written


def scatter(axes: Any, marks: Sequence[Mark]) -> bool:
    """Marks by family against FLOPs, with a line from one standard deviation below to one above; whether there is anything to draw."""
    for family, (title, symbol, colour) in FAMILIES.items():
        mine = [mark for mark in marks if mark.family == family]
        if mine:
            x, y = [mark.flops for mark in mine], [mark.value for mark in mine]
            if any(mark.spread for mark in mine):
                lows = [max(mark.value - mark.spread, mark.value / 10) for mark in mine]
                axes.vlines(x, lows, [mark.value + mark.spread for mark in mine], color=colour, linewidth=0.8, alpha=0.3)
            face = "none" if symbol.endswith("open") else colour
            style = {"s": 16, "marker": MARKERS[symbol], "edgecolors": colour, "facecolors": face, "linewidths": 0.8, "zorder": 3}
            axes.scatter(x, y, label=title, **style)
    axes.set_xscale("log")
    axes.set_xlabel("FLOPs to check")
    return bool(marks)


def frontier_line(axes: Any, marks: Sequence[Mark], *, upside_down: bool = False) -> None:
    """The frontier as steps; upside down where a smaller value is better."""
    sign = -1.0 if upside_down else 1.0
    best = frontier([replace(mark, value=sign * mark.value) for mark in marks])
    steps = {"where": "post", "color": GREY, "linewidth": 1.2, "linestyle": ":", "zorder": 1}
    axes.step([mark.flops for mark in best], [sign * mark.value for mark in best], label="frontier of the proofs", **steps)


def published_means(axes: Any, sizes: tuple[int, int], value: Callable[[Published], float]) -> None:
    """Crosses for the means in the paper, of models of these sizes (n_ctx, d_vocab); without brute force."""
    rows = [row for row in published_for(*sizes) if row.flops is not None and row.label != "brute-force"]
    if rows:
        style = {"s": 14, "marker": "x", "color": GREY, "linewidths": 0.8, "zorder": 2}
        axes.scatter([row.flops for row in rows], [value(row) for row in rows], label="means in the paper", **style)


def _pareto(figure: Any, models: list[ModelResults]) -> Any:
    axes = figure.subplots()
    marks = [mark for mark in marks_of(models, ModelResults.normalised) if mark.family != "brute-force"]
    scatter(axes, marks)
    if len(models) == 1:
        frontier_line(axes, marks)
    sizes = {(model.sizes["n_ctx"], model.sizes["d_vocab"]) for model in models}
    if len(sizes) == 1 and all(model.of_the_papers_kind for model in models):
        published_means(axes, min(sizes), lambda row: row.normalized)
    axes.set_ylabel("bound / true accuracy")
    axes.legend(fontsize=7, frameon=False)
    return figure


def _unexplained(figure: Any, models: list[ModelResults]) -> Any:
    axes = figure.subplots()
    marks = marks_of(models, lambda _, proof: proof["unexplained_dimensions"])
    scatter(axes, [mark for mark in marks if mark.family != "brute-force"] or marks)
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
    axes.set_yscale("log", nonpositive="mask")
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
