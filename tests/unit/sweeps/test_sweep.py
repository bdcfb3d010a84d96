"""Sweeps in a local pool: what is kept, what is skipped, what is recorded when things go wrong."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache

import numpy as np
import psutil
import pytest
from safetensors.numpy import save_file

import compactproofs as cp
from compactproofs.errors import ResultsError, SweepError
from compactproofs.model.config import Told
from compactproofs.results.store import open_results
from compactproofs.strategies.brute_force import BruteForce
from compactproofs.strategies.cubic import Cubic
from compactproofs.strategies.registry import strategy
from compactproofs.sweeps.executors import LocalPool, _start_worker
from compactproofs.sweeps.plan import plan_sweep
from compactproofs.sweeps.survey import Missing
from compactproofs.sweeps.sweep import _Keeper, export_csv, run_plan
from compactproofs.sweeps.threads import limited_children
from compactproofs.sweeps.work import prove_model
from models import random_weights
from sweep_strategies import Environment, Kills, Raises


@pytest.fixture
def models(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    for seed in range(4):
        cp.save(random_weights(seed), folder / f"seed{seed}.safetensors")
    return folder


class _Kept(LocalPool):
    """One worker for many sweeps."""

    @contextmanager
    def open(self):
        yield _pool()


@cache
def _pool():
    with limited_children():
        pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _start_worker)
        pool.submit(os.getpid).result()
    return pool


@pytest.fixture(scope="module")
def one_worker():
    """A process for all tests that are not about processes: each takes seconds to start."""
    yield _Kept(1)
    _pool().shutdown()
    _pool.cache_clear()


def results(out, columns="model, label, status, reason"):
    with open_results(out) as connection:
        return connection.sql(f"SELECT {columns} FROM results ORDER BY ALL").fetchall()


def counts(summary):
    return summary.done, summary.skipped, summary.failed


def test_rows_say_what_the_library_says(models, tmp_path):
    seen = []
    summary = cp.sweep(models, tmp_path / "out", ["cubic", "brute-force"], upper=True, workers=2, progress=lambda *p: seen.append(p))
    assert counts(summary) == (4, 0, 0) and summary.failed_rows == 0
    assert seen == [(done, 4) for done in range(5)]
    for model, label, sha256, least, most, total, lower, upper, accuracy, method, ratio, flops in results(
        tmp_path / "out",
        "model, label, weights_sha256, correct_at_least, correct_at_most, total, lower, upper, accuracy, accuracy_method, "
        "singular_ratio, flops",
    ):
        weights = cp.load(models / model)
        proof = cp.prove(weights, label, upper=True)
        assert sha256 == weights.sha256 and flops == str(proof.flops)
        assert (least, most, total) == (str(proof.correct_at_least), str(proof.correct_at_most), "125")
        assert (lower, upper) == (proof.lower, proof.upper)
        assert accuracy == cp.accuracy(weights).accuracy and method == "brute-force"
        values = np.linalg.svd(((weights.W_E + weights.W_pos[-1]) @ weights.W_Q) @ ((weights.W_E + weights.W_pos.mean(0)) @ weights.W_K).T)[
            1
        ]
        assert ratio == pytest.approx(values[0] / values[1], rel=1e-3)


def test_a_second_run_computes_nothing_and_a_changed_model_is_new(models, tmp_path):
    plan, out = plan_sweep(models, ["cubic"]), tmp_path / "out"
    run_plan(plan, out, LocalPool(1))
    before = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    assert counts(run_plan(plan, out, _NoWorkers())) == (0, 4, 0)
    assert {path: path.stat().st_mtime_ns for path in out.iterdir()} == before
    cp.save(random_weights(9), models / "seed2.safetensors")
    cp.save(random_weights(3), models / "same-as-seed3.safetensors")
    assert counts(run_plan(plan_sweep(models, ["cubic"]), out, LocalPool(1))) == (1, 4, 0)
    assert_rows_are_the_files(out, models)


def assert_rows_are_the_files(out, models, strategies=("cubic",)):
    """Every file once for each strategy, with its present content."""
    found = results(out, "model, weights_sha256, assumptions, label")
    files = {path.relative_to(models).as_posix(): cp.load(path) for path in models.rglob("*.safetensors")}
    expected = [(name, w.sha256, json.dumps(list(w.assumptions)), label) for name, w in files.items() for label in strategies]
    assert found == sorted(expected)


def test_replaced_renamed_and_deleted_files_leave_no_rows_behind(models, tmp_path, one_worker):
    out = tmp_path / "out"

    def again(expected):
        assert counts(run_plan(plan_sweep(models, ["cubic"]), out, one_worker)) == expected
        assert_rows_are_the_files(out, models)

    again((4, 0, 0))
    cp.save(random_weights(8), models / "seed0.safetensors")
    again((1, 3, 0))
    cp.save(random_weights(0), models / "seed0.safetensors")  # the first content is not computed again
    again((0, 4, 0))
    (models / "inner").mkdir()
    (models / "seed1.safetensors").rename(models / "inner" / "renamed.safetensors")
    again((0, 4, 0))
    (models / "seed2.safetensors").unlink()
    again((0, 3, 0))
    one, other = models / "seed0.safetensors", models / "seed3.safetensors"
    one.rename(tmp_path / "x")
    other.rename(one)
    (tmp_path / "x").rename(other)
    again((0, 3, 0))


def test_a_file_whose_metadata_changes_has_rows_with_the_new_assumptions(models, tmp_path, one_worker):
    out, path = tmp_path / "out", models / "seed0.safetensors"
    run_plan(plan_sweep(models, ["cubic"]), out, one_worker)
    said = {"n_heads": "1", "normalization_type": "none"}
    save_file({name: np.array(t) for name, t in random_weights(0).tensors.items()}, path, said)
    assert cp.load(path) == random_weights(0) and cp.load(path).assumptions
    assert counts(run_plan(plan_sweep(models, ["cubic"]), out, one_worker)) == (1, 3, 0)
    assert_rows_are_the_files(out, models)


@pytest.mark.long
def test_a_file_that_was_replaced_leaves_no_rows_of_other_options_behind(models, tmp_path, one_worker):
    out = tmp_path / "out"

    def sweep(**options):
        return counts(run_plan(plan_sweep(models, ["cubic"], **options), out, one_worker))

    def assert_present():
        files = {path.name: cp.load(path).sha256 for path in models.iterdir()}
        found = results(out, "DISTINCT model, weights_sha256")
        assert dict(found) == files and len(found) == len(files)

    assert sweep() == (4, 0, 0)
    cp.save(random_weights(9), models / "seed2.safetensors")
    (models / "seed3.safetensors").unlink()
    assert sweep(upper=True) == (3, 0, 0)
    assert_present()
    assert len(results(out)) == 5  # what has not changed keeps its rows of both sweeps
    assert sweep() == (1, 2, 0)
    assert_present()
    cp.save(random_weights(2), models / "seed2.safetensors")  # the first content is not computed again
    assert sweep() == (0, 3, 0)
    assert_present()


def test_file_names_that_are_not_utf_8_have_rows(models, tmp_path):
    folder = tmp_path / os.fsdecode(b"f\xfe")
    folder.mkdir()
    cp.save(random_weights(0), folder / os.fsdecode(b"good\xff.safetensors"))
    cp.save(random_weights(0), folder / r"good\udcff.safetensors")
    (folder / os.fsdecode(b"bad\xff.safetensors")).write_bytes(b"no model")
    out = tmp_path / "out"
    assert counts(run_plan(plan_sweep(folder, ["cubic"]), out, LocalPool(1))) == (1, 1, 1)
    found = results(out, "model, status, folder, reason")
    shown = str(tmp_path / r"f\udcfe")
    assert [row[:3] for row in found] == [
        (r"bad\udcff.safetensors", "failed", shown),
        *[(r"good\udcff.safetensors", "proven", shown)] * 2,
    ]
    assert r"bad\udcff.safetensors is not a readable safetensors file" in found[0][3]
    assert counts(run_plan(plan_sweep(folder, ["cubic"]), out, _NoWorkers())) == (0, 2, 1)
    with pytest.raises(ResultsError, match="whose name is not UTF-8"):
        run_plan(plan_sweep(models, ["cubic"]), tmp_path / os.fsdecode(b"out\xff"), LocalPool(1))


def test_a_folder_that_moved_is_shown_once_and_another_folder_beside(models, tmp_path, one_worker):
    out, moved, other = tmp_path / "out", tmp_path / "moved", tmp_path / "other"
    run_plan(plan_sweep(models, ["cubic"]), out, one_worker)
    models.rename(moved)
    assert counts(run_plan(plan_sweep(moved, ["cubic"]), out, _NoWorkers())) == (0, 4, 0)
    assert_rows_are_the_files(out, moved)
    other.mkdir()
    cp.save(random_weights(3), other / "seed0.safetensors")
    assert counts(run_plan(plan_sweep(other, ["cubic"]), out, _NoWorkers())) == (0, 1, 0)
    assert len(results(out)) == 5
    assert results(out, "DISTINCT folder") == sorted([(str(moved),), (str(other),)])


def test_a_change_of_the_code_makes_results_new(models, tmp_path, monkeypatch, one_worker):
    out = tmp_path / "out"
    run_plan(plan_sweep(models, ["cubic"]), out, one_worker)
    changed = plan_sweep(models, ["cubic"], bounds="0123456789ab")
    with pytest.raises(SweepError, match=r"planned with .* \(0123456789ab\); install the same version"):
        run_plan(changed, out, LocalPool(1))


def test_a_file_that_changes_while_it_is_proven_about_is_not_given_the_old_rows(models, tmp_path):
    plan, out = plan_sweep(models, ["cubic"]), tmp_path / "out"
    keeper = _Keeper(plan, out, 1, None)
    out.mkdir()
    rows = prove_model(plan.work, random_weights(0))
    cp.save(random_weights(9), models / "seed0.safetensors")
    keeper.keep(Missing(models / "seed0.safetensors", plan.work), rows)
    (row,) = results(out)
    assert row[2] == "failed" and "changed while it was proven about" in row[3]


def test_what_files_do_not_say_is_told_for_the_whole_folder(tmp_path, one_worker):
    save_file({name: np.array(t) for name, t in random_weights(0).tensors.items()}, tmp_path / "bare.safetensors")
    assert counts(run_plan(plan_sweep(tmp_path, ["cubic"]), tmp_path / "out", one_worker)) == (0, 0, 1)
    told = plan_sweep(tmp_path, ["cubic"], Told(n_heads=1, normalization="none"))
    assert counts(run_plan(told, tmp_path / "out", one_worker)) == (1, 0, 0)
    ((label, status, assumptions),) = results(tmp_path / "out", "label, status, assumptions")
    assert (label, status) == ("cubic", "proven") and "because the user said so" in assumptions


def test_a_truncated_part_is_done_again(models, tmp_path, one_worker):
    plan, out = plan_sweep(models, ["cubic"]), tmp_path / "out"
    run_plan(plan, out, one_worker)
    expected = results(out)
    broken = sorted(out.glob("*.parquet"))[1]
    broken.write_bytes(broken.read_bytes()[:500])
    assert counts(run_plan(plan, out, one_worker)) == (1, 3, 0)
    assert results(out) == expected


def test_a_file_that_is_no_model_is_a_failed_row_until_it_is_one(models, tmp_path, one_worker):
    out = tmp_path / "out"
    (models / "bad.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00not json")
    for expected in ((4, 0, 1), (0, 4, 1)):
        summary = run_plan(plan_sweep(models, ["cubic", "brute-force"]), out, one_worker)
        assert counts(summary) == expected and summary.failed_rows == 1
        (failed,) = [row for row in results(out) if row[2] == "failed"]
        assert failed[:2] == ("bad.safetensors", None) and "ModelError" in failed[3] and "not a readable safetensors file" in failed[3]
        assert len(results(out)) == 9
    cp.save(random_weights(10), models / "bad.safetensors")
    assert counts(run_plan(plan_sweep(models, ["cubic", "brute-force"]), out, one_worker)) == (1, 4, 0)
    assert len(results(out)) == 10 and all(row[2] == "proven" for row in results(out))


def test_a_strategy_that_raises_is_a_failed_row_and_the_others_are_kept(models, tmp_path, one_worker):
    plan, out = plan_sweep(models, [Raises(), Cubic()]), tmp_path / "out"
    summary = run_plan(plan, out, one_worker)
    assert counts(summary) == (0, 0, 4) and summary.failed_rows == 4
    assert sorted({row[1:] for row in results(out)}) == [("cubic", "proven", None), ("raises", "failed", "ZeroDivisionError: on purpose")]
    again = run_plan(plan, out, _NoWorkers())
    assert counts(again) == (0, 4, 0) and again.failed_rows == 4
    assert counts(run_plan(plan, out, one_worker, retry_failed=True)) == (0, 0, 4)
    assert len(results(out)) == 8


@pytest.mark.long
def test_the_model_that_kills_its_worker_is_recorded_and_no_other(models, tmp_path):
    cp.save(random_weights(5, n_ctx=2), models / "seed1-deadly.safetensors")
    summary = run_plan(plan_sweep(models, [Kills(2), Cubic()]), tmp_path / "out", LocalPool(2))
    assert counts(summary) == (4, 0, 1)
    rows = results(tmp_path / "out")
    assert len(rows) == 9
    (failed,) = [row for row in rows if row[2] == "failed"]
    assert failed[:2] == ("seed1-deadly.safetensors", None) and "died twice" in failed[3]


@pytest.mark.long
@pytest.mark.parametrize("n_ctx", [2, 3])  # 3 is also the length of the tiny model for which kernels are compiled
def test_an_accident_of_a_worker_costs_nothing(models, tmp_path, n_ctx):
    cp.save(random_weights(5, n_ctx=2), models / "seed1-short.safetensors")
    plan = plan_sweep(models, [Kills(n_ctx, once=str(tmp_path / "flag")), Cubic()])
    assert counts(run_plan(plan, tmp_path / "out", LocalPool(2))) == (5, 0, 0)
    assert (tmp_path / "flag").exists() and len(results(tmp_path / "out")) == 10


def test_ctrl_c_is_for_the_parent_which_does_not_wait_for_tasks():
    workers = []

    def interrupted():
        with LocalPool(1).open() as executor:
            assert executor.submit(signal.getsignal, signal.SIGINT).result() is signal.SIG_IGN
            workers.append(executor.submit(os.getpid).result())
            executor.submit(time.sleep, 10**6)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not any(map(psutil.pid_exists, workers))


def test_workers_have_one_thread(models, tmp_path, monkeypatch):
    monkeypatch.delenv("COMPACTPROOFS_THREADS", raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    before = dict(os.environ)
    run_plan(plan_sweep(models, [Environment()]), tmp_path / "out", LocalPool(2))
    assert dict(os.environ) == before
    found = set(results(tmp_path / "out", "correct_at_least, arithmetic"))
    assert found == {("1", "OPENBLAS_NUM_THREADS=1 BLAS=1")}


def test_accuracy_is_sampled_where_brute_force_takes_too_long():
    work = plan_sweep_of(BruteForce(), seconds=1e-9, samples=50, sampling_seed=4)
    (row,) = prove_model(work, random_weights(0))
    sampled = cp.accuracy(random_weights(0), samples=50, seed=4)
    assert row["status"] == "infeasible" and row["accuracy_method"] == "sampling" and row["sampling_seed"] == 4
    assert (row["accuracy_correct"], row["accuracy_total"]) == (str(sampled.correct), "50")
    assert (row["accuracy_low"], row["accuracy_high"]) == sampled.interval


def test_measurements_that_fail_are_a_row_of_their_own(monkeypatch):
    def refuse(*args, **kwargs):
        raise MemoryError("no room")

    monkeypatch.setattr("compactproofs.sweeps.work.accuracy", refuse)
    proven, failed = prove_model(plan_sweep_of(Cubic()), random_weights(0))
    assert proven["status"] == "proven" and proven["accuracy"] is None
    assert failed["label"] is None and failed["reason"] == "MemoryError: no room"


def test_a_worker_of_another_version_is_refused(models, tmp_path):
    plan = plan_sweep(models, ["cubic"], version="0.0.0")
    with pytest.raises(SweepError, match=r"planned with 0\.0\.0 \(.*\); install the same version"):
        run_plan(plan, tmp_path / "out", LocalPool(1))
    assert list((tmp_path / "out").iterdir()) == []


def test_a_script_without_the_main_guard_is_told_so(models, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"import compactproofs as cp\ncp.sweep({str(models)!r}, {str(tmp_path / 'out')!r}, ['cubic'], workers=1)\n")
    result = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert result.returncode != 0 and "if __name__ == '__main__':" in result.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_workers_and_scheduler_exclude_each_other(models, tmp_path):
    with pytest.raises(SweepError, match="one or the other"):
        cp.sweep(models, tmp_path / "out", workers=1, scheduler="tcp://127.0.0.1:1")
    with pytest.raises(SweepError, match="at least 1"):
        cp.sweep(models, tmp_path / "out", workers=0)


def test_every_strategy_fits_the_columns():
    labels = ["threshold-best", "threshold-blocks", "subcubic"]
    work = plan_sweep_of(*map(strategy, labels), cp.Subcubic(query_handling="mean_query+diff", repaired=False))
    assert [row["status"] for row in prove_model(work, random_weights(0))] == ["proven"] * 3 + ["computed"]


def plan_sweep_of(*strategies, **parameters):
    from compactproofs.sweeps.plan import Work

    return Work(strategies, **parameters)


class _NoWorkers(LocalPool):
    def open(self):
        raise AssertionError("nothing is missing, so no workers are needed")


def test_what_is_there_is_not_computed_again_whatever_else_is_asked(models, tmp_path, one_worker):
    out = tmp_path / "out"
    assert counts(run_plan(plan_sweep(models, ["cubic", "brute-force"]), out, one_worker)) == (4, 0, 0)
    assert counts(run_plan(plan_sweep(models, ["cubic"]), out, _NoWorkers())) == (0, 4, 0)
    before = results(out, "model, label, seconds, search_seconds")
    more = plan_sweep(models, ["cubic", Raises(), "threshold-cubic"])
    assert counts(run_plan(more, out, one_worker)) == (0, 0, 4)
    found = results(out, "model, label, seconds, search_seconds")
    assert set(before) < set(found) and len(found) == 16  # the bounds that were there are still those
    assert {row[0] for row in results(out, "DISTINCT accuracy_method")} == {"brute-force"}
    assert export_csv(more, out, tmp_path / "r.csv") == 12


@pytest.mark.long
def test_documents_are_rows_beside_the_proofs(models, tmp_path, one_worker):
    out = tmp_path / "out"
    run_plan(plan_sweep(models, ["cubic"]), out, one_worker)
    measured = plan_sweep(models, ["cubic"], documents=("statistics", "tables"), ablation_samples=10)
    assert counts(run_plan(measured, out, one_worker)) == (4, 0, 0)
    assert counts(run_plan(measured, out, _NoWorkers())) == (0, 4, 0)
    assert len(results(out)) == 4
    with open_results(out) as connection:
        found = connection.sql("SELECT kind, count(*), count(DISTINCT model) FROM part GROUP BY ALL ORDER BY ALL").fetchall()
        statistics = connection.sql("SELECT data FROM part WHERE kind = 'statistics' AND model = 'seed0.safetensors'").fetchall()
    assert found == [("proof", 4, 4), ("statistics", 4, 4), ("tables", 4, 4)]
    assert json.loads(statistics[0][0]) == cp.interpret(random_weights(0), samples=10).statistics


def test_two_sweeps_with_other_strategies_at_the_same_time_show_each_row_once(models, tmp_path, one_worker):
    out = tmp_path / "out"
    one, other = plan_sweep(models, ["cubic", "brute-force"]), plan_sweep(models, ["cubic", "threshold-cubic"])
    for plan in (one, other):  # neither knew of the other
        run_plan(plan, tmp_path / plan.work.digest, one_worker)
    out.mkdir()
    for plan in (one, other):
        for part in (tmp_path / plan.work.digest).glob("*.parquet"):
            part.rename(out / part.name)
    assert len(results(out)) == 12 and counts(run_plan(one, out, _NoWorkers())) == (0, 4, 0)


@pytest.mark.long
def test_a_failure_of_the_whole_model_goes_when_it_is_tried_again(models, tmp_path, one_worker):
    for seed in (2, 3):
        (models / f"seed{seed}.safetensors").unlink()
    plan, out = plan_sweep(models, [Kills(3), Cubic()]), tmp_path / "out"
    assert counts(run_plan(plan, out, LocalPool(1))) == (0, 0, 2)
    assert counts(run_plan(plan, out, _NoWorkers())) == (0, 2, 0) and len(results(out)) == 2
    assert counts(run_plan(plan_sweep(models, [Cubic()]), out, one_worker, retry_failed=True)) == (2, 0, 0)
    assert [row[1:3] for row in results(out)] == [("cubic", "proven")] * 2
