import numpy as np
import pytest

import compactproofs as cp
from compactproofs.bounds.low_rank_scores import Directions, find_directions
from compactproofs.interpretation.error_terms import ResidualFactors, error_terms, residual_factors
from compactproofs.interpretation.residuals import normality, resampling
from compactproofs.interpretation.singular import unscaled_EQKE
from models import random_weights, weights_from_tables


def test_without_directions_the_error_term_is_EQKE():
    EQKE = [[3, 0, 0], [0, 4, -1], [0, 0, 0]]
    weights = weights_from_tables(EQKE, np.zeros((3, 2)), np.eye(3), np.zeros((2, 3)), np.zeros((3, 3)))
    blank = Directions.blank(weights)
    np.testing.assert_allclose(residual_factors(weights, blank).product, EQKE)
    found = error_terms(weights, blank)
    assert found["EQKEErrMaxRowDiffFloat"] == 5 and found["EQKEErrMaxAbsFloat"] == 4
    assert found["EQKEErrMeanDimZeroNormFloat"] == pytest.approx((1 + 16 / 9 + 1 / 9) ** 0.5)
    assert found["EQKEErrFroNormFloat"] == pytest.approx(26**0.5)
    assert found["EQKEErrFirstSingularFloat"] == pytest.approx(17**0.5)
    assert found["EQKEErrBoundSvdFloat"] == found["EQKEErrFirstSingularSqrtTwoFloat"] == pytest.approx(34**0.5)
    assert found["EQKEErrBoundMaxDiffExactFloat"] == 5
    # W_E and W_K are made of unit vectors, so that absolute values all the way down lose nothing but the cancellation in one row.
    assert found["EQKEErrBoundMaxDiffSubproductRecursiveFloat"] == 5
    assert found["attention_error_upper_exact_EQKE+max_diff_exact"] == 0


def test_what_is_peeled_off_is_all_but_small():
    weights = cp.zoo("max-of-4")
    factors = residual_factors(weights, find_directions(weights))
    assert np.abs(factors.product).max() < 0.01 * np.abs(unscaled_EQKE(weights)).max()


@pytest.mark.parametrize("seed", range(5))
def test_every_bound_is_at_least_the_row_difference(seed):
    found = error_terms(random_weights(seed, d_vocab=7, d_model=5, d_head=3))
    bounds = [value for name, value in found.items() if name.startswith("EQKEErrBound") or name.endswith("SqrtTwoFloat")]
    assert len(bounds) == 9 + 4 and min(bounds) >= found["EQKEErrMaxRowDiffFloat"] * (1 - 1e-12)
    assert found["EQKEErrProdFirstSingularFloat"] >= found["EQKEErrFirstSingularFloat"]
    product = np.prod([found[f"{name}FroNormFloat"] for name in ("WEqqPerp", "WQqPerp", "WKkPerp", "WEkkPerp")])
    assert found["EQKEErrProdFroNormFloat"] == pytest.approx(product)


def test_normality_of_two_values():
    found = normality(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    assert (found.mean, found.std, found.skewness, found.excess_kurtosis) == (0, 1, 0, -2)
    assert found.kolmogorov_distance == pytest.approx(0.5 - 0.15865525393145707)
    assert found.histogram.total == 4 and found.expected.sum() == pytest.approx(4 * 0.6826894921370859)


def test_normal_entries_look_normal():
    found = normality(np.random.default_rng(0).normal(2.0, 3.0, size=(100, 100)))
    assert found.mean == pytest.approx(2, abs=0.1) and found.std == pytest.approx(3, abs=0.1)
    assert abs(found.skewness) < 0.1 and abs(found.excess_kurtosis) < 0.1 and found.kolmogorov_distance < 0.01
    assert np.abs(np.array(found.histogram.counts) - found.expected).max() < 150


def test_equal_entries_have_no_shape():
    assert set(normality(np.ones((2, 3))).statistics("x").values()) == {1.0, 0.0, None}


def test_resampling_factors_without_variation_changes_nothing():
    factors = ResidualFactors(np.ones((4, 2)), np.full((2, 3), 2.0), np.ones((2, 3)), np.ones((4, 2)))
    found = resampling(factors, draws=3)
    assert found.actual == found.shuffled_mean == found.normal_mean == 0 and found.shuffled_std == 0
    assert found.statistics()["resample_deviations_above_shuffled"] is None


def test_resampling_is_deterministic_and_shuffling_keeps_the_size():
    rng = np.random.default_rng(3)
    factors = ResidualFactors(*(rng.normal(size=shape) for shape in [(30, 8), (8, 8), (8, 8), (30, 8)]))
    found = resampling(factors, draws=40)
    assert found == resampling(factors, draws=40) != resampling(factors, draws=40, seed=5)
    assert abs(found.statistics()["resample_deviations_above_shuffled"]) < 3.5  # these factors are random themselves
    assert found.normal_mean == pytest.approx(found.shuffled_mean, rel=0.1)
