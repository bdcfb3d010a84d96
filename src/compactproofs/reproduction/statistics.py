"""The statistics of the mechanism over many models, as the run measured them."""

from __future__ import annotations

import json
from pathlib import Path

from compactproofs.errors import ReportError
from compactproofs.interpretation import Summary, summarise_statistics


def read_statistics(folder: Path) -> dict[str, dict[str, Summary]]:
    """Summaries by configuration and statistic, one configuration for each JSON file in the folder; empty if there is none."""
    return {path.stem: _read(path) for path in sorted(folder.glob("*.json"))} if folder.is_dir() else {}


def _read(path: Path) -> dict[str, Summary]:
    try:
        models = [dict(entry["statistics"]) for entry in json.loads(path.read_text(encoding="utf-8"))]
    except (ValueError, TypeError, KeyError) as error:
        raise ReportError(f"{path} does not hold the statistics of models ({type(error).__name__}: {error}); repeat the run") from None
    return summarise_statistics(models)
