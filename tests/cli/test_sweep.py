"""`compactproofs sweep` as a user runs it, and as the system kills it."""

import json
import os
import signal
import subprocess
import time

import psutil
import pytest

import compactproofs as cp
from command import COMMAND, refused, started
from compactproofs.cli.output import rate_in_words
from compactproofs.results.store import open_results
from compactproofs.strategies.subcubic import AttentionError, DirectPath
from models import random_weights

MODELS = 8
MANY = 80
PATIENCE = 300
"""Seconds after which a process that should have ended is taken for one that hangs; on a busy machine everything takes longer."""

LABELS = ["cubic", "brute-force", *(f"subcubic/{path}/{error}/envelope" for path in DirectPath for error in AttentionError)]
STRATEGIES = [word for label in LABELS for word in ("--strategy", label)]


def run(*arguments):
    return subprocess.run([COMMAND, "sweep", *map(str, arguments)], capture_output=True, text=True)


def start(*arguments, stderr=subprocess.DEVNULL):
    return started(COMMAND, "sweep", *arguments, stdout=subprocess.DEVNULL, stderr=stderr)


def parts(out):
    return list(out.glob("*.parquet")) if out.exists() else []


def wait_for_parts(process, out, count):
    while len(parts(out)) < count:
        assert process.poll() is None, "finished before it could be killed"
        time.sleep(0.005)


def rows(out):
    with open_results(out) as results:
        return results.sql(
            "SELECT * EXCLUDE (seconds, search_seconds, counting_seconds, compile_seconds) FROM results ORDER BY model, label, variant"
        ).fetchall()


def saved_models(folder, count):
    folder.mkdir()
    for seed in range(count):
        cp.save(random_weights(seed), folder / f"seed{seed}.safetensors")
    return folder


@pytest.fixture
def models(tmp_path):
    return saved_models(tmp_path / "models", MODELS)


@pytest.fixture
def many_models(tmp_path):
    """So many that a sweep is certainly still running after its first results, however busy the machine is."""
    return saved_models(tmp_path / "models", MANY)


@pytest.mark.long
def test_killed_at_any_moment_and_resumed_gives_the_same_rows_once(models, tmp_path):
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert run(models, "--out", whole, *STRATEGIES).returncode == 0
    for count in (0, 1, 4):
        with start(models, "--out", out, "--workers", 2, *STRATEGIES) as process:
            if count == 0:
                wait_for_children(process, 2)
            wait_for_parts(process, out, count)
            os.killpg(process.pid, signal.SIGKILL)
        assert count <= len(parts(out)) < MODELS
    kept = len(parts(out))
    data = json.loads(run(models, "--out", out, *STRATEGIES, "--json", "-").stdout)
    assert (data["done"], data["skipped"], data["failed"]) == (MODELS - kept, kept, 0)
    assert len(parts(out)) == MODELS and len(rows(out)) == MODELS * len(LABELS)
    assert rows(out) == rows(whole)


def wait_for_children(process, count):
    while len(psutil.Process(process.pid).children(recursive=True)) < count:
        assert process.poll() is None
        time.sleep(0.005)


@pytest.mark.long
def test_workers_do_not_outlive_a_sweep_that_was_killed(many_models, tmp_path):
    with start(many_models, "--out", tmp_path / "out", "--workers", 2, *STRATEGIES) as process:
        wait_for_parts(process, tmp_path / "out", 1)
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
        assert len(children) >= 2
        assert psutil.wait_procs(children, timeout=PATIENCE)[1] == []


@pytest.mark.long
def test_ctrl_c_leaves_whole_parts_only(many_models, tmp_path):
    out, errors = tmp_path / "out", tmp_path / "stderr"
    with errors.open("w") as stderr, start(many_models, "--out", out, "--workers", 2, *STRATEGIES, stderr=stderr) as process:
        wait_for_parts(process, out, 1)
        children = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert psutil.wait_procs(children, timeout=PATIENCE)[1] == []
    last = errors.read_text().splitlines()[-1]  # a slow machine has time for lines of progress before it
    assert last == f"interrupted; finished models are kept in {out}, the same command goes on"
    assert 1 <= len(parts(out)) < MANY and len(list(out.iterdir())) == len(parts(out))
    assert len(rows(out)) == len(LABELS) * len(parts(out))


@pytest.mark.long
def test_the_summary_counts_and_shows_failures(models, tmp_path):
    out, csv = tmp_path / "out", tmp_path / "results.csv"
    (models / "bad.safetensors").write_bytes(b"no model")
    said = run(models, "--out", out, "--strategy", "cubic", "--strategy", "brute-force", "--upper", "--workers", 1, "--csv", csv)
    assert said.returncode == 0, said.stderr
    lines = said.stdout.splitlines()
    assert lines[0].startswith(f"{MODELS} done, 0 skipped, 1 failed in ") and lines[1] == "1 failed row in the results:"
    assert "bad.safetensors  (whole model)  ModelError: " in lines[2]
    assert lines[-1] == f"{csv}: {2 * MODELS + 1} rows" and len(csv.read_text().splitlines()) == 2 * MODELS + 2
    query = lines[-2].strip()
    with open_results(out) as results:
        assert [row[0] for row in results.sql(query).fetchall()] == ["bad.safetensors"]

    again = run(models, "--out", out, "--strategy", "brute-force", "--strategy", "cubic", "--upper", "--json", "-")
    data = json.loads(again.stdout)
    assert (data["models"], data["strategies"]) == (MODELS + 1, 2)
    assert (data["done"], data["skipped"], data["failed"], data["failed_rows"]) == (0, MODELS, 1, 1)
    (failure,) = data["failures"]
    assert failure["model"] == "bad.safetensors" and failure["label"] is None and "not a readable" in failure["reason"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none", "--out", "out"], "none is not a folder"),
        ([".", "--out", "out"], "no models in ."),
        ([".", "--out", "out", "--workers", "1", "--scheduler", "tcp://127.0.0.1:1"], "one or the other"),
        ([".", "--out", "out", "--csv", "nowhere/x.csv"], "does not exist"),
        (
            [".", "--out", "out", "--strategy", "cubic", "--scheduler", "nonsense"],
            "is not an address; expected one such as tcp://HOST:8786",
        ),
        ([".", "--out", "out", "--strategy", "cubic", "--variant", "published"], "none of the strategies chosen comes in that variant"),
        ([".", "--out", "out", "--strategy", "nonsense"], "known strategies"),
        ([".", "--out", "out", "--family", "nonsense"], "families: "),
    ],
)
def test_expected_errors_are_one_line(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in refused("sweep", *arguments)
    assert not (tmp_path / "out").exists()


def test_rates_read_well():
    assert [rate_in_words(speed, "models") for speed in (None, 3.21, 0.5, 0.001)] == ["", "3.21 models/s", "30 models/min", "3.6 models/h"]
