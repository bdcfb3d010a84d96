"""The numbers behind the pages: every bound in a Parquet file, and a summary of each strategy as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from compactproofs.reports.published import published_for
from compactproofs.reproduction.summaries import Configuration, Spread, spread
from compactproofs.sweeps.parts import import_duckdb
from compactproofs.sweeps.schema import FAILED

_BOUNDS = {
    "config": "VARCHAR",
    "n_ctx": "UTINYINT",
    "d_vocab": "USMALLINT",
    "seed": "INTEGER",
    "model": "VARCHAR",
    "weights_sha256": "VARCHAR",
    "accuracy": "DOUBLE",
    "accuracy_low": "DOUBLE",
    "accuracy_high": "DOUBLE",
    "accuracy_exact": "BOOLEAN",
    "accuracy_correct": "VARCHAR",
    "accuracy_total": "VARCHAR",
    "accuracy_confidence": "FLOAT",
    "singular_ratio": "DOUBLE",
    "label": "VARCHAR",
    "family": "VARCHAR",
    "variant": "VARCHAR",
    "sound": "BOOLEAN",
    "status": "VARCHAR",
    "reason": "VARCHAR",
    "lower": "DOUBLE",
    "correct_at_least": "VARCHAR",
    "correct_at_most": "VARCHAR",
    "flops": "VARCHAR",
    "unexplained_dimensions": "VARCHAR",
    "seconds": "FLOAT",
    "search_seconds": "FLOAT",
    "counting_seconds": "FLOAT",
}
"""Columns and types. Counts and lengths are decimal strings, as in the sweep: they exceed every integer type."""


def write_bounds(configurations: Sequence[Configuration], path: Path) -> None:
    """One row for each model and strategy, in the order of configurations, models and strategies.

    What belongs to a model is the same in all of its rows, so that it takes next to no space.
    """
    import_duckdb()
    import duckdb

    table = ", ".join(f'"{name}" {kind}' for name, kind in _BOUNDS.items())
    selected = ", ".join(f"unnest(?::{kind}[])" for kind in _BOUNDS.values())
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(f"CREATE TABLE bounds ({table})")
        for configuration in configurations:
            columns = [list(column) for column in zip(*_bounds(configuration), strict=True)]
            if columns:
                connection.execute(f"INSERT INTO bounds SELECT {selected}", columns)
        connection.table("bounds").write_parquet(str(path), compression="zstd", row_group_size=1_000_000)


def _bounds(c: Configuration) -> Iterator[tuple[Any, ...]]:
    for m in c.models:
        a = m.accuracy
        measured = (a.value, a.low, a.high, a.exact, str(a.correct), str(a.total), a.confidence) if a else (None,) * 7
        for r in c.runs:
            o = r.outcomes.get(m.key)
            if o is not None:
                yield (
                    *(c.name, c.n_ctx, c.d_vocab, m.seed, m.name, m.key, *measured, m.singular_ratio),
                    *(r.label, r.family, r.variant, r.sound, o.status, o.reason, o.lower),
                    *(_text(o.correct_at_least), _text(o.correct_at_most), _text(o.flops), _text(o.unexplained)),
                    *(o.seconds, o.search_seconds, o.counting_seconds),
                )


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)


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
