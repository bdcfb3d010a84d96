"""Counts of the authors' own code on given weights. The weights are not part of this project; without them these tests skip."""

import json
from pathlib import Path

import pytest

import compactproofs as cp
from compactproofs.arrays.arithmetic import Float64, Rigorous
from compactproofs.proving import prove_many
from compactproofs.strategies.cubic import cubic_count

FOLDER = Path(__file__).parents[2].parent / "shared" / "models"
K4 = ("max-of-4-seed123", "max-of-4-seed1283")
ALL = (*K4, "max-of-10-seed123")

needs_models = pytest.mark.skipif(not FOLDER.is_dir(), reason="the authors' models (shared/models beside the project) are not here")


def golden(name):
    return json.loads((FOLDER / f"{name}.golden.json").read_text())


def model(name):
    return cp.load(FOLDER / f"{name}.safetensors")


@needs_models
@pytest.mark.parametrize("name", K4)
def test_brute_force_equals_the_golden_count_exactly(name):
    result = cp.accuracy(model(name))
    expected = golden(name)["brute_force"]
    assert (str(result.correct), str(result.total), result.undecided) == (expected["correct"], expected["total"], 0)


@needs_models
def test_sampling_agrees_with_the_golden_sample_within_its_interval():
    name = "max-of-10-seed123"
    expected = golden(name)["monte_carlo"]
    result = cp.accuracy(model(name), samples=1_000_000, confidence=0.9999)
    assert result.interval[0] <= expected["correct"] / expected["n"] <= result.interval[1]


@needs_models
@pytest.mark.parametrize("name", ALL)
def test_cubic_equals_the_golden_count_in_float64_and_loses_next_to_nothing_in_intervals(name):
    expected = int(golden(name)["cubic"]["correct_at_least"])
    assert cubic_count(model(name), Float64()) == expected
    assert 0 <= expected - cubic_count(model(name), Rigorous()) <= expected / 1e6


@needs_models
@pytest.mark.parametrize("name", ALL)
def test_published_subcubic_counts_are_those_of_the_authors_code(name):
    rows = golden(name)["subcubic_published"]
    chosen = [cp.Subcubic(r["direct_path"], r["attention_error"], r["query_handling"], repaired=False) for r in rows]
    assert len(rows) == 100
    for row, proof in zip(rows, prove_many(model(name), chosen), strict=True):
        difference = (proof.correct_at_least - int(row["correct_at_least"])) / proof.total
        assert abs(difference) <= 0.002, row


@needs_models
@pytest.mark.parametrize("name", ALL)
def test_attention_error_bounds_are_those_of_the_authors_code(name):
    from compactproofs.bounds.low_rank_scores import approximate_scores, find_directions
    from compactproofs.strategies.subcubic import AttentionError

    weights = model(name)
    published = {row["attention_error"]: row["attention_error_bound"] for row in golden(name)["subcubic_published"]}
    for error in AttentionError:
        ours = approximate_scores(error, weights, find_directions(weights), Float64()).error_upper
        assert float(ours.max() * weights.d_head**0.5) == pytest.approx(published[error.value], rel=1e-4, abs=1e-9)


@needs_models
@pytest.mark.parametrize("name", K4)
def test_the_portfolio_finds_the_golden_count_without_brute_force(name):
    proof = cp.prove(model(name), "threshold-best", upper=True)
    assert str(proof.correct_at_least) == str(proof.correct_at_most) == golden(name)["brute_force"]["correct"]


@pytest.mark.long
@needs_models
@pytest.mark.parametrize("name", ALL)
def test_threshold_proofs_beat_the_published_cubic_bound_and_stay_below_the_upper_bound(name):
    weights = model(name)
    cubic = cp.prove(weights, "cubic")
    for strategy, ratio in (("threshold-quartic", 0.9995), ("threshold-cubic", 0.998), ("threshold-cubic-pooled", 0.99)):
        proof = cp.prove(weights, strategy, upper=True)
        assert cubic.lower < proof.lower <= proof.upper
        assert proof.lower > ratio * proof.upper
