"""Sweeps on a real dask scheduler with two worker processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import compactproofs as cp
from compactproofs.errors import SweepError
from compactproofs.results.store import open_results
from compactproofs.strategies.cubic import Cubic
from compactproofs.sweeps.executors import DaskScheduler
from compactproofs.sweeps.plan import plan_sweep
from compactproofs.sweeps.sweep import run_plan
from models import random_weights
from sweep_strategies import Environment, Raises, Slow

pytest.importorskip("distributed")

TESTS = Path(__file__).parents[2]


class Cluster:
    """A scheduler and workers, each in a process group of its own."""

    def __init__(self, folder):
        self.folder, self.processes = folder, []
        self._start("scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(folder / "scheduler.json"))

    def worker(self):
        arguments = ["--nthreads", "1", "--no-dashboard", "--local-directory", str(self.folder)]
        return self._start("worker", "--scheduler-file", str(self.folder / "scheduler.json"), *arguments)

    @property
    def address(self):
        import json

        return json.loads((self.folder / "scheduler.json").read_text())["address"]

    def _start(self, kind, *arguments):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)]), "PYTHONWARNINGS": "ignore"}
        with (self.folder / f"{kind}{len(self.processes)}.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments],
                env=environment,
                start_new_session=True,
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        deadline = time.monotonic() + 60
        while not (self.folder / "scheduler.json").exists():
            assert process.poll() is None and time.monotonic() < deadline, (self.folder / f"{kind}0.log").read_text()
            time.sleep(0.05)
        return process

    def kill(self, process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def cluster(tmp_path):
    (tmp_path / "cluster").mkdir()
    cluster = Cluster(tmp_path / "cluster")
    yield cluster
    for process in reversed(cluster.processes):
        cluster.kill(process)


@pytest.mark.long
def test_a_worker_killed_in_the_middle_loses_and_doubles_nothing(cluster, tmp_path):
    victim, _ = cluster.worker(), cluster.worker()
    models, out = tmp_path / "models", tmp_path / "out"
    models.mkdir()
    for seed in range(14):
        cp.save(random_weights(seed), models / f"seed{seed:02}.safetensors")
    (models / "bad.safetensors").write_bytes(b"no model")
    plan = plan_sweep(models, [Slow(0.4), Environment(), Cubic(), Raises()])
    killed_at = []

    def progress(done, total):
        assert total == 14
        if done == 5 and not killed_at:
            cluster.kill(victim)
            killed_at.append(len(list(out.glob("*.parquet"))))

    from distributed import Client

    with Client(cluster.address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
    summary = run_plan(plan, out, DaskScheduler(cluster.address), progress=progress)
    assert killed_at and killed_at[0] < 14
    assert (summary.done, summary.skipped, summary.failed) == (0, 0, 15) and summary.failed_rows == 15
    with open_results(out) as results:
        rows = results.sql("SELECT model, label, count(*) FROM results GROUP BY ALL ORDER BY ALL").fetchall()
        processes = results.sql("SELECT DISTINCT arithmetic FROM results WHERE label = 'slow'").fetchall()
        threads = results.sql("SELECT DISTINCT correct_at_least FROM results WHERE label = 'environment'").fetchall()
    expected = [(f"seed{seed:02}.safetensors", label, 1) for seed in range(14) for label in ("cubic", "environment", "raises", "slow")]
    assert rows == [("bad.safetensors", None, 1), *expected]
    assert len(processes) == 2 and threads == [("1",)]


def test_a_scheduler_without_workers_or_that_is_not_there_is_an_error(cluster, tmp_path):
    cp.save(random_weights(0), tmp_path / "a.safetensors")
    plan = plan_sweep(tmp_path, ["cubic"])
    with pytest.raises(SweepError, match="has no workers; start some"):
        run_plan(plan, tmp_path / "out", DaskScheduler(cluster.address, patience=0.5))
    address = cluster.address
    cluster.kill(cluster.processes[0])
    with pytest.raises(SweepError, match="no dask scheduler answers"):
        run_plan(plan, tmp_path / "out", DaskScheduler(address, patience=0.5))
    assert list((tmp_path / "out").glob("*.parquet")) == []


@pytest.mark.parametrize(
    "address", ["nonsense", "tcp://host", "host:x", "udp://host:1", "tcp://host:99999", "tcp://a b:1", "tcp://host:1/x", ""]
)
def test_what_is_no_address_is_refused_before_dask_sees_it(address):
    with pytest.raises(SweepError, match=r"is not an address; expected one such as tcp://HOST:8786"):
        DaskScheduler(address)


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:8786", "host:8786", "tls://scheduler.example:8786", "tcp://[::1]:8786"])
def test_addresses_of_dask_are_taken(address):
    assert DaskScheduler(address).address == address


def test_a_client_that_cannot_connect_is_closed_at_once(monkeypatch):
    clients = []

    async def refuse(client, timeout=None):
        clients.append(client)
        raise ValueError("spoken to in tongues")

    monkeypatch.setattr("distributed.Client._ensure_connected", refuse)
    with (
        pytest.raises(SweepError, match="no dask scheduler answers at tcp://127.0.0.1:1 .*tongues"),
        DaskScheduler("tcp://127.0.0.1:1").open(),
    ):
        pass
    assert [client.status for client in clients] == ["closed"]


def test_a_scheduler_that_dies_ends_the_sweep_and_keeps_what_is_finished(cluster, tmp_path):
    cluster.worker()
    for seed in range(6):
        cp.save(random_weights(seed), tmp_path / f"seed{seed}.safetensors")
    plan, out = plan_sweep(tmp_path, [Slow(0.2)]), tmp_path / "out"
    with pytest.raises(SweepError, match="the scheduler went away"):
        run_plan(plan, out, DaskScheduler(cluster.address), progress=lambda done, total: done == 2 and cluster.kill(cluster.processes[0]))
    assert 2 <= len(list(out.glob("*.parquet"))) < 6
    with open_results(out) as results:
        assert results.sql("SELECT DISTINCT status FROM results").fetchall() == [("proven",)]
