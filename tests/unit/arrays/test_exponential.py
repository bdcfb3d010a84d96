from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from compactproofs.arrays.exponential import RELATIVE_ERROR, exp_approximation, exp_lower, exp_upper


def exact_exp(x):
    ctx.prec = 200
    return arb(float(x)).exp()


def below(value, ball):
    """Certainly value <= ball, for a finite float value."""
    return not arb(float(value)) > ball and (arb(float(value)) < ball or arb(float(value)) == ball)


def points():
    rng = np.random.default_rng(0)
    edges = [0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 709.78, 709.79, 710.0, -708.4, -744.4, -745.1, -745.2, -746.0, 799.9, -1e5, 1e5]
    halves = np.log(2.0) * (np.arange(-1000, 1000) + 0.5)  # where the reduced argument is largest
    return np.concatenate(
        [edges, halves, np.nextafter(halves, np.inf), rng.uniform(-745, 710, 20_000), rng.normal(size=5_000), 1e-8 * rng.normal(size=1_000)]
    )


def test_exp_lower_and_exp_upper_enclose_the_exact_exponential():
    x = points()
    for value, low, high in zip(x, exp_lower(x), exp_upper(x), strict=True):
        exact = exact_exp(value)
        assert low >= 0
        assert below(low, exact), value
        assert high == np.inf or arb(float(high)) > exact or arb(float(high)) == exact, value


def test_exp_enclosure_is_tight_where_exp_is_a_normal_number():
    x = np.random.default_rng(1).uniform(-700, 700, 10_000)
    assert np.all(exp_upper(x) / exp_lower(x) < 1 + 5 * RELATIVE_ERROR)


def test_exp_approximation_keeps_its_promised_error():
    x = points()
    x = x[np.abs(x) < 700]
    worst = Fraction(0)
    for value, approximation in zip(x, exp_approximation(x), strict=True):
        exact = exact_exp(value)
        relative = abs((arb(float(approximation)) - exact) / exact)
        worst = max(worst, Fraction(float(relative.mid()) + float(relative.rad())))
    assert worst <= RELATIVE_ERROR
    assert worst > 0  # the comparison is a real one


def test_exp_of_infinities_and_nan():
    x = np.array([-np.inf, np.inf, np.nan])
    assert exp_lower(x)[0] == 0 and 0 < exp_upper(x)[0] < 1e-300
    assert exp_lower(x)[1] >= 1e308 and exp_upper(x)[1] == np.inf
    assert np.isnan(exp_lower(x)[2]) and np.isnan(exp_upper(x)[2])


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_exp_keeps_the_shape(shape):
    for function in (exp_lower, exp_upper, exp_approximation):
        assert function(np.zeros(shape)).shape == shape


def test_reduction_constants_are_what_the_proof_says():
    from compactproofs.arrays import exponential

    assert Fraction(exponential.LN2_HIGH).numerator.bit_length() <= 40
    ctx.prec = 200
    error = arb(2).log() - arb(exponential.LN2_HIGH) - arb(exponential.LN2_LOW)
    assert abs(error) < arb(fmpq(1, 2**92))
