"""erf and tanh in float64 and intervals against python-flint."""

import numpy as np
import pytest
from flint import arb, ctx

from compactproofs.arrays import Interval, error_function
from compactproofs.arrays.interval import erf


@pytest.fixture(autouse=True)
def precision():
    previous, ctx.prec = ctx.prec, 3000
    yield
    ctx.prec = previous


def points():
    rng = np.random.default_rng(0)
    cells = np.arange(-112, 113) / 16
    x = [rng.uniform(-7, 7, 400), cells, np.nextafter(cells, 9), 10.0 ** rng.uniform(-320, 2, 100), 10.0 ** rng.uniform(-9, 0, 100)]
    return np.concatenate([*x, -(10.0 ** rng.uniform(-320, 2, 100)), [0.0, 1 / 64, -1 / 64, 6.0, 1e300, 5e-324, -5e-324]])


def test_the_error_of_the_approximation_is_as_proven():
    x = points()
    for value, approximation in zip(x, error_function.erf_approximation(x), strict=True):
        assert abs(arb(value).erf() - arb(approximation)) <= arb(error_function.ABSOLUTE_ERROR)


@pytest.mark.parametrize(("function", "exact"), [(erf, arb.erf), (np.tanh, arb.tanh)], ids=["erf", "tanh"])
def test_intervals_contain_the_exact_value(function, exact):
    x = points()
    result = function(Interval.exact(x))
    for value, lower, upper in zip(x, result.lower, result.upper, strict=True):
        truth = exact(arb(value))
        assert lower == -1 or arb(lower) <= truth
        assert upper == 1 or truth <= arb(upper)
    assert (result.upper - result.lower).max() < 1e-13
    tiny = np.abs(x) < 1e-3
    assert (result.upper - result.lower)[tiny].max() < 1e-6
    wide = function(Interval(np.array([-np.inf, -1.0, np.nan]), np.array([np.inf, 2.0, np.nan])))
    assert wide.lower[0] == -1 and wide.upper[0] == 1 and np.isnan(wide.lower[2])
    assert arb(wide.lower[1]) < exact(arb(-1)) and exact(arb(2)) < arb(wide.upper[1])
    assert wide.upper[1] - wide.lower[1] < 2
