"""Result parts: one Parquet file per model, there whole or not at all. DuckDB reads and writes them."""

from __future__ import annotations

import glob
import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from compactproofs.errors import MissingExtraError, SweepError
from compactproofs.model.files import whole
from compactproofs.model.weights import Weights
from compactproofs.sweeps.plan import Plan, Work
from compactproofs.sweeps.schema import COLUMNS, FAILED, Row
from compactproofs.text import as_utf8

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
    file = f"{plan.folder.resolve()}\0{model.relative_to(plan.folder).as_posix()}"
    place = hashlib.sha256(file.encode("utf-8", "surrogateescape")).hexdigest()[:8]
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

    So the parts in `out` show every file with its present content, once for each set of options that it was swept with. Also put aside
    are parts of a folder that is gone and whose content is here under another name.
    """
    contents = {path.name.split("-")[0] for path in present}
    as_they_are = {_without_plan(path) for path in present}
    for path in out.glob("*.parquet"):
        rows = None if _without_plan(path) in as_they_are else read_part(path)
        if not rows:
            continue
        folder = rows[0]["folder"] or ""
        if folder == _folder(plan) or (path.name.split("-")[0] in contents and not Path(folder).exists()):
            (out / STALE).mkdir(exist_ok=True)
            with suppress(FileNotFoundError):  # another sweep was quicker
                path.replace(out / STALE / path.name)


def _without_plan(part: Path) -> str:
    """Content and place of a model file, as they are in the name of its part."""
    return part.name.rpartition("-")[0]


def _folder(plan: Plan) -> str:
    return as_utf8(str(plan.folder.resolve()))


def write_part(path: Path, rows: Sequence[Row]) -> None:
    """Write all rows of a model. Readers, and whoever comes after a crash, see the whole part or none."""
    selected = ", ".join(f'unnest(?::{kind}[]) AS "{name}"' for name, kind in COLUMNS.items())
    values = [[as_utf8(value) if isinstance(value := row[name], str) else value for row in rows] for name in COLUMNS]
    with whole(path) as temporary, _writing_to(path.parent), _connect() as connection:
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
    with open_results(folder, work) as connection, whole(target) as temporary, _writing_to(target.parent):
        rows = connection.sql("SELECT * FROM results ORDER BY model, plan, label NULLS FIRST, variant NULLS FIRST")
        rows.write_csv(str(temporary), header=True)
        count: int = connection.sql("SELECT count(*) FROM results").fetchall()[0][0]
    return count


def require_utf8(folder: Path) -> None:
    """Raise unless DuckDB can open files there."""
    if as_utf8(str(folder)) != str(folder):
        raise SweepError(f"--out {folder}: DuckDB opens no files in a folder whose name is not UTF-8; choose another name")


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
def _writing_to(folder: Path) -> Iterator[None]:
    """While DuckDB writes: a disk without room is an error in words."""
    import duckdb

    try:
        yield
    except (duckdb.Error, UnicodeEncodeError) as error:
        reason = str(error).splitlines()[0]
        raise SweepError(f"cannot write to {folder} ({reason}); what was finished before is kept. Is there room?") from None


def _connect() -> DuckDBPyConnection:
    """A connection of its own to the one database of this process: to start one for every part takes as long as writing it."""
    return _database().cursor()


@cache
def _database() -> DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config={"threads": 1})
