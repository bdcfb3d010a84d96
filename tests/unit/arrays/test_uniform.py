"""The law of Uniform: whatever numbers within the errors of operands are meant, the exact result is within the error of the result."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactproofs.arrays.interval import Interval
from compactproofs.arrays.uniform import LARGEST, Uniform, erf, sigmoid

SHAPE = (3, 4)
SCALES = (1e-320, 1e-200, 1e-30, 1e-3, 1.0, 1e5, 1e100)
cases = st.tuples(st.integers(0, 2**32 - 1), st.sampled_from(SCALES), st.sampled_from(SCALES), st.sampled_from([0.0, 1e-18, 1e-6, 0.3]))


def drawn(rng, scale, relative, shape=SHAPE):
    """An array with an error, and exact numbers that it may stand for, some of them at the ends."""
    value = rng.normal(size=shape) * scale
    error = abs(float(value.flat[0])) * relative
    moves = rng.choice([-1, 0, 1], size=shape)
    exact = np.array([Fraction(x) + m * Fraction(error) for x, m in zip(value.flat, moves.flat, strict=True)], dtype=object).reshape(shape)
    return Uniform(value, error, float(np.abs(value).max())), exact


def holds(found, exact):
    """Whether every number is within the error; an infinite error says nothing."""
    if not found.known:
        return True
    pairs = zip(found.value.flat, np.asarray(exact, dtype=object).flat, strict=True)
    assert float(np.abs(found.value).max(initial=0.0)) <= found.size
    return all(abs(Fraction(float(x)) - y) <= Fraction(found.error) for x, y in pairs)


@given(cases)
def test_sums_products_and_quotients(case):
    seed, one, other, relative = case
    rng = np.random.default_rng(seed)
    (x, X), (y, Y) = drawn(rng, one, relative), drawn(rng, other, relative)
    assert holds(x + y, X + Y) and holds(x - y, X - Y) and holds(x * y, X * Y) and holds(-x, -X) and holds(abs(x), abs(X))
    assert holds(x.sum(axis=0), X.sum(axis=0)) and holds(x.mean(axis=1), X.sum(axis=1) / 4)
    assert holds(np.maximum(x, y), np.maximum(X, Y)) and holds(np.minimum(x, y), np.minimum(X, Y))
    if all(Y.flat):
        assert holds(x / y, X / Y)
    (z, Z) = drawn(rng, other, relative, (4, 2))
    assert holds(x @ z, X @ Z)


@given(cases)
def test_joining_and_choosing(case):
    seed, one, other, relative = case
    rng = np.random.default_rng(seed)
    (x, X), (y, Y) = drawn(rng, one, relative), drawn(rng, other, relative)
    condition = rng.random(SHAPE) < 0.5
    assert holds(np.where(condition, x, y), np.where(condition, X, Y))
    assert holds(np.concatenate([x, y], axis=1), np.concatenate([X, Y], axis=1)) and holds(np.stack([x, y]), np.stack([X, Y]))
    assert holds(x[1:, [0, 2]], X[1:, [0, 2]]) and holds(x.T, X.T) and holds(np.moveaxis(x, 0, 1), np.moveaxis(X, 0, 1))


@given(cases)
def test_square_roots(case):
    """(y - e)^2 <= x <= (y + e)^2, without taking a root."""
    seed, scale, _, relative = case
    value = np.abs(np.random.default_rng(seed).normal(size=SHAPE)) * scale
    error = float(value.flat[0]) * relative
    for sign in (-1, 0, 1):
        found = np.sqrt(Uniform(value, error, float(value.max())))
        if found.known:
            e = Fraction(found.error)
            for x, y in zip(value.flat, found.value.flat, strict=True):
                exact, root = max(Fraction(x) + sign * Fraction(error), Fraction(0)), Fraction(float(y))
                assert max(root - e, 0) ** 2 <= exact <= (root + e) ** 2


@pytest.mark.parametrize("function", [np.exp, erf, sigmoid])
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-300, 1e-3, 1.0, 30.0, 500.0]), st.sampled_from([0.0, 1e-12, 0.2]))
def test_functions(function, seed, scale, relative):
    from flint import arb, ctx

    previous, ctx.prec = ctx.prec, 300
    rng = np.random.default_rng(seed)
    x, X = drawn(rng, scale, relative)
    found = function(x)
    exactly = {np.exp: lambda y: y.exp(), erf: lambda y: y.erf(), sigmoid: lambda y: 1 / (1 + (-y).exp())}[function]
    if found.known:
        for y, exact in zip(found.value.flat, X.flat, strict=True):
            assert not abs(exactly(arb(exact.numerator) / arb(exact.denominator)) - arb(float(y))) > arb(found.error)
    ctx.prec = previous


def test_what_is_too_large_or_no_number_is_not_known():
    for value in (np.inf, np.nan, 2 * LARGEST):
        assert not Uniform.exact(np.array([1.0, value])).known
    large = Uniform.exact(np.array([1e200]))
    assert not (large * large).known and not (large / Uniform.exact(np.array([0.0]))).known
    assert not Uniform.enclosing(Interval(np.array([0.0]), np.array([np.inf]))).known
    with pytest.raises(TypeError, match="truth"):
        bool(large)
