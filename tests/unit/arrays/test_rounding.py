from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactproofs.arrays import rounding

finite = st.floats(allow_nan=False, allow_infinity=False)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 2.2e-308, 1.7976931348623157e308, -1.7976931348623157e308, 1e16, 1e-16, 0.1, 3.0]


@given(finite, finite)
def test_add_down_and_add_up_enclose_the_exact_sum(a, b):
    low, high = (float(f(np.array(a), np.array(b))) for f in (rounding.add_down, rounding.add_up))
    exact = Fraction(a) + Fraction(b)
    assert low == -np.inf or Fraction(low) <= exact
    assert high == np.inf or exact <= Fraction(high)
    if exact == 0:
        assert low == high == 0
    elif np.isfinite(low) and np.isfinite(high):
        assert Fraction(high) - Fraction(low) <= abs(exact) / 2**50


@given(finite)
def test_step_down_and_step_up_pass_the_neighbouring_floats(x):
    with np.errstate(over="ignore"):
        assert rounding.step_down(np.array(x)) <= np.nextafter(x, -np.inf)
        assert rounding.step_up(np.array(x)) >= np.nextafter(x, np.inf)


@pytest.mark.parametrize("a", SPECIAL)
@pytest.mark.parametrize("b", SPECIAL)
def test_directed_operations_at_the_edges_of_float64(a, b):
    x, y = np.array(a), np.array(b)
    product = rounding.rounded_product(x, y)
    for low, high, exact in (
        (rounding.add_down(x, y), rounding.add_up(x, y), Fraction(a) + Fraction(b)),
        (rounding.step_down(product), rounding.step_up(product), Fraction(a) * Fraction(b)),
    ):
        assert low == -np.inf or Fraction(float(low)) <= exact
        assert high == np.inf or exact <= Fraction(float(high))


def test_directed_operations_never_turn_nan_into_a_number():
    for operation in (rounding.add_down, rounding.add_up, rounding.rounded_product):
        assert np.isnan(operation(np.array(np.nan), np.array(1.0)))
        assert np.isnan(operation(np.array(0.0), np.array(np.nan)))


@given(st.fractions())
def test_round_down_and_round_up_are_neighbours_around_the_value(value):
    low, high = rounding.round_down(value), rounding.round_up(value)
    assert Fraction(low) <= value <= Fraction(high)
    assert high in (low, np.nextafter(low, np.inf))


def test_rounding_beyond_the_range_of_float64():
    huge = Fraction(10) ** 400
    assert (rounding.round_down(huge), rounding.round_up(huge)) == (1.7976931348623157e308, np.inf)
    assert (rounding.round_down(-huge), rounding.round_up(-huge)) == (-np.inf, -1.7976931348623157e308)


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_inverse_sqrt_enclosure_contains_the_inverse_root(square):
    low, high = rounding.inverse_sqrt_enclosure(square)
    assert Fraction(low) ** 2 * square <= 1 <= Fraction(high) ** 2 * square
    assert high <= np.nextafter(low, np.inf)


@pytest.mark.parametrize("n", [0, 1, 2, 32, 1000, 2**20, 2**39])
def test_gamma_upper_bounds_highams_gamma(n):
    u = Fraction(1, 2**53)
    assert Fraction(rounding.gamma_upper(n)) >= n * u / (1 - n * u)


def test_gamma_upper_and_inverse_sqrt_refuse_what_they_do_not_cover():
    with pytest.raises(ValueError, match="n=-1"):
        rounding.gamma_upper(-1)
    with pytest.raises(ValueError, match="positive"):
        rounding.inverse_sqrt_enclosure(Fraction(0))
