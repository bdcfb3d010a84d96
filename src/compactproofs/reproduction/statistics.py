"""The statistics of the mechanism over many models, as the run measured them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from compactproofs.errors import ReportError
from compactproofs.interpretation import Summary, summarise_statistics
from compactproofs.interpretation.numbers import Statistics


def read_statistics(folder: Path) -> dict[str, dict[str, Summary]]:
    """Summaries by configuration and statistic, one configuration for each JSON file in the folder; empty if there is none."""
    paths = sorted(folder.glob("*.json")) if folder.is_dir() else []
    return {path.stem: summarise_statistics([found.statistics for found in read_models(path).values()]) for path in paths}


@dataclass(frozen=True)
class Measured:
    """The statistics of one model, and what they were measured of."""

    key: str
    statistics: Statistics


def read_models(path: Path) -> dict[str, Measured]:
    """The statistics in one file, by model; none if it is not there."""
    if not path.is_file():
        return {}
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        return {str(entry["model"]): Measured(str(entry["key"]), dict(entry["statistics"])) for entry in entries}
    except (ValueError, TypeError, KeyError) as error:
        found = f"{type(error).__name__}: {error}"
        raise ReportError(f"{path} does not hold the statistics of models ({found}); remove it and repeat the run") from None
