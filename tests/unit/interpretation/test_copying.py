import numpy as np
import pytest

from compactproofs.interpretation.copying import copying
from models import random_weights, weights_from_tables


def model(EVOU, n_ctx=2):
    v, out = np.shape(EVOU)
    return weights_from_tables(np.zeros((v, v)), np.zeros((v, n_ctx)), EVOU, np.zeros((n_ctx, out)), np.zeros((v, out)))


def test_a_known_failure_and_its_weight():
    found = copying(model([[1, 2, 0], [0, 4, 1], [0, 3, 9]]))  # 1, 3 and 5 of nine sequences have label 0, 1, 2
    assert found.failures == (0,) and found.failing_sequences == pytest.approx(1 / 9)
    np.testing.assert_array_equal(found.margins, [1, -3, -6])
    assert found.margin_mean == pytest.approx((1 - 9 - 30) / 9)
    assert found.margin_std == pytest.approx((((1 * 1 + 3 * 9 + 5 * 36) / 9) - (38 / 9) ** 2) ** 0.5)
    assert found.off_diagonal_mean == pytest.approx((1 - 1 - 4 - 3 - 9 - 6) / 6)
    np.testing.assert_array_equal(found.row_diffs, [2, 4, 9])
    assert found.margin_histogram.total == 9 and found.margin_histogram.counts[0] == 5 and found.margin_histogram.counts[-1] == 1
    assert found.row_diff_histogram.total == 3
    statistics = found.statistics()
    assert statistics["EPVOUInputsWithCopyingFailureMaxFloat"] == 0 and statistics["copying_failures"] == 1
    assert statistics["EPVOUMaxRowDiffMeanFloat"] == 5


def test_a_tie_is_a_failure_and_perfect_copying_has_none():
    assert copying(model([[1, 1], [0, 1]])).failures == (0,)
    perfect = copying(model(np.eye(4)))
    assert perfect.failures == () and perfect.statistics()["EPVOUInputsWithCopyingFailureMaxFloat"] is None


def test_outputs_that_are_no_tokens_are_rivals_too():
    assert copying(model([[1, 0, 5], [0, 1, 0]])).failures == (0,)


def test_margins_count_every_sequence():
    assert copying(random_weights(3, n_ctx=4, d_vocab=6)).margin_histogram.total == 6**4


def test_a_single_output_has_no_margin():
    statistics = copying(random_weights(0, d_vocab=1)).statistics()
    assert statistics["EVOUHistMinAboveDiagDupBySeqCountMeanFloat"] is None and statistics["copying_failures"] == 0
