"""Result files of one model: what a report is made from. Plain JSON and safetensors, nothing executable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as tensor_bytes

from compactproofs.errors import ReportError
from compactproofs.model.files import write_atomically
from compactproofs.reports.damage import faults, of_other_weights

FORMAT = "compactproofs-results-1"
_AGAIN = "Make them again with 'compactproofs report MODEL'"
_PARTS = ("summary", "proofs", "explorer", "measurements")
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class ModelResults:
    """Everything a report says about one model."""

    summary: dict[str, Any]
    """Name, sizes, hash, accuracy, the theorem in words."""
    proofs: list[dict[str, Any]]
    """`Proof.as_json` of every strategy that was run."""
    explorer: dict[str, Any]
    """Where strategies prove what; see `reports.explorer`. Empty if the vocabulary is too large."""
    measurements: dict[str, Any]
    """`Interpretation.as_json`."""
    tables: Mapping[str, np.ndarray]
    """EQKE, EQKP, EVOU, PVOU, EU in float32, for looking at."""

    def write(self, folder: Path) -> None:
        """Write the folder. Until all of it is there `summary.json` says so, and it is not read: no page is made of two models."""
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "summary.json", json.dumps({"format": FORMAT, "unfinished": True}).encode())
        arrays = {name: np.ascontiguousarray(table, dtype=np.float32) for name, table in self.tables.items()}
        write_atomically(folder / "tables.safetensors", tensor_bytes(arrays))
        for part in reversed(_PARTS):
            text = json.dumps(getattr(self, part), separators=(",", ":"), allow_nan=False)
            write_atomically(folder / f"{part}.json", text.encode())

    @classmethod
    def read(cls, folder: Path) -> ModelResults:
        """Read a folder that `write` wrote."""
        if _summary(folder).get("unfinished"):
            raise ReportError(f"{folder}: the results were not written to their end. {_AGAIN}")
        try:
            parts = {part: json.loads((folder / f"{part}.json").read_text(encoding="utf-8")) for part in _PARTS}
            tables = read_tensors((folder / "tables.safetensors").read_bytes())
        except (OSError, ValueError, RecursionError, SafetensorError) as error:
            raise ReportError(
                f"{folder} does not hold the results of a model ({error}); 'compactproofs report MODEL' writes them"
            ) from None
        if not isinstance(parts["summary"], dict) or parts["summary"].get("format") != FORMAT:
            raise ReportError(f"{folder}: results of another format; expected {FORMAT}. {_AGAIN}")
        damaged = list(faults(parts, tables))
        if damaged:
            more = f" and {len(damaged) - _SHOWN} more" if len(damaged) > _SHOWN else ""
            raise ReportError(f"{folder}: the results are damaged ({', '.join(damaged[:_SHOWN])}{more}). {_AGAIN}")
        others = list(of_other_weights(parts))
        if others:
            raise ReportError(f"{folder}: {' and '.join(others)} are about another model than summary. {_AGAIN}")
        return cls(**parts, tables=tables)


def result_files(folder: Path) -> list[Path]:
    """The files that `read_all` reads there."""
    names = [*(f"{part}.json" for part in _PARTS), "tables.safetensors"]
    return [path for name in names for path in (folder / name, *folder.glob(f"*/{name}")) if path.is_file()]


def require_results_folder(folder: Path, force: bool) -> None:
    """Raise if writing results there would replace what somebody else wrote, or cannot work."""
    if not folder.is_dir() and (folder.exists() or folder.is_symlink()):
        raise ReportError(f"{folder}, where the results would go, is a file; choose another name for the report, or move the file")
    if force or not folder.exists() or not any(folder.iterdir()):
        return
    if _summary(folder).get("format") != FORMAT:
        raise ReportError(
            f"{folder}, where the results would go, is not ours; choose another name for the report, or replace it with --force"
        )


def _summary(folder: Path) -> dict[str, Any]:
    """What the folder says it is; nothing if that cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    return {}


def read_all(folder: Path) -> list[ModelResults]:
    """The results of one model (a folder with summary.json), or of all models in the folders inside."""
    if (folder / "summary.json").is_file():
        return [ModelResults.read(folder)]
    found = [ModelResults.read(path.parent) for path in sorted(folder.glob("*/summary.json"))]
    if not found:
        raise ReportError(f"{folder} holds no results: expected summary.json in it, or in folders inside it")
    return found
