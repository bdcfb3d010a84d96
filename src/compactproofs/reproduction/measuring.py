"""The statistics of every model of a folder, measured once and kept in one file."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

from compactproofs.model.files import load, write_atomically
from compactproofs.sweeps.executors import LocalPool, require_ready

ABLATION_SAMPLES = 50_000
"""Sequences per model on which ablations are measured."""

_KEPT_EVERY = 10


def measure_models(models: list[Path], into: Path, workers: int | None, progress: Callable[[int, int], None] | None) -> int:
    """Measure those that are not in the file yet; returns how many there were. The file is a list of {model, statistics}."""
    kept: dict[str, dict[str, Any]] = {entry["model"]: entry for entry in _read(into)}
    missing = [model for model in models if model.name not in kept]
    if not missing:
        return 0
    into.parent.mkdir(parents=True, exist_ok=True)
    with LocalPool(workers).open() as pool:
        require_ready(pool)
        futures = [pool.submit(_measured, model) for model in missing]
        for done, future in enumerate(as_completed(futures), start=1):
            entry = future.result()
            kept[entry["model"]] = entry
            if progress is not None:
                progress(done, len(missing))
            if done % _KEPT_EVERY == 0 or done == len(missing):
                entries = [kept[name] for name in sorted(kept)]
                write_atomically(into, json.dumps(entries, allow_nan=False).encode())
    return len(missing)


def _measured(model: Path) -> dict[str, Any]:
    from compactproofs.interpretation import interpret

    return {"model": model.name, "statistics": interpret(load(model), samples=ABLATION_SAMPLES).as_json()["statistics"]}


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    entries: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return entries
