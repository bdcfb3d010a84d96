"""The columns of the one result store, with the types they have in Parquet. Counts are decimal strings: they exceed every integer type."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
"""A value for each column."""

FORMAT = "compactproofs-results-4"
"""In every row; changes with the columns, so that results of another edition are not taken for ours."""

PROOF = "proof"
"""The `kind` of a row about one strategy on one model, and of the failure of a model as a whole."""

STATISTICS, MECHANISM, EXPLORER, TABLES, LEDGER = "statistics", "mechanism", "explorer", "tables", "ledger"
DOCUMENTS = (STATISTICS, MECHANISM, EXPLORER, TABLES, LEDGER)
"""The `kind` of rows that hold something else about a model, as JSON in `data`."""

RUN = "run"
"""The `kind` of rows about the making of results: which run took how long, as JSON in `data`."""

COLUMNS = {
    "format": "VARCHAR",
    "kind": "VARCHAR",
    "plan": "VARCHAR",
    "version": "VARCHAR",
    "bounds": "VARCHAR",
    "written": "BIGINT",
    "task": "VARCHAR",
    "question": "VARCHAR",
    "upper_wanted": "BOOLEAN",
    "seconds_allowed": "DOUBLE",
    "folder": "VARCHAR",
    "model": "VARCHAR",
    "place": "VARCHAR",
    "weights_sha256": "VARCHAR",
    "d_vocab": "INTEGER",
    "d_vocab_out": "INTEGER",
    "d_model": "INTEGER",
    "d_head": "INTEGER",
    "n_ctx": "INTEGER",
    "assumptions": "VARCHAR",
    "accuracy": "DOUBLE",
    "accuracy_low": "DOUBLE",
    "accuracy_high": "DOUBLE",
    "accuracy_method": "VARCHAR",
    "accuracy_correct": "VARCHAR",
    "accuracy_total": "VARCHAR",
    "accuracy_confidence": "DOUBLE",
    "sampling_seed": "BIGINT",
    "singular_ratio": "DOUBLE",
    "strategy": "VARCHAR",
    "label": "VARCHAR",
    "family": "VARCHAR",
    "parameters": "VARCHAR",
    "variant": "VARCHAR",
    "sound": "BOOLEAN",
    "status": "VARCHAR",
    "reason": "VARCHAR",
    "lower": "DOUBLE",
    "upper": "DOUBLE",
    "correct_at_least": "VARCHAR",
    "correct_at_most": "VARCHAR",
    "total": "VARCHAR",
    "flops": "VARCHAR",
    "flops_breakdown": "VARCHAR",
    "integer_ops": "VARCHAR",
    "unexplained_dimensions": "VARCHAR",
    "seconds": "DOUBLE",
    "search_seconds": "DOUBLE",
    "counting_seconds": "DOUBLE",
    "compile_seconds": "DOUBLE",
    "arithmetic": "VARCHAR",
    "theorem": "VARCHAR",
    "data": "VARCHAR",
}

MEASURED = (*(name for name in COLUMNS if name.startswith("accuracy")), "sampling_seed", "singular_ratio")
"""What was measured of a model: the same in all rows of one part."""

FAILED = "failed"
"""The `status` of what went wrong; `reason` says why. A failure of the model as a whole has no strategy."""


def row(*parts: Row, **values: Any) -> Row:
    """A row with every column; what is not given is null."""
    given: Row = {"format": FORMAT, "kind": PROOF}
    for part in (*parts, values):
        given |= part
    unknown = given.keys() - COLUMNS.keys()
    if unknown:
        raise ValueError(f"no such columns: {', '.join(sorted(unknown))}")
    return {name: given.get(name) for name in COLUMNS}


def failure(error: BaseException) -> Row:
    """The columns that record what went wrong."""
    return {"status": FAILED, "reason": f"{type(error).__name__}: {error}"}
