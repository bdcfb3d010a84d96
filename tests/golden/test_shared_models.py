"""Counts of the authors' own code on given weights. The weights are not part of this project; without them these tests skip."""

import json
from pathlib import Path

import pytest

import compactproofs as cp

FOLDER = Path(__file__).parents[2].parent / "shared" / "models"
K4 = ("max-of-4-seed123", "max-of-4-seed1283")

needs_models = pytest.mark.skipif(not FOLDER.is_dir(), reason="the authors' models (shared/models beside the project) are not here")


def golden(name):
    return json.loads((FOLDER / f"{name}.golden.json").read_text())


@needs_models
@pytest.mark.parametrize("name", K4)
def test_brute_force_equals_the_golden_count_exactly(name):
    result = cp.accuracy(cp.load(FOLDER / f"{name}.safetensors"))
    expected = golden(name)["brute_force"]
    assert (str(result.correct), str(result.total), result.undecided) == (expected["correct"], expected["total"], 0)


@needs_models
def test_sampling_agrees_with_the_golden_sample_within_its_interval():
    name = "max-of-10-seed123"
    expected = golden(name)["monte_carlo"]
    result = cp.accuracy(cp.load(FOLDER / f"{name}.safetensors"), samples=1_000_000, confidence=0.9999)
    assert result.interval[0] <= expected["correct"] / expected["n"] <= result.interval[1]
