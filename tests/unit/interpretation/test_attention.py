import numpy as np
import pytest

from compactproofs.interpretation.attention import attention_slopes
from compactproofs.interpretation.sizes import table_sizes
from models import random_weights, weights_from_tables

PREFIX = "EQKEHistAttentionDifferenceOverGapDupBySeqCount"


def model(EQKE, n_ctx):
    v = len(EQKE)
    return weights_from_tables(EQKE, np.zeros((v, n_ctx)), np.eye(v), np.zeros((n_ctx, v)), np.zeros((v, v)))


def test_scores_linear_in_the_token_have_one_slope():
    slopes = attention_slopes(model(np.tile(2.0 * np.arange(5), (5, 1)), 3))
    assert (slopes.mean, slopes.smallest, slopes.largest) == pytest.approx((2, 2, 2)) and slopes.std == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(slopes.difference_mean_by_gap, [2, 4, 6, 8])
    np.testing.assert_allclose(slopes.difference_std_by_gap, 0, atol=1e-12)
    assert slopes.statistics()["attention_ratio_per_token"] == pytest.approx(np.exp(2))


def test_slopes_are_weighted_by_sequences_with_that_query_and_label():
    # d_vocab = 2, n_ctx = 2: one sequence has label 1 and query 0, two have label 1 and query 1. Slopes 1 and 4.
    slopes = attention_slopes(model(np.outer([1.0, 4.0], [0, 1]), 2))
    assert slopes.mean == pytest.approx(3) and slopes.std == pytest.approx(2**0.5)
    assert slopes.histogram.total == 3 and slopes.histogram.counts[0] == 1 and slopes.histogram.counts[-1] == 2


def test_queries_above_the_label_do_not_count():
    # Query 2 (slope 10) occurs only with label 2. Label 1: 3 sequences, one pair each. Label 2: 2 of slope 1, 3 of slope 10, two pairs each
    slopes = attention_slopes(model(np.outer([1.0, 1.0, 10.0], [0, 1, 2]), 2))
    assert slopes.mean == pytest.approx((3 * 1 + 2 * (2 * 1 + 3 * 10)) / 13)
    np.testing.assert_allclose(slopes.difference_mean_by_gap, [(3 + 2 + 30) / 8, (2 * 2 + 3 * 20) / 5])


def test_the_histogram_counts_every_label_of_every_sequence_once_per_smaller_token():
    slopes = attention_slopes(random_weights(2, n_ctx=3, d_vocab=5))
    assert slopes.histogram.total == sum(i * ((i + 1) ** 3 - i**3) for i in range(5))
    assert slopes.histogram.edges[0] == pytest.approx(slopes.smallest) and slopes.histogram.edges[-1] == pytest.approx(slopes.largest)


def test_a_single_token_has_no_slope():
    assert set(attention_slopes(random_weights(0, d_vocab=1)).statistics().values()) == {None}


def test_sizes_of_the_tables_that_should_not_matter():
    EU = [[0, 7, 0], [1, -8, 2], [0, 0, 0]]
    weights = weights_from_tables(np.zeros((3, 3)), [[1, 3], [0, 6], [0, 0]], np.eye(3), [[5, 0, 0], [1, 0, 4]], EU)
    sizes = table_sizes(weights)  # positions are centred: EQKP rows -1 1, -3 3, 0 0; PVOU rows 2 0 -2 and -2 0 2
    assert sizes["EQKPWithAttnScaleAbsMaxFloat"] == 3 and sizes["EQKP_row_diff_max"] == 6
    assert sizes["EQKP_abs_mean"] == pytest.approx(8 / 6)
    assert sizes["PVOU_abs_max"] == 2 and sizes["PVOU_row_diff_max"] == 4
    assert sizes["EUPUAbsMaxFloat"] == 8 and sizes["EU_row_diff_max"] == 10 and sizes["EU_row_diff_mean"] == pytest.approx(17 / 3)
