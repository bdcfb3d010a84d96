from fractions import Fraction

import numpy as np
import pytest

from compactproofs.interpretation.singular import singular_structure
from models import random_weights, weights_from_tables


def model_with_EQKE(EQKE):
    v = len(EQKE)
    return weights_from_tables(EQKE, np.zeros((v, 2)), np.eye(v), np.zeros((2, v)), np.zeros((v, v)))


def test_singular_values_and_directions_of_a_known_matrix():
    queries, others = np.array([1, 1, 1, 1]) / 2, np.array([1, -1, 1, -1]) / 2
    sizes, across = np.array([1, 3, 5, 7]) / 84**0.5, np.array([3, -1, 0, 0]) / 10**0.5
    found = singular_structure(model_with_EQKE(3 * np.outer(queries, sizes) + 2 * np.outer(others, across)))
    np.testing.assert_allclose(found.values, [3, 2, 0, 0], atol=1e-6)
    np.testing.assert_allclose(found.query_direction, queries, atol=1e-6)
    np.testing.assert_allclose(found.size_direction, sizes, atol=1e-6)
    statistics = found.statistics()
    assert statistics["EQKERatioFirstTwoSingularFloat"] == pytest.approx(1.5)
    assert statistics["EQKEQueryDirectionMeanFloat"] == pytest.approx(0.5)
    assert statistics["EQKESizeDirectionDiffsMeanFloat"] == pytest.approx(2 / 84**0.5)
    assert statistics["size_direction_decreasing_steps"] == 0


def test_the_sign_is_that_of_the_query_direction():
    found = singular_structure(model_with_EQKE(np.outer(np.ones(3), [3.0, 2.0, 1.0])))
    assert found.query_direction.min() > 0 and found.statistics()["size_direction_decreasing_steps"] == 2


def test_the_attention_scale_is_not_included():
    plain = singular_structure(random_weights(1, score_divisor_squared=Fraction(1)))
    scaled = singular_structure(random_weights(1, score_divisor_squared=Fraction(9)))
    np.testing.assert_allclose(plain.values, scaled.values, atol=1e-9)


def test_a_ratio_with_nothing_below_has_no_value():
    assert singular_structure(model_with_EQKE(np.zeros((3, 3)))).statistics()["EQKERatioFirstTwoSingularFloat"] is None
