from dataclasses import replace

import numpy as np
import pytest
from compactproofs.strategies.threshold.hints import find_hints

from compactproofs.arrays.arithmetic import Rigorous
from compactproofs.bounds.low_rank_scores import Directions
from compactproofs.counting.brute_force import brute_force
from compactproofs.errors import StrategyError
from compactproofs.strategies.base import Request
from compactproofs.strategies.threshold import ThresholdBlocks, ThresholdCubic, ThresholdCubicPooled, ThresholdQuadraticPooled
from compactproofs.tasks import task_for
from models import random_weights, weights_from_tables


def test_hints_of_the_wrong_shape_are_refused():
    weights = random_weights(0)
    task, hints = task_for(weights), find_hints(weights, 4)
    v, d = weights.d_vocab, weights.d_model
    bad = [
        replace(hints, mu=np.zeros(1)),
        replace(hints, output_weights=np.ones((2, 2))),
        replace(hints, pool_of=np.zeros_like(hints.label_shift)),
        replace(hints, directions=replace(hints.directions, query_summary=np.zeros((v, d)))),
    ]
    for each in bad:
        with pytest.raises(StrategyError, match="expected"):
            ThresholdCubic("svd_query+max_diff").failures(weights, task, each, Rigorous())


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.int64])
@pytest.mark.parametrize("error", ["max_diff_exact", "max_diff_subproduct", "svd"])
def test_hints_of_another_type_are_taken_as_exact_numbers(dtype, error):
    rng = np.random.default_rng(3)
    for seed in range(6):
        EVOU = 3.0 * np.eye(3) + 0.5 * rng.normal(size=(3, 3))
        weights = weights_from_tables(rng.normal(size=(3, 3)), np.zeros((3, 3)), EVOU, np.zeros((3, 3)), np.zeros((3, 3)))
        task = task_for(weights)
        sizes = [3] * 4 + [weights.d_model] * 3
        directions = Directions(*(rng.integers(0, 3, size=n).astype(dtype) for n in sizes))
        hints = replace(find_hints(weights, 1), directions=directions)
        failures, *_ = ThresholdQuadraticPooled("exact", error).failures(weights, task, hints, Rigorous())
        assert task.total - failures <= brute_force(weights, task, threads=1).correct, seed


def test_a_pool_for_every_query_is_no_worse_than_one_for_all():
    weights = random_weights(2, n_ctx=3, d_vocab=5, d_vocab_out=5, scale=0.5)
    task, hints = task_for(weights), find_hints(weights, 4)
    one = replace(hints, pool_of=np.zeros_like(hints.pool_of))
    many = replace(hints, pool_of=np.arange(25).reshape(5, 5))  # numbers may be anything
    counts = [ThresholdCubicPooled().failures(weights, task, each, Rigorous())[0] for each in (many, one)]
    assert counts[0] <= counts[1]


@pytest.mark.parametrize("strategy", [ThresholdBlocks(), ThresholdCubic(), ThresholdCubicPooled(), ThresholdQuadraticPooled()])
def test_without_another_output_every_sequence_is_right(strategy):
    weights = random_weights(1, n_ctx=3, d_vocab=1, d_vocab_out=1)
    assert strategy.bound(Request(weights, task_for(weights))).correct_at_least == 1


def test_too_long_a_proof_is_refused_with_a_reason():
    from compactproofs import prove

    proof = prove(random_weights(0, d_vocab=300, d_vocab_out=300), "threshold-cubic", seconds=0.01)
    assert proof.status == "infeasible" and "--seconds" in proof.reason


def test_the_portfolio_reports_the_length_of_the_proof_it_carried_out(monkeypatch):
    from compactproofs import prove
    from compactproofs.strategies.threshold import pairwise

    weights = random_weights(0, d_vocab=12, d_vocab_out=12)
    whole = prove(weights, "threshold-best", seconds=10.0)
    monkeypatch.setattr(pairwise, "estimated_seconds", lambda _: 1e9)
    monkeypatch.setattr(pairwise.Engine, "bound_labels", lambda *_: [])
    short = prove(weights, "threshold-best", seconds=10.0)
    assert short.status == "proven" and "worst output" in whole.length.flops_breakdown
    assert "worst output" not in short.length.flops_breakdown and short.flops < whole.flops


def test_unknown_choices_name_the_known_ones():
    with pytest.raises(StrategyError, match="max_diff_exact"):
        ThresholdCubic("nonsense")
