"""The run behind `reproduce`: everything is computed once, and what is there is not computed again."""

import json
from contextlib import nullcontext

import pytest

import compactproofs as cp
from compactproofs.errors import ReportError, SweepError
from compactproofs.model.training.recipe import Recipe
from compactproofs.reproduction import run
from compactproofs.reproduction.configurations import CONFIGURATIONS, Configuration, configurations, reproduced_strategies
from compactproofs.reproduction.measuring import ABLATION_SAMPLES, measure_models
from compactproofs.reproduction.run import recorded, run_configuration
from compactproofs.reproduction.statistics import read_models
from compactproofs.strategies.registry import strategy
from compactproofs.sweeps.parts import open_results
from models import random_weights

TINY = Configuration("tiny", Recipe(n_ctx=3, d_vocab=5, d_model=4, d_head=3, steps=3, batch_size=8))


def test_every_configuration_of_the_paper_is_there_by_name():
    sizes = {each.name: (each.recipe.n_ctx, each.recipe.d_vocab) for each in CONFIGURATIONS}
    assert sizes == {"k4": (4, 64), "k5": (5, 64), "k10": (10, 64), "k20": (20, 64), "k10-v128": (10, 128)}
    assert configurations("all") == CONFIGURATIONS and [c.name for c in configurations("k20")] == ["k20"]
    with pytest.raises(SweepError, match="unknown configuration 'k6'; known: k4, k5"):
        configurations("k6")


def test_all_published_strategies_are_reproduced_in_both_variants():
    chosen = reproduced_strategies()
    published = {s.label for s in chosen if s.variant == "published"}
    assert len(published) == 100 and published < {s.label for s in chosen if s.variant == "repaired"}
    assert {"brute-force", "cubic"} < {s.name for s in chosen}
    assert sum(s.family == "threshold" for s in chosen) == 7 and chosen[-1].name == "threshold-best"
    assert len(chosen) == len(set(chosen)) == 259


@pytest.mark.slow
def test_a_run_trains_proves_and_measures_once(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "reproduced_strategies", lambda: [strategy("cubic"), strategy("brute-force")])
    stages = []

    def stage(title, _unit):
        stages.append(title)
        return nullcontext()

    first = run_configuration(TINY, tmp_path, seeds=2, workers=1, stage=stage)
    assert (first.models, first.failed_rows) == (2, 0)
    assert stages == ["tiny: training", "tiny: proving", "tiny: measuring"]
    timings = recorded(tmp_path)["tiny"]
    assert (timings.models, timings.training_models, timings.workers) == (2, 2, 1)
    assert timings.sweep_seconds > timings.io_seconds > 0 and timings.training_cpu_seconds > 0 and timings.peak_memory_bytes > 2**24
    with open_results(tmp_path / "results" / "tiny") as results:
        assert results.sql("SELECT model, count(*) FROM results GROUP BY ALL ORDER BY ALL").fetchall() == [
            ("max-of-3-v5-seed0.safetensors", 2),
            ("max-of-3-v5-seed1.safetensors", 2),
        ]
    measured = json.loads((tmp_path / "statistics" / "tiny.json").read_text())
    assert [entry["model"] for entry in measured] == ["max-of-3-v5-seed0.safetensors", "max-of-3-v5-seed1.safetensors"]
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.suffix in (".safetensors", ".parquet")}
    again = run_configuration(TINY, tmp_path, seeds=2, workers=1)
    assert (again.models, again.failed_rows) == (2, 0)
    assert {path: path.stat().st_mtime_ns for path in files} == files
    repeated = recorded(tmp_path)["tiny"]
    assert (repeated.models, repeated.sweep_seconds, repeated.training_seconds) == (2, timings.sweep_seconds, timings.training_seconds)


def test_a_broken_file_of_statistics_is_named(tmp_path):
    path, model = tmp_path / "k4.json", tmp_path / "seed0.safetensors"
    path.write_text('[{"model": 1')
    cp.save(random_weights(0), model)
    with pytest.raises(ReportError, match=r"k4\.json does not hold the statistics of models .*; remove it and repeat the run"):
        measure_models([model], path, 1, None)


def test_a_model_that_was_replaced_is_measured_again_and_one_that_is_gone_is_forgotten(tmp_path):
    models, path = [tmp_path / f"seed{seed}.safetensors" for seed in range(3)], tmp_path / "k4.json"
    for seed, model in enumerate(models):
        cp.save(random_weights(seed), model)
    assert measure_models(models, path, 1, None) == 3
    before = read_models(path)
    assert measure_models(models, path, 1, None) == 0
    cp.save(random_weights(7), models[0])
    assert measure_models(models[:2], path, 1, None) == 1
    after = read_models(path)
    assert list(after) == ["seed0.safetensors", "seed1.safetensors"] and after["seed1.safetensors"] == before["seed1.safetensors"]
    assert after["seed0.safetensors"].statistics == cp.interpret(random_weights(7), samples=ABLATION_SAMPLES).statistics
    assert after["seed0.safetensors"].statistics != before["seed0.safetensors"].statistics
