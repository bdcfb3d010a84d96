"""Activations as differences of convex functions."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from compactproofs.arrays.arithmetic import Float64
from compactproofs.bounds.activations import INFLECTION, Parts
from compactproofs.form.block import activated
from compactproofs.model.network import Activation

CURVED = [Activation.GELU, Activation.GELU_TANH, Activation.SILU]


def sigmoid(x):
    return 1 / (1 + (-x).exp())


def second_derivative(act, y):
    """Of y s(w(y)), w = y or w = K (y + B y^3): s' (2 w' + y w'' - y w'^2 tanh(w / 2))."""
    if act is Activation.SILU:
        w, first, second = y, arb(1), arb(0)
    else:
        K, B = (arb(8) / arb.pi()).sqrt(), arb(44715) / 10**6
        w, first, second = K * (y + B * y**3), K * (1 + 3 * B * y**2), 6 * K * B * y
    s = sigmoid(w)
    return s * (1 - s) * (2 * first + y * second - y * first**2 * (w / 2).tanh())


@pytest.mark.parametrize("act", INFLECTION)
def test_the_inflection_point_lies_between_its_bounds(act):
    previous, ctx.prec = ctx.prec, 200
    low, high = (arb(x.numerator) / arb(x.denominator) for x in INFLECTION[act])
    assert second_derivative(act, low) > 0 > second_derivative(act, high)
    ctx.prec = previous
    assert INFLECTION[act][1] - INFLECTION[act][0] < Fraction(1, 10**18)


@pytest.mark.parametrize("act", CURVED)
def test_both_parts_are_convex_and_their_difference_is_the_activation(act):
    """In float64, with room for rounding."""
    g, y, h = Parts(act, Float64()), np.linspace(-7, 7, 1401), 1e-3
    assert np.allclose(g.first(y) - g.second(y), activated(act, y, Float64()), atol=1e-12)
    first, first_slope, second, second_slope = g.with_slopes(y)
    for part, value, slope in ((g.first, first, first_slope), (g.second, second, second_slope)):
        assert (part(y + h) + part(y - h) - 2 * part(y) >= -1e-12).all()
        assert np.allclose(part(y), value, atol=1e-12)
        assert np.allclose((part(y + h) - part(y - h)) / (2 * h), slope, atol=1e-5)


@pytest.mark.parametrize("act", [*CURVED, Activation.RELU])
def test_perspectives(act):
    g, x, b = Parts(act, Float64()), np.linspace(-3, 3, 61), np.array(0.25)
    assert np.allclose(g.first_perspective(x, b), 0.25 * g.first(x / 0.25))
    if not g.convex:
        assert np.allclose(g.second_perspective(x, b), 0.25 * g.second(x / 0.25))
