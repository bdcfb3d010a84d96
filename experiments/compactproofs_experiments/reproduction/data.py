"""A summary of each strategy as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from compactproofs.results.published import published_for
from compactproofs.results.schema import FAILED
from compactproofs_experiments.reproduction.summaries import Configuration, Spread, spread


def write_summary(configurations: Sequence[Configuration], path: Path) -> None:
    """One row for each configuration, strategy and variant. Means and deviations are over the models that have a bound."""
    rows = list(_summary(configurations))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, fieldnames=_SUMMARY, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


_SUMMARY = (
    *("config", "n_ctx", "d_vocab", "label", "family", "variant", "sound", "models", "bounds", "infeasible", "failed"),
    *("bound_mean", "bound_std", "bound_min", "bound_max", "normalized_mean", "normalized_std"),
    *("flops_mean", "unexplained_dimensions_mean", "seconds_mean"),
    *("published_models", "published_bound_mean", "published_bound_std", "published_normalized_mean", "published_flops"),
)


def _summary(configurations: Sequence[Configuration]) -> Iterator[dict[str, Any]]:
    for c in configurations:
        published = {row.label: row for row in published_for(c.n_ctx, c.d_vocab)}
        for r in c.runs:
            counts = {"models": len(r.outcomes), "bounds": len(r.bounds), "infeasible": r.count("infeasible"), "failed": r.count(FAILED)}
            numbers = _spread("bound", spread(r.bounds.values())) | _spread("normalized", spread(c.normalised(r).values()))
            lengths = {
                "flops_mean": r.mean("flops"),
                "unexplained_dimensions_mean": r.mean("unexplained"),
                "seconds_mean": r.mean("seconds"),
            }
            row: dict[str, Any] = {"config": c.name, "n_ctx": c.n_ctx, "d_vocab": c.d_vocab, "label": r.label, "family": r.family}
            row |= {"variant": r.variant, "sound": r.sound, **counts}
            row |= {name: _short(value) for name, value in (numbers | lengths).items() if name in _SUMMARY}
            known = published.get(r.label)
            if known is not None:
                row |= {"published_models": known.seeds, "published_bound_mean": known.bound, "published_bound_std": known.bound_std}
                row |= {"published_normalized_mean": known.normalized, "published_flops": known.flops}
            yield row


def _spread(name: str, found: Spread | None) -> dict[str, float | None]:
    if found is None:
        return {}
    return {f"{name}_mean": found.mean, f"{name}_std": found.std, f"{name}_min": found.least, f"{name}_max": found.greatest}


def _short(value: float | None) -> str | None:
    return None if value is None else f"{value:.8g}"
