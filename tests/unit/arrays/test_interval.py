from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactproofs.arrays import Interval

numbers = st.floats(min_value=-1e200, max_value=1e200, allow_nan=False)
pairs = st.tuples(numbers, numbers).map(sorted)


def interval(pair):
    return Interval(np.array(pair[0]), np.array(pair[1]))


def contains(result, exact):
    low, high = float(result.lower), float(result.upper)
    return (low == -np.inf or Fraction(low) <= exact) and (high == np.inf or exact <= Fraction(high))


def corners(x, y):
    return [(Fraction(a), Fraction(b)) for a in x for b in y]


@given(pairs, pairs)
def test_arithmetic_encloses_every_corner(x, y):
    X, Y = interval(x), interval(y)
    for a, b in corners(x, y):
        assert contains(X + Y, a + b)
        assert contains(X - Y, a - b)
        assert contains(X * Y, a * b)
        assert contains(-X, -a)
        assert contains(np.add(X, Y), a + b)
        assert contains(np.multiply(X, Y), a * b)


@given(pairs)
def test_midpoint_radius_and_magnitude_cover_the_interval(x):
    X = interval(x)
    (midpoint, radius), magnitude = X.midpoint_radius(), X.magnitude_upper()
    for end in map(Fraction, x):
        assert abs(end - Fraction(float(midpoint))) <= Fraction(float(radius))
        assert abs(end) <= Fraction(float(magnitude))


def exact_product(A, B):
    return [[sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(row, column, strict=True)) for column in B.T] for row in A]


@pytest.mark.parametrize("magnitude", [1e-160, 1e-10, 1.0, 1e10, 1e100])
@pytest.mark.parametrize("seed", range(5))
def test_matmul_encloses_products_of_matrices_inside(magnitude, seed):
    rng = np.random.default_rng(seed)
    A, B = magnitude * rng.normal(size=(3, 7)), rng.normal(size=(7, 2)) * 10.0 ** rng.integers(-12, 12, size=(7, 2))
    r, s = np.abs(A) * 10.0 ** rng.integers(-16, 0), np.abs(B) * 10.0 ** rng.integers(-16, 0)
    X, Y = Interval(A - r, A + r), Interval(B - s, B + s)
    product = X @ Y
    for _ in range(10):
        inside_A = np.clip(A + r * rng.choice([-1, 0.3, 1], size=A.shape), X.lower, X.upper)
        inside_B = np.clip(B + s * rng.choice([-1, 0.3, 1], size=B.shape), Y.lower, Y.upper)
        exact = exact_product(inside_A, inside_B)
        assert all(contains(product[i, j], exact[i][j]) for i in range(3) for j in range(2))


def test_matmul_encloses_under_catastrophic_cancellation():
    A = np.array([[1e30, 1.0, -1e30]])
    B = np.array([[1.0], [1e-5], [1.0]])
    product = Interval.exact(A) @ Interval.exact(B)
    assert contains(product[0, 0], Fraction(1e-5))
    assert (A @ B)[0, 0] != 1e-5 or product.upper[0, 0] > product.lower[0, 0]


def test_comparisons_are_true_only_when_certain():
    x = Interval(np.array([0.0, 0.0, np.nan]), np.array([1.0, 1.0, np.nan]))
    y = Interval(np.array([1.0, 1.5, 2.0]), np.array([2.0, 2.0, 3.0]))
    assert x.certainly_less(y).tolist() == [False, True, False]
    with pytest.raises(TypeError, match="truth of an interval"):
        bool(x)


def test_operations_without_an_enclosure_raise_instead_of_falling_back_to_floats():
    x = Interval.exact(np.ones(3))
    for operation in (np.sin, np.sort, np.argmax, np.sqrt):
        with pytest.raises(TypeError):
            operation(x)
    with pytest.raises(TypeError):
        np.add.reduce(x)
    with pytest.raises(TypeError):
        np.add(x, x, out=np.zeros(3))


def test_construction_refuses_nonsense():
    with pytest.raises(ValueError, match="above its upper end"):
        Interval(np.array([1.0]), np.array([0.0]))
    with pytest.raises(ValueError, match="differ in shape"):
        Interval(np.zeros(2), np.zeros(3))
    with pytest.raises(TypeError, match="dtype"):
        Interval.exact(np.array(["x"]))
    with pytest.raises(TypeError, match="must be float64"):
        Interval(np.zeros(1, np.float32), np.zeros(1, np.float32))
    with pytest.raises(TypeError, match="make it an array first"):
        Interval.exact(np.ones(2)) + [2**53 + 1, 0.5]  # noqa: RUF005
    with pytest.raises(TypeError, match="2\\^53"):
        Interval.exact(np.ones(1)) + np.array([2**60])


def test_indexing_transposing_and_broadcasting():
    x = Interval.exact(np.arange(6.0).reshape(2, 3))
    assert x.shape == (2, 3) and x.ndim == 2 and len(x) == 2
    assert x.T.shape == (3, 2)
    assert (x + x[0]).lower.tolist() == [[0, 2, 4], [3, 5, 7]]
    assert (1 - x[0]).upper.tolist() == [1, 0, -1]
