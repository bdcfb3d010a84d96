"""The authors' published results, as facts to stand beside ours."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Published:
    """One published row: means over the authors' models."""

    n_ctx: int
    d_vocab: int
    label: str
    normalized: float
    bound: float
    bound_std: float
    seeds: int
    """How many models."""
    flops: float | None
    """None where it was not published."""

    @property
    def choices(self) -> tuple[str, ...]:
        """Direct path, attention error and query handling of a subcubic strategy; empty for others."""
        return tuple(self.label.split("/")[1:])


@cache
def published_results() -> tuple[Published, ...]:
    """All published rows."""
    text = (files("compactproofs") / "data" / "published_results.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return tuple(
        Published(
            n_ctx=int(row["n_ctx"]),
            d_vocab=int(row["d_vocab"]),
            label="/".join(filter(None, (row["strategy"], row["direct_path"], row["attention_error"], row["query_handling"]))),
            normalized=float(row["normalized_mean"]),
            bound=float(row["bound_mean"]),
            bound_std=float(row["bound_std"]),
            seeds=int(row["seeds"]),
            flops=float(row["flops"]) if row["flops"] else None,
        )
        for row in rows
    )


def published_for(n_ctx: int, d_vocab: int) -> list[Published]:
    """The rows of one configuration; none if it was not published."""
    return [row for row in published_results() if (row.n_ctx, row.d_vocab) == (n_ctx, d_vocab)]
