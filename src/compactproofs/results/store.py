"""The store: a folder of Parquet parts, each there whole or not at all. DuckDB reads and writes them.

The name of a part, CONTENT-PLACE-WORK.parquet, says which network it is about (and what was assumed about its file), under which name the
file is known, and what was asked. Any number of models, strategies and questions share a folder; a later part adds rows, and of two rows
about the same thing the newer one is shown.
"""

from __future__ import annotations

import glob
import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from compactproofs.errors import MissingExtraError, ResultsError
from compactproofs.model.files import whole
from compactproofs.model.kinds import Model
from compactproofs.results.schema import COLUMNS, FORMAT, PROOF, RUN, Row
from compactproofs.text import as_utf8

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

STALE = "stale"
"""Folder, within the results, for parts of files that have changed."""

UNREADABLE = "unreadable"
"""Stands for the content of a file that is no model."""

_OLD = 3600.0
"""Seconds after which a half-written file is certainly nobody's any more."""

SHOWN = tuple(name for name in COLUMNS if name not in ("format", "kind", "written", "data"))
"""The columns of the view `results`: what a proof says, not when it was written down."""

_SAME = ("folder", "model", "place", "question", "label", "variant", "upper_wanted", "seconds_allowed")
"""Rows that agree in all of these answer the same question about the same file."""


class Place(NamedTuple):
    """Where a model file is, as results have it."""

    folder: str
    model: str
    """Path within the folder."""
    digest: str
    """Tells files apart whose names look the same."""

    @classmethod
    def of(cls, folder: Path, model: Path) -> Place:
        within = model.relative_to(folder).as_posix()
        digest = hashlib.sha256(f"{folder.resolve()}\0{within}".encode("utf-8", "surrogateescape")).hexdigest()[:8]
        return cls(as_utf8(str(folder.resolve())), as_utf8(within), digest)

    def part(self, content: str, work: str) -> str:
        """The name of a part about the file."""
        return f"{content}-{self.digest}-{work}.parquet"

    def named(self, rows: Iterable[Row]) -> list[Row]:
        """The rows under the name of this file."""
        return [{**row, "folder": self.folder, "model": self.model, "place": self.digest} for row in rows]


def content_of(weights: Model) -> str:
    """A name for what is proven about: the network, and what was assumed about its file."""
    text = json.dumps([weights.sha256, list(weights.assumptions)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


Key = tuple[str, str | None, str | None]
"""Kind, label and variant of a row."""


class Entry(NamedTuple):
    """What there is: one row, and the part that has it."""

    part: Path
    kind: str
    label: str | None
    variant: str | None
    status: str

    @property
    def key(self) -> Key:
        return self.kind, self.label, self.variant

    @property
    def content(self) -> str:
        return self.part.name.split("-")[0]

    @property
    def place(self) -> str:
        return self.part.name.split("-")[1]

    @property
    def work(self) -> str:
        return self.part.stem.rpartition("-")[2]


def entries(out: Path, plan: str) -> dict[str, list[Entry]]:
    """The rows of one plan, by content; also those put aside, for a file may come back. Damaged parts have no rows."""
    found: dict[str, list[Entry]] = {}
    files = [*out.glob("*.parquet"), *(out / STALE).glob("*.parquet")]
    query = "SELECT filename, kind, label, variant, status FROM part WHERE plan = ?"
    for filename, *key in _select(files, query, [plan]):
        entry = Entry(Path(filename), *key)
        found.setdefault(entry.content, []).append(entry)
    return found


def put_aside(out: Path, folder: str, present: set[str]) -> None:
    """Move parts of this folder's files that are not as they were to `stale/`: replaced, renamed and deleted files have no rows.

    So the parts in `out` show every file with its present content. Also put aside are parts of a folder that is gone and whose content is
    here under another name.

    Args:
        out: the results.
        folder: where the models are.
        present: CONTENT-PLACE of the files that are there.
    """
    contents = {name.split("-")[0] for name in present} - {UNREADABLE}
    others = [path for path in out.glob("*.parquet") if path.name.rpartition("-")[0] not in present]
    for filename, owner in _select(others, "SELECT DISTINCT filename, coalesce(folder, '') FROM part WHERE model IS NOT NULL", []):
        path = Path(filename)
        if owner == folder or (path.name.split("-")[0] in contents and not Path(owner).exists()):
            (out / STALE).mkdir(exist_ok=True)
            with suppress(FileNotFoundError):  # another sweep was quicker
                path.replace(out / STALE / path.name)


def write_part(path: Path, rows: Sequence[Row]) -> None:
    """Write rows. Readers, and whoever comes after a crash, see the whole part or none."""
    selected = ", ".join(f'unnest(?::{kind}[]) AS "{name}"' for name, kind in COLUMNS.items())
    values = [[as_utf8(value) if isinstance(value := row[name], str) else value for row in rows] for name in COLUMNS]
    with whole(path) as temporary, writing_to(path.parent), _connect() as connection:
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


def open_results(folder: str | Path) -> DuckDBPyConnection:
    """A DuckDB connection with two views: `results`, every strategy on every file, the newest row of each; and `part`, all rows there are.

    Give a folder of results, or a single part.

    Example:
        >>> import tempfile
        >>> open_results(tempfile.mkdtemp()).sql("SELECT count(*) FROM results").fetchall()
        [(0,)]
    """
    import_duckdb()
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    files = [Path(folder)] if Path(folder).is_file() else sorted(Path(folder).glob("*.parquet"))
    try:
        if files:
            connection.execute(f"CREATE VIEW part AS SELECT * FROM {_source(files)}")  # noqa: S608
            others = connection.execute("SELECT filename FROM part WHERE format IS DISTINCT FROM ? LIMIT 1", [FORMAT]).fetchone()
            kinds = {name: kind for name, kind, *_ in connection.execute("DESCRIBE part").fetchall() if name != "filename"}
            if others is not None or kinds != COLUMNS:
                _refuse_old(files[0] if others is None else Path(others[0]))
        else:
            columns = ", ".join(f'"{name}" {kind}' for name, kind in {**COLUMNS, "filename": "VARCHAR"}.items())
            connection.execute(f"CREATE TABLE part ({columns})")
    except duckdb.Error as error:
        connection.close()
        for path in files:
            _require_ours(path)
        raise ResultsError(f"{folder} cannot be read ({str(error).splitlines()[0]})") from None
    newest = f"row_number() OVER (PARTITION BY {', '.join(_SAME)} ORDER BY written DESC, filename) = 1"
    connection.execute(f"CREATE VIEW newest AS SELECT * FROM part WHERE kind = '{PROOF}' QUALIFY {newest}")  # noqa: S608
    connection.execute(f"CREATE VIEW results AS SELECT {', '.join(SHOWN)} FROM newest")  # noqa: S608
    return connection


def pack(folder: Path, path: Path) -> int:
    """Write everything that is in a folder of results as one part, the newest rows only; returns their number.

    For others, who do not have the folders of the models: of these the last name is kept.
    """
    partition = ", ".join(("kind", *_SAME))
    newest = f"kind = '{RUN}' OR row_number() OVER (PARTITION BY {partition} ORDER BY written DESC, filename) = 1"
    columns = ", ".join(f'"{name}"' for name in COLUMNS).replace('"folder"', "parse_filename(folder) AS folder")
    order = "n_ctx, d_vocab, d_model, folder, model, kind, label, variant"
    with open_results(folder) as connection, whole(path) as temporary, writing_to(path.parent):
        rows = connection.sql(f"SELECT {columns} FROM part QUALIFY {newest} ORDER BY {order}")  # noqa: S608
        rows.write_parquet(str(temporary), compression="zstd", row_group_size=1_000_000)
        return int(connection.execute("SELECT count(*) FROM read_parquet(?)", [glob.escape(str(temporary))]).fetchall()[0][0])


def require_results(folder: Path) -> None:
    """Raise if results cannot be kept there: DuckDB cannot open it, or it holds results of another edition."""
    if as_utf8(str(folder)) != str(folder):
        raise ResultsError(f"--out {folder}: DuckDB opens no files in a folder whose name is not UTF-8; choose another name")
    import_duckdb()
    import duckdb

    files = sorted(folder.glob("*.parquet"))
    with suppress(duckdb.Error):
        if not _select(files, "SELECT filename FROM part WHERE format IS DISTINCT FROM ? LIMIT 1", [FORMAT]):
            return
    for path in files:
        if not _is_damaged(path):
            _require_ours(path)


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
        raise MissingExtraError("results are kept with duckdb", "sweep") from None


def _select(files: Sequence[Path], query: str, parameters: list[str]) -> list[tuple[str, ...]]:
    """What a query finds in `part`, all of these files; without those that are damaged, if there are any."""
    import duckdb

    if not files:
        return []
    try:
        with _connect() as connection:
            return connection.execute(query.replace("FROM part", f"FROM {_source(files)}"), parameters).fetchall()
    except duckdb.Error:
        sound = [path for path in files if not _is_damaged(path)]
        if len(sound) == len(files):
            raise
        return _select(sound, query, parameters)


def _source(files: Sequence[Path]) -> str:
    """These files as a table."""
    names = ", ".join("'" + glob.escape(str(path)).replace("'", "''") + "'" for path in files)
    return f"read_parquet([{names}], union_by_name=true, hive_partitioning=false, filename=true)"


def _is_damaged(path: Path) -> bool:
    import duckdb

    try:
        with _connect() as connection:
            connection.execute("SELECT * FROM read_parquet(?, hive_partitioning=false)", [glob.escape(str(path))]).fetchall()
    except (duckdb.Error, ValueError):
        return True
    return False


def _require_ours(path: Path) -> None:
    """Raise unless this is a part of today's format."""
    import duckdb

    try:
        with _connect() as connection:
            found = connection.execute("SELECT * FROM read_parquet(?, hive_partitioning=false) LIMIT 1", [glob.escape(str(path))])
            names = [name for name, *_ in found.description or ()]
            first = found.fetchone()
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise ResultsError(f"{path} is a part that cannot be read ({reason}); remove it, or repeat the sweep that wrote it") from None
    if first is not None and dict(zip(names, first, strict=True)).get("format") != FORMAT:
        _refuse_old(path)


def _refuse_old(path: Path) -> None:
    raise ResultsError(
        f"{path.parent} holds results of another edition of compactproofs ({path.name} is not of the format {FORMAT}); "
        "make them anew in another folder, or move the old ones away"
    )


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """While DuckDB writes: a disk without room is an error in words."""
    import duckdb

    try:
        yield
    except (duckdb.Error, UnicodeEncodeError) as error:
        reason = str(error).splitlines()[0]
        raise ResultsError(f"cannot write to {folder} ({reason}); what was finished before is kept. Is there room?") from None


def _connect() -> DuckDBPyConnection:
    """A connection of its own to the one database of this process: to start one for every part takes as long as writing it."""
    return _database().cursor()


@cache
def _database() -> DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config={"threads": 1})
