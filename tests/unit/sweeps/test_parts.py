import os
import resource
import time

import duckdb
import pytest

from compactproofs.errors import SweepError
from compactproofs.strategies.cubic import Cubic
from compactproofs.sweeps.parts import export_csv, is_finished, open_results, read_part, remove_leftovers, write_part
from compactproofs.sweeps.plan import Work
from compactproofs.sweeps.schema import COLUMNS, FAILED, row

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
    assert described == COLUMNS


def test_columns_keep_their_types_when_every_value_is_null(tmp_path):
    write_part(tmp_path / "x.parquet", [row(model="m")])
    with open_results(tmp_path) as results:
        assert {name: kind for name, kind, *_ in results.sql("DESCRIBE results").fetchall()} == COLUMNS


def test_unknown_columns_are_refused():
    with pytest.raises(ValueError, match="no such columns: lowr"):
        row(lowr=1.0)


@pytest.mark.parametrize("kept", [0, 1, 100, -1])
def test_a_truncated_part_is_unreadable_and_named(tmp_path, kept):
    path = tmp_path / f"{SHA[:16]}-{WORK.digest}.parquet"
    write_part(path, rows_of("a"))
    path.write_bytes(path.read_bytes()[:kept])
    assert read_part(path) is None and not is_finished(None, SHA, WORK)
    with pytest.raises(SweepError, match=rf"a part that cannot be read .*{SHA[:16]}.*repeat the sweep"):
        open_results(tmp_path)


def test_a_part_is_finished_if_each_strategy_is_there_once():
    (good,) = rows_of("a")
    assert is_finished([good], SHA, WORK)
    assert is_finished([good, row(good, label=None, status=FAILED)], SHA, WORK)
    assert is_finished([row(good, label=None, status=FAILED)], SHA, WORK)
    assert not is_finished([], SHA, WORK)
    assert not is_finished([good, good], SHA, WORK)
    assert not is_finished([row(good, label="other")], SHA, WORK)
    assert not is_finished([row(good, plan="0" * 12)], SHA, WORK)
    assert not is_finished([good], "cd" * 32, WORK)


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
        with pytest.raises(SweepError, match=r"cannot write to .*what was finished before is kept"):
            write_part(tmp_path / "part.parquet", rows_of("a"))
        with pytest.raises(SweepError, match="cannot write to"):
            export_csv(tmp_path, tmp_path / "rows.csv")
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


def test_csv_equals_the_parquet(tmp_path):
    write_part(tmp_path / f"x-{WORK.digest}.parquet", rows_of("b", "a"))
    write_part(tmp_path / "y-000000000000.parquet", rows_of("of another sweep"))
    assert export_csv(tmp_path, tmp_path / "r.csv", WORK) == 2 and export_csv(tmp_path, tmp_path / "all.csv") == 3
    with duckdb.connect() as connection, open_results(tmp_path, WORK) as results:
        types = "{" + ", ".join(f"'{name}': '{kind}'" for name, kind in COLUMNS.items()) + "}"
        query = f"SELECT * FROM read_csv('{tmp_path}/r.csv', header=true, columns={types}) ORDER BY model"
        assert connection.sql(query).fetchall() == results.sql("SELECT * FROM results ORDER BY model").fetchall()
    assert sorted(path.name for path in tmp_path.glob("*.csv")) == ["all.csv", "r.csv"]
