"""`compactproofs reproduce` as a user runs it, and as the system kills it: about two minutes on two cores."""

import os
import signal
import subprocess
import time

import pytest

from command import COMMAND, run
from compactproofs.results.store import open_results

ARGUMENTS = ("--config", "k4", "--seeds", "4")


@pytest.mark.slow
def test_killed_in_the_middle_it_goes_on_and_writes_every_page(tmp_path):
    pytest.importorskip("torch")
    out = tmp_path / "out"
    parts = out / "results"
    process = subprocess.Popen([COMMAND, "reproduce", *ARGUMENTS, "--out", str(out)], start_new_session=True)
    while not parts.exists() or not list(parts.glob("*.parquet")):
        assert process.poll() is None, "finished before it could be killed"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = {path: path.stat().st_mtime_ns for path in parts.glob("*.parquet")}
    assert 1 <= len(finished) < 4
    run("reproduce", *ARGUMENTS, "--out", out)
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    with open_results(parts) as results:
        assert results.sql("SELECT count(*), count(DISTINCT model), count(*) FILTER (status = 'failed') FROM results").fetchall() == [
            (1036, 4, 0)
        ]
    pages = {path.name for path in (out / "pages").iterdir()}
    assert {"index.md", "k4.md", "models.md", "comparison.md", "agreement.md", "summary.csv", "k4-pareto.svg"} <= pages
