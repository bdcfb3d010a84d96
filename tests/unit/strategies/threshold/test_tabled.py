from dataclasses import replace

import numpy as np
import pytest

from compactproofs.bounds.low_rank_scores import Directions
from compactproofs.counting.brute_force import brute_force
from compactproofs.counting.subject import subject_of
from compactproofs.errors import StrategyError
from compactproofs.search.pools import find_factors, find_pools
from compactproofs.strategies.base import Request
from compactproofs.strategies.threshold import ThresholdBlocks, ThresholdCubic, ThresholdCubicPooled, ThresholdQuadraticPooled
from compactproofs.tasks import MaxOfK, task_for
from compactproofs.tasks.question import Question
from models import mostly_right, random_weights, weights_from_tables


def proven(strategy, weights, factors):
    found, _ = strategy.found(weights, Question(task_for(weights)), strategy.with_choices(factors))
    return task_for(weights).total - sum(pool.failing for pool in found)


def test_hints_of_the_wrong_shape_are_refused():
    weights = random_weights(0)
    factors = find_factors(weights, weighted=True, pooled=True)
    v, d = weights.d_vocab, weights.d_model
    bad = [
        replace(factors, mu=np.zeros(1)),
        replace(factors, output_weights=np.ones((2, 2), dtype=np.int64)),
        replace(factors, output_weights=np.ones((5, 5))),
        replace(factors, centres=np.zeros(5)),
        replace(factors, directions=replace(factors.directions, query_summary=np.zeros((v, d)))),
    ]
    for each in bad:
        with pytest.raises(StrategyError, match="expected"):
            proven(ThresholdCubicPooled("svd_query+max_diff"), weights, each)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.int64])
@pytest.mark.parametrize("error", ["max_diff_exact", "max_diff_subproduct", "svd"])
def test_hints_of_another_type_are_taken_as_exact_numbers(dtype, error):
    rng = np.random.default_rng(3)
    for seed in range(6):
        EVOU = 3.0 * np.eye(3) + 0.5 * rng.normal(size=(3, 3))
        weights = weights_from_tables(rng.normal(size=(3, 3)), np.zeros((3, 3)), EVOU, np.zeros((3, 3)), np.zeros((3, 3)))
        sizes = [3] * 4 + [weights.d_model] * 3
        directions = Directions(*(rng.integers(0, 3, size=n).astype(dtype) for n in sizes))
        factors = replace(find_factors(weights, weighted=False, pooled=True), directions=directions)
        found = proven(ThresholdQuadraticPooled("exact", error), weights, factors)
        assert found <= brute_force(weights, task_for(weights), threads=1).correct, seed


def test_pools_partition_the_queries():
    weights = random_weights(2, d_vocab=9, d_vocab_out=9)
    factors, question = find_factors(weights, weighted=True, pooled=True), Question(MaxOfK(3, 9))
    direct = np.random.default_rng(0).normal(size=(9, 9))
    for label in range(9):
        for pools in (0, 1, 2, 4, 20):
            found = find_pools(direct, factors, subject_of(question, label), pools)
            assert sorted(np.concatenate(found).tolist()) == list(range(label + 1))
            assert len(found) == (label + 1 if pools == 0 else min(pools, label + 1))


@pytest.mark.parametrize("strategy", [ThresholdBlocks(), ThresholdCubic(), ThresholdCubicPooled(), ThresholdQuadraticPooled()])
def test_without_another_output_every_sequence_is_right(strategy):
    weights = random_weights(1, n_ctx=3, d_vocab=1, d_vocab_out=1)
    assert strategy.bound(Request(weights, task_for(weights))).correct_at_least == 1


def test_too_long_a_proof_is_refused_with_a_reason():
    from compactproofs import prove

    proof = prove(random_weights(0, d_vocab=300, d_vocab_out=300), "threshold-cubic", seconds=0.01)
    assert proof.status == "infeasible" and "--seconds" in proof.reason


def test_the_portfolio_merges_tables_and_pairs(monkeypatch):
    """With time for the pairs of one label only: its pairs, and tables for the others."""
    from compactproofs import prove, verify
    from compactproofs.strategies.threshold import best

    weights = mostly_right(3, v=8, k=3, noise=0.6)
    whole, pooled = prove(weights, "threshold-best", seconds=10.0), prove(weights, "threshold-cubic")
    original = best.Growth.add_labels
    monkeypatch.setattr(best, "seconds_for_pairs", lambda _: 1e9)
    monkeypatch.setattr(best.Growth, "add_labels", lambda self, labels: original(self, list(labels)[:1]))
    merged = prove(weights, "threshold-best", seconds=10.0, upper=True)
    assert pooled.correct_at_least <= merged.correct_at_least <= whole.correct_at_least <= merged.correct_at_most
    found = verify(merged.ledger, weights)
    assert (found.correct_at_least, found.correct_at_most) == (merged.correct_at_least, merged.correct_at_most)
    assert {"terms", "token brackets", "counting"} <= merged.length.flops_breakdown.keys() and "tables" in merged.arithmetic


def test_unknown_choices_name_the_known_ones():
    with pytest.raises(StrategyError, match="max_diff_exact"):
        ThresholdCubic("nonsense")
