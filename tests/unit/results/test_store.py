import os
import resource
import time

import duckdb
import pytest

from compactproofs.errors import ResultsError
from compactproofs.results.schema import COLUMNS, FORMAT, row
from compactproofs.results.store import SHOWN, open_results, pack, read_part, remove_leftovers, require_results, write_part
from compactproofs.strategies.cubic import Cubic
from compactproofs.sweeps.plan import Work

WORK = Work((Cubic(),))
SHA = "ab" * 32
HUGE = str(64**200 + 1)


def names(folder):
    return [path.name for path in folder.iterdir()]


def rows_of(*models, label="cubic"):
    common = {"plan": WORK.digest, "weights_sha256": SHA, "status": "proven", "lower": 0.1 + 0.2, "sound": True, "d_vocab": 64}
    return [row(common, model=model, label=label, correct_at_least=HUGE, reason='a "quoted", comma\nand a line') for model in models]


@pytest.mark.parametrize("place", ["plain", "it's [odd] *?", "model=other"])
def test_a_part_comes_back_as_it_was_written(tmp_path, place):
    folder = tmp_path / place
    folder.mkdir()
    path = folder / f"{SHA[:16]}-{WORK.digest}.parquet"
    write_part(path, rows_of("b", "a"))
    assert read_part(path) == rows_of("b", "a")
    assert names(folder) == [f"{SHA[:16]}-{WORK.digest}.parquet"]
    with open_results(folder) as results:
        assert results.sql("SELECT model, correct_at_least FROM results ORDER BY model").fetchall() == [("a", HUGE), ("b", HUGE)]
        described = {name: kind for name, kind, *_ in results.sql("DESCRIBE results").fetchall()}
    assert described == {name: COLUMNS[name] for name in SHOWN}


def test_columns_keep_their_types_when_every_value_is_null(tmp_path):
    write_part(tmp_path / "x.parquet", [row(model="m")])
    with open_results(tmp_path) as results:
        assert {name: kind for name, kind, *_ in results.sql("DESCRIBE part").fetchall()} == {**COLUMNS, "filename": "VARCHAR"}


def test_unknown_columns_are_refused():
    with pytest.raises(ValueError, match="no such columns: lowr"):
        row(lowr=1.0)


@pytest.mark.parametrize("kept", [0, 1, 100, -1])
def test_a_truncated_part_is_unreadable_and_named(tmp_path, kept):
    path = tmp_path / f"{SHA[:16]}-{WORK.digest}.parquet"
    write_part(path, rows_of("a"))
    path.write_bytes(path.read_bytes()[:kept])
    assert read_part(path) is None
    require_results(tmp_path)  # a sweep goes on: what is damaged is computed again
    with pytest.raises(ResultsError, match=rf"{SHA[:16]}.* is a part that cannot be read .*repeat the sweep"):
        open_results(tmp_path)


def test_writing_that_fails_leaves_the_old_part_and_no_debris(tmp_path, monkeypatch):
    path = tmp_path / f"{SHA[:16]}-{WORK.digest}.parquet"
    write_part(path, rows_of("old"))

    def full(descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_part(path, rows_of("new"))
    assert names(tmp_path) == [path.name] and read_part(path)[0]["model"] == "old"


def test_a_full_disk_is_an_error_in_words(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    write_part(tmp_path / "warm.parquet", rows_of("a"))
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        with pytest.raises(ResultsError, match=r"cannot write to .*what was finished before is kept"):
            write_part(tmp_path / "part.parquet", rows_of("a"))
        with pytest.raises(ResultsError, match="cannot write to"):
            pack(tmp_path, tmp_path / "packed.parquet")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(tmp_path) == ["warm.parquet"]


def test_leftovers_are_removed_when_nobody_can_be_writing_them(tmp_path):
    old, new = tmp_path / ".a.parquet.1.tmp", tmp_path / ".b.parquet.2.tmp"
    for path in (old, new):
        path.write_text("half")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    remove_leftovers(tmp_path)
    assert names(tmp_path) == [new.name]


def test_of_rows_about_the_same_the_newest_is_shown(tmp_path):
    for number, (written, lower) in enumerate([(2, 0.5), (3, 0.7), (1, 0.9)]):
        write_part(tmp_path / f"{number}.parquet", [row(rows_of("a")[0], written=written, lower=lower)])
    write_part(tmp_path / "other.parquet", [row(rows_of("a")[0], written=0, lower=0.2, seconds_allowed=5.0)])
    with open_results(tmp_path) as results:
        assert results.sql("SELECT lower FROM results ORDER BY ALL").fetchall() == [(0.2,), (0.7,)]
        assert results.sql("SELECT count(*) FROM part").fetchall() == [(4,)]
    assert pack(tmp_path, tmp_path / "packed.parquet") == 2


def change(path, query):
    new = path.with_suffix(".new")
    duckdb.sql(f"COPY ({query}) TO '{new}' (FORMAT parquet)".replace("{part}", f"'{path}'"))
    new.replace(path)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * EXCLUDE (format) FROM {part}",
        "SELECT * REPLACE ('compactproofs-results-3' AS format) FROM {part}",
        "SELECT * EXCLUDE (format, kind, task, question, written, data) FROM {part}",
    ],
)
@pytest.mark.parametrize("beside", [False, True])
def test_results_of_another_edition_are_refused(tmp_path, query, beside):
    write_part(tmp_path / "old.parquet", rows_of("a"))
    change(tmp_path / "old.parquet", query)
    if beside:
        write_part(tmp_path / "new.parquet", rows_of("a"))
    for reading in (open_results, require_results, lambda folder: pack(folder, tmp_path / "x")):
        with pytest.raises(ResultsError, match=rf"holds results of another edition .*old.parquet is not of the format {FORMAT}"):
            reading(tmp_path)


def test_columns_of_other_types_are_refused(tmp_path):
    write_part(tmp_path / "odd.parquet", rows_of("a"))
    change(tmp_path / "odd.parquet", "SELECT * REPLACE ('<img>' AS lower) FROM {part}")
    with pytest.raises(ResultsError, match="another edition"):
        open_results(tmp_path)
