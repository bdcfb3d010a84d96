"""Result parts: one Parquet file per model, there whole or not at all. DuckDB reads and writes them."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from compactproofs.errors import MissingExtraError, SweepError
from compactproofs.model.weights import Weights
from compactproofs.sweeps.plan import Plan, Work
from compactproofs.sweeps.schema import COLUMNS, FAILED, Row

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

STALE = "stale"
"""Folder, within the results, for parts of files that have changed."""

_OLD = 3600.0
"""Seconds after which a half-written file is certainly nobody's any more."""


def content_of(weights: Weights) -> str:
    """A name for what is proven about: the network, and what was assumed about its file."""
    text = json.dumps([weights.sha256, list(weights.assumptions)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def part_of_model(out: Path, plan: Plan, model: Path, weights: Weights | None) -> Path:
    """The part of a model file: what is in it now (None: it cannot be read), where it is, and what was asked are in its name."""
    place = hashlib.sha256(f"{_folder(plan)}\0{plan.name(model)}".encode("utf-8", "surrogateescape")).hexdigest()[:8]
    content = "unreadable" if weights is None else content_of(weights)
    return out / f"{content}-{place}-{plan.work.digest}.parquet"


def rows_for(out: Path, plan: Plan, model: Path, weights: Weights) -> list[Row] | None:
    """Finished rows about a model: its own part, or rows about the same content under another name, written down under this one."""
    path = part_of_model(out, plan, model, weights)
    same = f"{content_of(weights)}-*-{plan.work.digest}.parquet"
    for other in (path, *out.glob(same), *(out / STALE).glob(same)):
        rows = read_part(other)
        if rows and is_finished(rows, weights.sha256, plan.work):
            if other != path:
                rows = renamed(rows, plan, model)
                write_part(path, rows)
            return rows
    return None


def renamed(rows: Sequence[Row], plan: Plan, model: Path) -> list[Row]:
    """The same rows about another file of the same content."""
    return [{**row, "folder": _folder(plan), "model": plan.name(model)} for row in rows]


def put_aside(out: Path, plan: Plan, present: set[Path]) -> None:
    """Move parts of this folder's files that are not as they were to `stale/`: replaced, renamed and deleted files have no rows.

    So the parts in `out` show every file once, with its present content. Also put aside are parts of a folder that is gone and whose
    content is here under another name.
    """
    contents = {path.name.split("-")[0] for path in present}
    for path in set(out.glob(f"*-{plan.work.digest}.parquet")) - present:
        rows = read_part(path)
        if not rows:
            continue
        folder = rows[0]["folder"] or ""
        if folder == _folder(plan) or (path.name.split("-")[0] in contents and not Path(folder).exists()):
            (out / STALE).mkdir(exist_ok=True)
            with suppress(FileNotFoundError):  # another sweep was quicker
                path.replace(out / STALE / path.name)


def _folder(plan: Plan) -> str:
    return str(plan.folder.resolve())


def write_part(path: Path, rows: Sequence[Row]) -> None:
    """Write all rows of a model. Readers, and whoever comes after a crash, see the whole part or none."""
    selected = ", ".join(f'unnest(?::{kind}[]) AS "{name}"' for name, kind in COLUMNS.items())
    values = [[row[name] for row in rows] for name in COLUMNS]
    with _whole(path) as temporary, _connect() as connection:
        connection.sql(f"SELECT {selected}", params=values).write_parquet(str(temporary), compression="zstd")


def read_part(path: Path) -> list[Row] | None:
    """The rows of a part in the order written; None if it is missing, truncated or otherwise unreadable."""
    if not path.is_file():
        return None
    import_duckdb()
    import duckdb

    columns = ", ".join(f'"{name}"' for name in COLUMNS)
    query = f"SELECT {columns} FROM read_parquet(?, hive_partitioning=false)"  # noqa: S608
    try:
        with _connect() as connection:
            found = connection.execute(query, [glob.escape(str(path))]).fetchall()
    except (duckdb.Error, ValueError):
        return None
    return [dict(zip(COLUMNS, values, strict=True)) for values in found]


def is_finished(rows: list[Row] | None, weights_sha256: str, work: Work) -> bool:
    """Whether these are all the rows of a model: every strategy once, or the failure of the model as a whole."""
    if not rows or any((row["weights_sha256"], row["plan"]) != (weights_sha256, work.digest) for row in rows):
        return False
    found = [(row["label"], row["variant"]) for row in rows if row["label"] is not None]
    wanted = [(s.label, s.variant) for s in work.strategies]
    return sorted(found, key=str) == sorted(wanted, key=str) or (not found and rows[0]["status"] == FAILED)


def open_results(folder: str | Path, work: Work | None = None) -> DuckDBPyConnection:
    """A DuckDB connection with a view `results`: every part in the folder, or those of one sweep.

    Example:
        >>> import tempfile
        >>> open_results(tempfile.mkdtemp()).sql("SELECT count(*) FROM results").fetchall()
        [(0,)]
    """
    import_duckdb()
    import duckdb

    pattern = "*.parquet" if work is None else f"*-{work.digest}.parquet"
    connection = duckdb.connect()
    if not any(Path(folder).glob(pattern)):
        columns = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
        connection.execute(f"CREATE TABLE results ({columns})")
        return connection
    files = f"{glob.escape(str(folder))}/{pattern}".replace("'", "''")
    source = f"read_parquet('{files}', union_by_name=true, hive_partitioning=false)"
    try:
        connection.execute(f"CREATE VIEW results AS SELECT * FROM {source}")  # noqa: S608
        connection.execute("SELECT count(*) FROM results").fetchall()  # opens every part
    except duckdb.Error as error:
        connection.close()
        first = str(error).splitlines()[0]
        raise SweepError(f"{folder} has a part that cannot be read ({first}); remove it, or repeat the sweep that wrote it") from None
    return connection


def export_csv(folder: str | Path, path: str | Path, work: Work | None = None) -> int:
    """Write the results as one CSV file, sorted by model and strategy; returns the number of rows."""
    target = Path(path)
    with open_results(folder, work) as connection, _whole(target) as temporary:
        rows = connection.sql("SELECT * FROM results ORDER BY model, plan, label NULLS FIRST, variant NULLS FIRST")
        rows.write_csv(str(temporary), header=True)
        count: int = connection.sql("SELECT count(*) FROM results").fetchall()[0][0]
    return count


def remove_leftovers(folder: Path) -> None:
    """Delete what writers that were killed left behind."""
    for path in folder.glob(".*.tmp"):
        try:
            if time.time() - path.stat().st_mtime > _OLD:
                path.unlink()
        except FileNotFoundError:  # another sweep was quicker
            continue


def import_duckdb() -> None:
    """Say how to get DuckDB if it is not there."""
    try:
        import duckdb  # noqa: F401
    except ImportError:
        raise MissingExtraError("sweeps need duckdb: pip install 'compactproofs[sweep]'") from None


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A name to write to; the file takes its place, and is on the disk, when the block ends well."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _connect() -> DuckDBPyConnection:
    """A connection of its own to the one database of this process: to start one for every part takes as long as writing it."""
    return _database().cursor()


@cache
def _database() -> DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config={"threads": 1})
