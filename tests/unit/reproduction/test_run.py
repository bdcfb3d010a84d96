"""The run behind `reproduce`: everything is computed once, and what is there is not computed again."""

from contextlib import nullcontext

import pytest

from compactproofs.errors import SweepError
from compactproofs.results.store import open_results
from compactproofs.strategies.registry import strategy
from compactproofs.training.recipe import Recipe
from compactproofs_experiments.reproduction import run
from compactproofs_experiments.reproduction.configurations import CONFIGURATIONS, Configuration, configurations, reproduced_strategies
from compactproofs_experiments.reproduction.run import run_configuration
from compactproofs_experiments.reproduction.summaries import read_statistics
from compactproofs_experiments.reproduction.timings import read_timings

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
    assert sum(s.family == "threshold" for s in chosen) == 10 and chosen[-1].name == "threshold-best"
    assert len(chosen) == len(set(chosen)) == 262


@pytest.mark.slow
def test_a_run_trains_proves_and_measures_once(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "reproduced_strategies", lambda: [strategy("cubic"), strategy("brute-force")])
    stages = []

    def stage(title, _unit):
        stages.append(title)
        return nullcontext()

    first = run_configuration(TINY, tmp_path, seeds=2, workers=1, stage=stage)
    assert (first.models, first.failed_rows) == (2, 0)
    assert stages == ["tiny: training", "tiny: proving"]
    timings = read_timings(tmp_path / "results")["tiny"]
    assert (timings["models"], timings["training_models"], timings["workers"]) == (2, 2, 1)
    assert timings["sweep_seconds"] > timings["io_seconds"] > 0 < timings["training_cpu_seconds"] and timings["peak_memory_bytes"] > 2**24
    with open_results(tmp_path / "results") as results:
        assert results.sql("SELECT model, count(*) FROM results GROUP BY ALL ORDER BY ALL").fetchall() == [
            ("max-of-3-v5-seed0.safetensors", 2),
            ("max-of-3-v5-seed1.safetensors", 2),
        ]
    assert {name: found["EQKEFirstSingularFloat"].models for name, found in read_statistics(tmp_path / "results").items()} == {"tiny": 2}
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.suffix in (".safetensors", ".parquet")}
    again = run_configuration(TINY, tmp_path, seeds=2, workers=1)
    assert (again.models, again.failed_rows) == (2, 0)
    assert {path: path.stat().st_mtime_ns for path in files} == files
    assert read_timings(tmp_path / "results")["tiny"] == timings
