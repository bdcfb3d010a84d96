"""The statistics that the authors published for their 151 models of max-of-4."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files

from compactproofs.interpretation.interpretation import Interpretation

_FILE = "published_model_statistics_k4.csv"


@dataclass(frozen=True)
class PublishedStatistic:
    """Mean and standard deviation over the authors' models."""

    mean: float
    std: float | None
    """None where the paper gives the mean only."""
    source: str
    """Where the numbers are from."""

    def distance(self, mean: float | None) -> float | None:
        """How many published standard deviations another mean is above the published one."""
        return (mean - self.mean) / self.std if mean is not None and self.std else None


def published_statistics() -> dict[str, PublishedStatistic]:
    """By name. The data and their source: `compactproofs/data/README.md`."""
    with (files("compactproofs") / "data" / _FILE).open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    return {r["statistic"]: PublishedStatistic(float(r["mean"]), float(r["std"]) if r["std"] else None, r["source"]) for r in rows}


def comparable(models: Iterable[Interpretation]) -> bool:
    """Are these models of the published kind: the maximum of 4 tokens below 64, and of the published width?"""
    sizes = {"n_ctx": 4, "d_vocab": 64, "d_vocab_out": 64, "d_model": 32, "d_head": 32}
    return all(model.sizes == sizes for model in models)
