"""Result parts: one Parquet file per model, there whole or not at all. DuckDB reads and writes them."""

from __future__ import annotations

import glob
import hashlib
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from compactproofs.errors import MissingExtraError, SweepError
from compactproofs.sweeps.plan import Work
from compactproofs.sweeps.schema import COLUMNS, FAILED, Row

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_OLD = 3600.0
"""Seconds after which a half-written file is certainly nobody's any more."""


def part_of_weights(folder: Path, weights_sha256: str, work: Work) -> Path:
    """The part of a model: weights, strategies, parameters and package version are in its name."""
    return folder / f"{weights_sha256[:16]}-{work.digest}.parquet"


def part_of_unreadable(folder: Path, model: Path, work: Work) -> Path:
    """The part of a file that is not a model, named after its place: it has no weights to be named after."""
    place = hashlib.sha256(os.fsencode(model.resolve())).hexdigest()
    return folder / f"unreadable-{place[:16]}-{work.digest}.parquet"


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
