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
    # Neighbours get the same attention as the label (pairs 0 1 and 2 3), tokens further away next to none. Three outputs, two positions.
    # A label shared with an equally attended token ties; one with a token two below is right.
    EQKE = np.tile([0.0, 0.0, 100.0, 100.0], (4, 1))
    found = gap_distribution(weights_from_tables(EQKE, np.zeros((4, 2)), 50 * np.eye(4), np.zeros((2, 4)), np.zeros((4, 4))))
    # Strata (query, label, others), each with its number of sequences, and the smallest gap that works:
    # no others: 4 sequences, gap 1. Label 1: q=1 with one other (1 sequence) and q=0 (1): none, as 0 ties with 1.
    # Label 2, others 0 and 1 far below: q=2 (2 sequences), q=0, q=1 (1 each): gap 1.
    # Label 3: q=3 with one other below (3 sequences): gap 2 leaves out the tie with 2; q=0, q=1: gap 1; q=2: none.
    # For q=0 and q=1 the only other token is the query, but the bound allows any token up to 3 - gap: gap 2.
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
