"""The figures of a configuration, as SVG: transparent, in tones that show on light and on dark pages, the same bytes for the same data."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

from compactproofs.errors import MissingExtraError
from compactproofs.plots.marks import FAMILIES, Mark
from compactproofs.plots.static import GREY, frontier_line, published_means, scatter
from compactproofs.strategies.subcubic import AttentionError
from compactproofs_experiments.reproduction.fits import Cloud, clouds
from compactproofs_experiments.reproduction.summaries import Configuration, Runs, spread

_STYLE: Any = {
    "svg.hashsalt": "compactproofs",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color", "axes.edgecolor", "grid.color"), GREY
    ),
}

_MANY = 400
"""More points than this are drawn as pixels: as shapes they would make the file large."""

_ERRORS = {
    AttentionError.MAX_DIFF_EXACT: (GREY, "s", True),
    AttentionError.SVD: ("#d55e00", "o", True),
    AttentionError.MAX_DIFF: ("#0072b2", "o", True),
    AttentionError.MEAN_MAX_DIFF: ("#56b4e9", "D", False),
    AttentionError.MAX_DIFF_SUBPRODUCT: ("#009e73", "o", True),
    AttentionError.MEAN_MAX_DIFF_SUBPRODUCT: ("#66c2a5", "D", False),
    AttentionError.MAX_DIFF_SUBPRODUCT_RECURSIVE: ("#cc79a7", "o", True),
    AttentionError.MEAN_MAX_DIFF_SUBPRODUCT_RECURSIVE: ("#b565a7", "D", False),
    AttentionError.MEAN_RECURSIVE: ("#e69f00", "^", False),
}
"""Colour, marker, and whether it is filled: with a mean open, without filled."""


def save_figures(configuration: Configuration, folder: Path) -> list[Path]:
    """Write every figure for which there are data as CONFIGURATION-NAME.svg; returns the files."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("figures need matplotlib", "report") from None
    drawings: dict[str, tuple[tuple[float, float], Callable[[Any, Configuration], bool]]] = {
        "pareto": ((9.5, 4.4), _pareto),
        "singular-ratio": ((9.5, 4.6), _singular_ratio),
        "unexplained": ((6.5, 4.2), _unexplained),
        "accuracy": ((7.5, 3.6), _accuracy),
    }
    written = []
    with mpl.rc_context(_STYLE):
        for name, (size, draw) in drawings.items():
            figure = Figure(figsize=size, layout="constrained")
            if draw(figure, configuration):
                path = folder / f"{configuration.name}-{name}.svg"
                drawn = StringIO()
                figure.savefig(drawn, format="svg", transparent=True, dpi=110, metadata={"Date": None})
                path.write_text(_rounded(drawn.getvalue()), encoding="utf-8")
                written.append(path)
    return written


def _rounded(svg: str) -> str:
    """Two decimals of numbers from 1 on, a hundredth of a point: the file becomes a good deal smaller."""
    return re.sub(r"(?<![\d.])([1-9]\d*\.\d\d)\d+", r"\1", svg)


def _pareto(figure: Any, configuration: Configuration) -> bool:
    """Left as in the paper, right what is not proven, on a logarithmic scale: near 1 the left side cannot be read."""
    normalised = _points(configuration, configuration.normalised)
    unproven = _points(configuration, lambda runs: {key: 1 - bound for key, bound in runs.bounds.items()})
    left, right = figure.subplots(1, 2)
    if not scatter(left, normalised):
        return False
    scatter(right, unproven)
    frontier_line(left, normalised)
    frontier_line(right, unproven, upside_down=True)
    sizes = configuration.n_ctx, configuration.d_vocab
    published_means(left, sizes, lambda row: row.normalized)
    published_means(right, sizes, lambda row: 1 - row.bound)
    wrong = spread(1 - a.value for a in configuration.accuracies.values())
    right.set_yscale("log")
    if wrong is not None and wrong.mean > 0:
        right.axhline(wrong.mean, color=GREY, linewidth=0.8)
        right.annotate("answered wrongly", (0.01, wrong.mean), xycoords=("axes fraction", "data"), ha="left", va="bottom", fontsize=7.5)
    _without_brute_force(left, configuration)
    _without_brute_force(right, configuration)
    left.set_ylim(-0.03, 1.05)
    left.set_ylabel("bound / true accuracy")
    right.set_ylabel("1 - bound: sequences not proven right")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return True


def _unexplained(figure: Any, configuration: Configuration) -> bool:
    axes = figure.subplots()
    if not scatter(axes, _points(configuration, lambda runs: {"": runs.mean("unexplained") or math.nan})):
        return False
    axes.set_yscale("log", base=2)
    axes.set_ylabel("unexplained dimensions")
    _without_brute_force(axes, configuration)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return True


def _singular_ratio(figure: Any, configuration: Configuration) -> bool:
    found = clouds(configuration)
    if not found:
        return False
    sides = figure.subplots(1, 2, sharey=True)
    titles = {"published": "as published (not proofs)", "repaired": "repaired, envelope included (proofs)"}
    for axes, variant in zip(sides, titles, strict=True):
        axes.set_title(titles[variant])
        mine = [cloud for cloud in found if cloud.variant == variant]
        if sum(len(cloud.ratios) for cloud in mine) > _MANY:
            axes.set_rasterization_zorder(0)
        for cloud in mine:
            _draw_cloud(axes, cloud)
        axes.set_xlabel("first / second singular value of EQKE")
        axes.set_ylim(0, 1)
    sides[0].set_ylabel("best bound / true accuracy")
    entries = {label: handle for axes in sides for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return True


def _draw_cloud(axes: Any, cloud: Cloud) -> None:
    colour, marker, filled = _ERRORS[cloud.attention_error]
    face = colour if filled else "none"
    alpha = 0.55 if len(cloud.ratios) > 20 else 1.0
    style = {"marker": marker, "s": 13, "linewidths": 0.7, "edgecolors": colour, "facecolors": face}
    axes.scatter(cloud.ratios, cloud.bounds, alpha=alpha, zorder=-1, label=str(cloud.attention_error), **style)
    if cloud.fit is not None:
        ends = [min(cloud.ratios), max(cloud.ratios)]
        axes.plot(ends, [cloud.fit.slope * x + cloud.fit.intercept for x in ends], color=colour, linewidth=1.1)


def _accuracy(figure: Any, configuration: Configuration) -> bool:
    """Models sorted by how often they are wrong: what is certified, and what was measured."""
    known = [model for model in configuration.models if model.accuracy is not None]
    known.sort(key=lambda model: model.accuracy.value if model.accuracy else 0.0)
    if not known:
        return False
    axes = figure.subplots()
    total = configuration.total
    intervals = [configuration.certified_by_others[model.key] for model in known]
    errors = [(1 - (total if most is None else most) / total, 1 - least / total) for least, most in intervals]
    measured = [1 - model.accuracy.value for model in known if model.accuracy is not None]
    positive = [e for pair in errors for e in pair if e > 0] + [e for e in measured if e > 0]
    floor = 10 ** (math.floor(math.log10(min(positive, default=1e-6))) - 0.3)
    places = range(1, len(known) + 1)
    width = max(1.0, min(7.0, 300 / len(known)))
    lows, highs = [max(low, floor) for low, _ in errors], [max(high, floor) for _, high in errors]
    axes.vlines(places, lows, highs, color="#009e73", alpha=0.5, linewidth=width, label="certified without brute force")
    measurements = [model.accuracy for model in known if model.accuracy is not None]
    confidence = {a.confidence for a in measurements if not a.exact}
    if confidence:
        limits = [[max(1 - a.high, floor) for a in measurements], [max(1 - a.low, floor) for a in measurements]]
        axes.vlines(places, *limits, color="#d55e00", linewidth=0.8, label=f"interval of the sample, {max(confidence):.0%}")
    how = "measured" if confidence else "exact, all sequences evaluated"
    shown = [max(e, floor) for e in measured]
    axes.scatter(places, shown, s=9, color="#d55e00", zorder=3, label=how)
    axes.set_yscale("log")
    axes.set_xlabel("models, the least accurate first")
    axes.set_ylabel("sequences answered wrongly")
    axes.xaxis.get_major_locator().set_params(integer=True)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return True


def _points(configuration: Configuration, values: Callable[[Runs], dict[str, float]]) -> list[Mark]:
    """Mean FLOPs, and mean and spread of what `values` gives for each model; without brute force and what has no values."""
    drawn = []
    for runs in configuration.runs:
        found, flops = spread(values(runs).values()), runs.mean("flops")
        if runs.kind in FAMILIES and runs.family != "brute-force" and flops and found is not None and math.isfinite(found.mean):
            drawn.append(Mark(runs.kind, flops, found.mean, runs.label, found.std or 0.0))
    return drawn


def _without_brute_force(axes: Any, configuration: Configuration) -> None:
    """Brute force is so long that it would squeeze everything else together: it is named at the edge instead."""
    runs = configuration.find("brute-force", None)
    flops = None if runs is None else runs.mean("flops")
    if flops:
        axes.annotate(f"brute force: {flops:.0e} FLOPs →", (1, 1.01), xycoords="axes fraction", ha="right", va="bottom", fontsize=7.5)
