"""Costs against sizes, on logarithmic axes."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from compactproofs.plots.marks import FAMILIES
from compactproofs_experiments.scale.groups import Group

_STYLES = {
    "brute-force": (FAMILIES["brute-force"][2], "s"),
    "cubic": (FAMILIES["cubic"][2], "D"),
    "subcubic, repaired": (FAMILIES["subcubic"][2], ""),
    "subcubic, published": (FAMILIES["published"][2], ""),
    "threshold-quadratic-pooled": ("#56b4e9", "v"),
    "threshold-cubic-pooled": ("#009e73", "^"),
    "threshold-cubic": ("#004d38", "o"),
    "threshold-blocks": ("#b8a000", "P"),
    "threshold-quartic": ("#d55e00", "X"),
    "threshold-exact-output": ("#882255", "*"),
}
"""Colour and marker. The subcubic ones are bands from the cheapest member to the dearest."""

_WORDS = {"v": "vocabulary v (k=4, d=32)", "k": "sequence length k (v=64, d=32)"}
_COSTS = {"seconds": "processor seconds", "flops": "FLOPs of checking"}


def save_figure(path: Path, found: list[Group], cost: str) -> None:
    """One panel for v, one for k."""
    style = {"svg.hashsalt": "compactproofs", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with mpl.rc_context(style):
        figure = Figure(figsize=(8, 4.6))
        panels = figure.subplots(1, 2, sharey=True)
        for axes, axis in zip(panels, _WORDS, strict=True):
            _panel(axes, axis, found, cost)
        panels[0].set_ylabel(_COSTS[cost])
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=4, frameon=False, fontsize=8)
        figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def _panel(axes: Any, axis: str, found: list[Group], cost: str) -> None:
    costs: dict[str, dict[int, list[float]]] = {kind: defaultdict(list) for kind in _STYLES}
    for group in found:
        if group.kind not in costs or (axis == "k" and group.exponential):
            continue
        for rows in group.members.values():
            for row in rows:
                if row.size in group.sizes(axis) and row.complete:
                    costs[group.kind][getattr(row, axis)].append(float(getattr(row, cost)))
    for kind, (colour, marker) in _STYLES.items():
        x = sorted(costs[kind])
        least, most = [min(costs[kind][size]) for size in x], [max(costs[kind][size]) for size in x]
        if marker:
            axes.plot(x, most, color=colour, marker=marker, markersize=5, linewidth=1.2, label=kind)
        else:
            axes.fill_between(x, least, most, color=colour, alpha=0.35, linewidth=0.8, label=kind)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = sorted({size for kind in costs.values() for size in kind})
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.set_xlabel(_WORDS[axis])
    axes.grid(visible=True, which="major", linewidth=0.3, alpha=0.6)
