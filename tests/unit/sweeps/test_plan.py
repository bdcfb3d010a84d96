import pytest

import compactproofs as cp
from compactproofs.cores import available_cores
from compactproofs.errors import CompactProofsError, SweepError
from compactproofs.strategies.brute_force import BruteForce
from compactproofs.strategies.cubic import Cubic
from compactproofs.strategies.shared import Shared
from compactproofs.sweeps.documents import documents
from compactproofs.sweeps.plan import Work, plan_sweep
from models import mostly_right, random_weights


def test_the_digest_changes_with_everything_that_changes_results_and_with_nothing_else():
    base = Work((Cubic(), BruteForce()))
    assert base.digest == Work((BruteForce(), Cubic(), Cubic())).digest == Work((Cubic(), BruteForce()), seconds=60.0).digest
    others = [
        Work((Cubic(),)),
        Work((Cubic(), BruteForce()), upper=True),
        Work((Cubic(), BruteForce()), seconds=59.0),
        Work((Cubic(), BruteForce()), samples=5),
        Work((Cubic(), BruteForce()), sampling_seed=1),
        Work((Cubic(), BruteForce()), version="0.0.0"),
        Work((Cubic(), BruteForce()), bounds="0123456789ab"),
        Work((Cubic(), cp.Subcubic())),
        Work((Cubic(), cp.Subcubic(query_handling="mean_query+diff"))),
        Work((Cubic(), cp.Subcubic(query_handling="mean_query+diff", repaired=False))),
        Work((Cubic(), BruteForce()), task=cp.MaxOfK(3, 5)),
        Work((Cubic(), BruteForce()), documents=("statistics",)),
        Work((Cubic(), BruteForce()), documents=("statistics",), ablation_samples=5),
    ]
    digests = {base.digest, *(work.digest for work in others)}
    assert len(digests) == 1 + len(others) and all(len(digest) == 12 for digest in digests)


def test_the_plan_changes_with_what_changes_a_row():
    base = Work((Cubic(), BruteForce()))
    assert base.plan == Work((Cubic(),)).plan == Work((), documents=("tables",), ablation_samples=3).plan
    assert Work((Cubic(),), seconds=1.0).plan != base.plan != Work((Cubic(),), task=cp.MaxOfK(3, 5)).plan
    assert base.measuring == Work((Cubic(),), seconds=1.0).measuring != Work((Cubic(),), ablation_samples=3).measuring
    assert base.measuring != Work((Cubic(),), task=cp.MaxOfK(3, 5)).measuring  # what is measured belongs to one question
    with pytest.raises(SweepError, match="known: statistics"):
        Work((), documents=("gossip",))


def test_a_plan_finds_models_in_folders_of_folders(tmp_path):
    (tmp_path / "inner").mkdir()
    for name in ("b.safetensors", "inner/a.safetensors"):
        cp.save(random_weights(0), tmp_path / name)
    (tmp_path / "readme.txt").write_text("not a model")
    (tmp_path / ".hidden.safetensors").write_text("not finished")
    plan = plan_sweep(tmp_path)
    assert [plan.place(model).model for model in plan.models] == ["b.safetensors", "inner/a.safetensors"]
    assert len(plan.work.strategies) == len(cp.strategies())


def test_plans_that_cannot_work_are_refused(tmp_path):
    with pytest.raises(SweepError, match="not a folder"):
        plan_sweep(tmp_path / "none")
    with pytest.raises(SweepError, match="no models in"):
        plan_sweep(tmp_path)
    with pytest.raises(SweepError, match="at least one strategy"):
        Work(())
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(SweepError, match="positive number"):
            Work((Cubic(),), seconds=seconds)


def test_the_environment_limits_the_threads(monkeypatch):
    monkeypatch.delenv("COMPACTPROOFS_THREADS", raising=False)
    cores = available_cores()
    monkeypatch.setenv("COMPACTPROOFS_THREADS", "1")
    assert available_cores() == 1
    monkeypatch.setenv("COMPACTPROOFS_THREADS", "10000")
    assert available_cores() == cores
    for wrong in ("0", "-1", "two", "", "1.5"):
        monkeypatch.setenv("COMPACTPROOFS_THREADS", wrong)
        with pytest.raises(CompactProofsError, match="expected a positive integer"):
            available_cores()


def test_documents_are_about_the_maximum_only():
    weights = mostly_right(0)
    asked = ("statistics", "explorer", "tables")
    for task in ("sign-of-sum", cp.SignOfSum(3, 5)):
        work = Work((), task=task, documents=asked)
        assert documents(work, weights, Shared(weights, work.task_for(weights))) == {}
    work = Work((), documents=asked[2:])
    assert list(documents(work, weights, Shared(weights, work.task_for(weights)))) == ["tables"]
