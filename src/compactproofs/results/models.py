"""What the store says about each model, as plain data: what pages and figures are made from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from compactproofs.errors import ResultsError
from compactproofs.results.damage import faults_of_document, faults_of_proof
from compactproofs.results.schema import EXPLORER, FAILED, LEDGER, MECHANISM, PROOF, RUN, STATISTICS, TABLES, Row
from compactproofs.results.store import open_results
from compactproofs.text import printable

_COLUMNS = (
    *("folder", "model", "place", "question", "task", "weights_sha256", "assumptions", "version"),
    *("d_vocab", "d_vocab_out", "d_model", "d_head", "n_ctx"),
    *("accuracy", "accuracy_low", "accuracy_high", "accuracy_method", "accuracy_confidence", "singular_ratio"),
    *("label", "family", "variant", "parameters", "status", "reason", "lower", "upper", "correct_at_least", "total"),
    *("flops", "unexplained_dimensions", "seconds", "theorem", "written"),
)
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class ModelResults:
    """Everything that is known about one model and one question."""

    name: str
    sizes: dict[str, int]
    sha256: str
    task: str
    assumptions: tuple[str, ...]
    accuracy: dict[str, Any] | None
    """`accuracy`, `method`, `interval`, `confidence`; None if it was not measured."""
    singular_ratio: float | None
    """First singular value of EQKE over the second; None for networks and questions of another kind than the paper's."""
    proofs: list[Row]
    """One row for each strategy that was run without an error; numbers are numbers, `parameters` is an object."""
    statistics: dict[str, float | None] = field(default_factory=dict)
    mechanism: dict[str, Any] = field(default_factory=dict)
    """Histograms and ablations."""
    explorer: dict[str, Any] = field(default_factory=dict)
    """Where strategies prove what; empty if the vocabulary is too large."""
    ledger: dict[str, Any] = field(default_factory=dict)
    """The blocks of the best threshold proof, to look at; empty if they were not kept."""
    tables: Mapping[str, np.ndarray] = field(default_factory=dict)
    """EQKE, EQKP, EVOU, PVOU, EU in float32, for looking at; empty if they were not kept."""

    @property
    def of_the_papers_kind(self) -> bool:
        """Whether published results are about such networks: one head without norms and MLP, no fixed tokens."""
        return self.singular_ratio is not None

    @property
    def best(self) -> Row | None:
        """The largest proven bound, the shorter proof of two."""
        proven = [proof for proof in self.proofs if proof["status"] == "proven"]
        return max(proven, key=lambda p: (int(p["correct_at_least"]), -p["flops"]), default=None)

    @property
    def true_accuracy(self) -> float:
        """Exact, or measured in a sample; 1 if it is not known."""
        return 1.0 if self.accuracy is None else float(self.accuracy["accuracy"])

    def normalised(self, proof: Row) -> float:
        """A bound over the true accuracy; the bound itself if that is zero."""
        return float(proof["lower"]) / (self.true_accuracy or 1.0)


@dataclass(frozen=True)
class Failure:
    """Something that went wrong, and why."""

    model: str
    label: str | None
    """None if it was the model as a whole."""
    variant: str | None
    reason: str


def read_models(folder: Path) -> tuple[list[ModelResults], list[Failure]]:
    """Every model of a store, by name, and everything that failed."""
    with open_results(folder) as connection:
        rows = _fetched(connection, f"SELECT {', '.join(_COLUMNS)} FROM newest ORDER BY folder, model, question, written, label")  # noqa: S608
        documents = _fetched(
            connection,
            f"""SELECT folder, model, place, question, kind, data FROM part WHERE kind NOT IN ('{PROOF}', '{RUN}')
            QUALIFY row_number() OVER (PARTITION BY folder, model, place, question, kind ORDER BY written DESC, filename) = 1""",  # noqa: S608
        )
    failures = [Failure(row["model"], row["label"], row["variant"], row["reason"] or "") for row in rows if row["status"] == FAILED]
    grouped: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row["status"] != FAILED and row["label"] is not None:
            grouped.setdefault((row["folder"], row["model"], row["place"], row["question"]), []).append(row)
    kept: dict[tuple[str, ...], dict[str, str]] = {}
    for row in documents:
        kept.setdefault((row["folder"], row["model"], row["place"], row["question"]), {})[row["kind"]] = row["data"]
    several = len({folder for folder, *_ in grouped}) > 1
    found = [_model(rows, kept.get(key, {}), several=several, where=folder) for key, rows in grouped.items()]
    return found, failures


def read_model(part: Path) -> ModelResults:
    """The one model that a part is about."""
    found, failures = read_models(part)
    if len(found) != 1:
        raise ResultsError(f"nothing could be proven about the model: {failures[0].reason if failures else 'there is no strategy'}")
    return found[0]


def _fetched(connection: Any, query: str) -> list[Row]:
    cursor = connection.execute(query)
    names = [name for name, *_ in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def _model(rows: list[Row], documents: dict[str, str], *, several: bool, where: Path) -> ModelResults:
    last = rows[-1]
    name = Path(last["model"]).with_suffix("").as_posix()
    shown = printable(f"{Path(last['folder'] or '').name}/{name}" if several else name)
    sizes = {size: int(last[size] or 0) for size in ("d_vocab", "d_vocab_out", "d_model", "d_head", "n_ctx")}
    try:
        proofs = [_proof(row) for row in _newest(rows)]
        parsed = {kind: json.loads(text) for kind, text in documents.items()}
        assumptions = tuple(map(str, json.loads(last["assumptions"] or "[]")))
    except (ValueError, TypeError, RecursionError) as error:
        raise ResultsError(f"{where}: the results of {shown} are damaged ({error!s:.200}). {_AGAIN}") from None
    damaged = [f"{p['label']}.{fault}" for p in proofs for fault in faults_of_proof(p)]
    damaged += [fault for kind, data in parsed.items() for fault in faults_of_document(kind, data, sizes)]
    if damaged:
        more = f" and {len(damaged) - _SHOWN} more" if len(damaged) > _SHOWN else ""
        raise ResultsError(f"{where}: the results of {shown} are damaged ({printable(', '.join(damaged[:_SHOWN]))}{more}). {_AGAIN}")
    return ModelResults(
        name=shown,
        sizes=sizes,
        sha256=str(last["weights_sha256"]),
        task=str(last["task"]),
        assumptions=assumptions,
        accuracy=_accuracy(rows),
        singular_ratio=last["singular_ratio"],
        proofs=proofs,
        statistics=parsed.get(STATISTICS, {}),
        mechanism=parsed.get(MECHANISM, {}),
        explorer=parsed.get(EXPLORER, {}),
        ledger=parsed.get(LEDGER, {}),
        tables={name: np.array(table, dtype=np.float32) for name, table in parsed.get(TABLES, {}).items()},
    )


_AGAIN = "Make them again with 'compactproofs report' or 'sweep'"


def _newest(rows: Iterable[Row]) -> Iterator[Row]:
    """One row for each strategy, whatever the options; a bound rather than none. The rows come in the order they were written."""
    kept: dict[tuple[str, str | None], Row] = {}
    for row in rows:
        key = row["label"], row["variant"]
        if key not in kept or row["status"] != "infeasible" or kept[key]["status"] == "infeasible":
            kept[key] = row
    return iter(kept.values())


def _proof(row: Row) -> Row:
    numbers = {name: int(row[name] or "0") for name in ("flops", "unexplained_dimensions")}
    return {**row, **numbers, "parameters": json.loads(row["parameters"] or "{}"), "lower": row["lower"] or 0.0}


def _accuracy(rows: Iterable[Row]) -> dict[str, Any] | None:
    """Exact rather than sampled, and the newest."""
    known = [row for row in rows if row["accuracy"] is not None]
    best = max(known, key=lambda row: (row["accuracy_method"] == "brute-force", row["written"] or 0), default=None)
    if best is None:
        return None
    return {
        "accuracy": best["accuracy"],
        "method": best["accuracy_method"],
        "interval": [best["accuracy_low"], best["accuracy_high"]],
        "confidence": best["accuracy_confidence"],
    }
