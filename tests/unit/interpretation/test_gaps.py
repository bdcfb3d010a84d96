import numpy as np
import pytest

import compactproofs as cp
from compactproofs.interpretation.gaps import gap_distribution
from models import random_weights, weights_from_tables


def test_a_perfect_model_needs_gap_one_everywhere():
    v, k = 5, 3
    EQKE = np.tile(100.0 * np.arange(v), (v, 1))
    found = gap_distribution(weights_from_tables(EQKE, np.zeros((v, k)), 50 * np.eye(v), np.zeros((k, v)), np.zeros((v, v))))
    assert found.histogram.counts == (v**k, 0, 0, 0) and found.without_gap == 0 and found.covered == v**k
    statistics = found.statistics()
    assert statistics["gap_mean"] == statistics["gap_median"] == 1 and statistics["gap_std"] == 0
    assert statistics["gap_dropped_sequence_fraction"] == 0


def test_a_known_gap_of_two():
    # Tokens 0 and 1 get equal attention, as do 2 and 3, which get nearly all of it: a label beside its equal ties.
    EQKE = np.tile([0.0, 0.0, 100.0, 100.0], (4, 1))
    found = gap_distribution(weights_from_tables(EQKE, np.zeros((4, 2)), 50 * np.eye(4), np.zeros((2, 4)), np.zeros((4, 4))))
    # Sequences by label and query, with the smallest gap that works:
    # no other token: 4 sequences, any gap. Label 1: queries 1 and 0, one sequence each: none, as 0 ties with 1.
    # Label 2: query 2 (2 sequences), queries 0 and 1 (1 each): gap 1. Label 3: query 3 (3 sequences), queries 0 and 1 (1 each): gap 2,
    # as the bound allows for every token up to 3 - gap; query 2 (1 sequence): none.
    assert found.histogram.counts == (4 + 4, 3 + 2, 0) and found.without_gap == 3
    assert found.total == 16 and found.covered == 4 + 4 + 2 + 2  # gap 2 below 3 covers others 0 and 1: two of the three
    assert found.statistics()["gap_none_fraction"] == 3 / 16


@pytest.mark.parametrize("seed", range(3))
def test_the_histogram_and_the_rest_are_all_sequences(seed):
    found = gap_distribution(random_weights(seed, n_ctx=3, d_vocab=6, scale=0.8))
    assert found.histogram.total + found.without_gap == 6**3 and 0 <= found.covered <= found.histogram.total


def test_the_covered_sequences_are_those_that_the_strategy_proves():
    proof = cp.prove(
        cp.zoo("max-of-4"), cp.Subcubic("max_diff_exact", "exact_EQKE+max_diff_exact", "drop_average_query_per_output_logit_reasoning")
    )
    assert gap_distribution(cp.zoo("max-of-4")).covered == proof.correct_at_least
