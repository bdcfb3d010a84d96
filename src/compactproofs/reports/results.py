"""Result files of one model: what a report is made from. Plain JSON and safetensors, nothing executable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as tensor_bytes

from compactproofs.errors import ReportError
from compactproofs.model.files import write_atomically

FORMAT = "compactproofs-results-1"
TABLES = ("EQKE", "EQKP", "EVOU", "PVOU", "EU")
_PARTS = ("summary", "proofs", "explorer", "measurements")


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
        """Write the folder; `summary.json` comes last, so that a folder with it is complete."""
        folder.mkdir(parents=True, exist_ok=True)
        arrays = {name: np.ascontiguousarray(table, dtype=np.float32) for name, table in self.tables.items()}
        write_atomically(folder / "tables.safetensors", tensor_bytes(arrays))
        for part in reversed(_PARTS):
            text = json.dumps(getattr(self, part), separators=(",", ":"), allow_nan=False)
            write_atomically(folder / f"{part}.json", text.encode())

    @classmethod
    def read(cls, folder: Path) -> ModelResults:
        """Read a folder that `write` wrote."""
        try:
            parts = {part: json.loads((folder / f"{part}.json").read_text(encoding="utf-8")) for part in _PARTS}
            tables = read_tensors((folder / "tables.safetensors").read_bytes())
        except (OSError, ValueError, SafetensorError) as error:
            raise ReportError(
                f"{folder} does not hold the results of a model ({error}); 'compactproofs report MODEL' writes them"
            ) from None
        if not isinstance(parts["summary"], dict) or parts["summary"].get("format") != FORMAT:
            raise ReportError(f"{folder}: results of another format; expected {FORMAT}. Make them again with 'compactproofs report MODEL'")
        kinds = {"summary": dict, "proofs": list, "explorer": dict, "measurements": dict}
        damaged = [part for part, kind in kinds.items() if not isinstance(parts[part], kind)]
        damaged += [name for name in TABLES if name not in tables]
        if damaged or not all(isinstance(proof, dict) for proof in parts["proofs"]):
            raise ReportError(
                f"{folder}: the results are damaged ({', '.join(damaged) or 'proofs'}). Make them again with 'compactproofs report MODEL'"
            )
        return cls(**parts, tables=tables)


def require_results_folder(folder: Path, force: bool) -> None:
    """Raise if writing results there would replace what somebody else wrote."""
    if force or not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        ours = json.loads((folder / "summary.json").read_text(encoding="utf-8")).get("format") == FORMAT
    except (OSError, ValueError, AttributeError):
        ours = False
    if not ours:
        raise ReportError(
            f"{folder}, where the results would go, is not ours; choose another name for the report, or replace it with --force"
        )


def read_all(folder: Path) -> list[ModelResults]:
    """The results of one model (a folder with summary.json), or of all models in the folders inside."""
    if (folder / "summary.json").is_file():
        return [ModelResults.read(folder)]
    found = [ModelResults.read(path.parent) for path in sorted(folder.glob("*/summary.json"))]
    if not found:
        raise ReportError(f"{folder} holds no results: expected summary.json in it, or in folders inside it")
    return found
