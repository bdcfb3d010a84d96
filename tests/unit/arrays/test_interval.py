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


@given(pairs, pairs)
def test_division_maxima_and_absolute_values_enclose_every_corner(x, y):
    X, Y = interval(x), interval(y)
    for a, b in corners(x, y):
        if b != 0:
            assert contains(X / Y, a / b)
        assert contains(np.maximum(X, Y), max(a, b))
        assert contains(np.minimum(X, Y), min(a, b))
        assert contains(abs(X), abs(a))


@given(st.lists(st.tuples(numbers, numbers).map(sorted), min_size=1, max_size=6), st.randoms())
def test_reductions_sorting_and_running_values_enclose(intervals, random):
    X = Interval(np.array([x[0] for x in intervals]), np.array([x[1] for x in intervals]))
    inside = [Fraction(random.choice(x)) for x in intervals]
    assert contains(X.sum(axis=0), sum(inside))
    assert contains(X.max(), max(inside))
    assert contains(X.min(), min(inside))
    assert contains(X.mean(axis=0), sum(inside) / len(inside))
    for i in range(len(inside)):
        assert contains(X.cumsum(axis=0)[i], sum(inside[: i + 1]))
        assert contains(np.sort(X)[i], sorted(inside)[i])
        assert contains(np.maximum.accumulate(X)[i], max(inside[: i + 1]))
        assert contains(np.minimum.accumulate(X)[i], min(inside[: i + 1]))


@given(st.tuples(st.floats(0, 1e300), st.floats(0, 1e300)).map(sorted))
def test_square_roots_enclose(x):
    root = np.sqrt(interval(x))
    for end in map(Fraction, x):
        assert Fraction(float(root.lower)) ** 2 <= end <= Fraction(float(root.upper)) ** 2


def test_square_root_of_the_certainly_negative_is_refused_and_rounding_below_zero_is_not():
    assert np.sqrt(Interval(np.array(-1e-300), np.array(1.0))).lower == 0
    with pytest.raises(ValueError, match="negative"):
        np.sqrt(Interval(np.array(-2.0), np.array(-1.0)))


def test_division_by_what_may_be_zero_says_nothing():
    quotient = Interval.exact(np.ones(3)) / Interval(np.array([-1.0, 0.0, 2.0]), np.array([1.0, 1.0, 4.0]))
    assert quotient.lower[:2].tolist() == [-np.inf] * 2 and quotient.upper[:2].tolist() == [np.inf] * 2
    assert 0.24 < quotient.lower[2] <= 0.25 and 0.5 <= quotient.upper[2] < 0.51


def test_selection_by_an_uncertain_condition_is_the_hull():
    x = Interval(np.array([0.0, 2.0, 5.0]), np.array([1.0, 4.0, 6.0]))
    chosen = np.where(x < 3.0, Interval.exact(np.zeros(3)), Interval.exact(np.ones(3)))
    assert chosen.lower.tolist() == [0, 0, 1] and chosen.upper.tolist() == [0, 1, 1]
    assert np.where(np.array([True, False, True]), x, -np.inf).upper.tolist() == [1, -np.inf, 6]
    assert bool(x[0] < 3.0) is True and bool(x[2] < 3.0) is False and bool(x[2] > 3.0) is True
    with pytest.raises(TypeError, match="uncertain"):
        bool(x[1] < 3.0)
    assert not (Interval.exact(np.array(np.nan)) < 1.0).certain


def test_sorting_does_not_lose_what_is_not_a_number():
    x = Interval(np.array([[np.nan, 1.0], [2.0, 1.0]]), np.array([[np.nan, 2.0], [2.0, 1.0]]))
    assert np.isnan(np.sort(x).lower[0]).all() and np.sort(x).lower[1].tolist() == [1.0, 2.0]


def test_an_overflowing_product_of_matrices_says_nothing():
    product = Interval.exact(np.array([[1e200, -1e200]])) @ Interval.exact(np.array([[1e200], [1e200]]))
    assert product.lower[0, 0] == -np.inf and product.upper[0, 0] == np.inf


def test_infinite_ends_stay_sound():
    everything = Interval(np.array(-np.inf), np.array(np.inf))
    nothing = Interval.exact(np.array(0.0))
    assert contains(everything * nothing, Fraction(0))
    assert (everything + 1.0).lower == -np.inf and (everything + 1.0).upper == np.inf
    huge = Interval.exact(np.array(1e308))
    assert (huge * 10.0).lower <= 1.8e308 and (huge * 10.0).upper == np.inf and np.isfinite((huge * 10.0).lower)
    assert np.isfinite((huge + huge).lower) and (huge + huge).upper == np.inf


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
    for operation in (np.sin, np.argmax, np.argsort, np.median, np.log):
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
    np.testing.assert_allclose((x + x[0]).lower, [[0, 2, 4], [3, 5, 7]], rtol=1e-15)
    np.testing.assert_allclose((1 - x[0]).upper, [1, 0, -1], rtol=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_scaling_by_positive_numbers_encloses_the_exact_product(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=50) * 10.0 ** rng.integers(-320, 300, size=50)
    x[:5] = 0.0
    factor = np.exp(rng.normal(size=50)) * 10.0 ** rng.integers(-5, 5, size=50)
    product = Interval.exact(x) * factor
    for low, high, a, b in zip(product.lower, product.upper, x, factor, strict=True):
        assert Fraction(low) <= Fraction(a) * Fraction(b) <= Fraction(high)
    assert (product.lower[:5] == 0).all() and (product.upper[:5] == 0).all()


@pytest.mark.parametrize("swapped", [False, True])
def test_products_with_what_is_not_negative_enclose_every_corner(swapped):
    rng = np.random.default_rng(0)
    ends = np.array([-np.inf, -1e300, -2.5, -1e-310, -0.0, 0.0, 5e-324, 1e-200, 0.7, 3.0, 1e300, np.inf])
    x = np.sort(rng.choice(ends, size=(2000, 2)), axis=1)
    factor = np.sort(rng.choice(ends[ends >= 0], size=(2000, 2)), axis=1)
    X, F = Interval(x[:, 0], x[:, 1]), Interval(factor[:, 0], factor[:, 1])
    product = F * X if swapped else X * F
    finite = [(i, a, b) for i in range(2000) for a in x[i] for b in factor[i] if np.isfinite(a) and np.isfinite(b)]
    assert len(finite) > 4000
    assert all(contains(product[i], Fraction(a) * Fraction(b)) for i, a, b in finite)
    beyond = np.isinf(x).any(axis=1) & (factor[:, 1] > 0)
    assert np.all(np.where(beyond & np.isinf(x[:, 1]) & (x[:, 1] > 0), product.upper, np.inf) == np.inf)
    assert np.all(np.where(beyond & np.isinf(x[:, 0]) & (x[:, 0] < 0), product.lower, -np.inf) == -np.inf)
    zero = (factor[:, 1] == 0) | ((x[:, 0] == 0) & (x[:, 1] == 0))
    assert np.all(product.lower[zero] == 0) and np.all(product.upper[zero] == 0)


def test_products_with_what_is_not_negative_keep_what_is_not_a_number():
    x = Interval(np.array([np.nan, 1.0, np.nan]), np.array([1.0, np.nan, np.nan]))
    for product in (x * Interval.exact(np.zeros(3)), Interval(np.zeros(3), np.ones(3)) * x):
        assert np.isnan(product.lower).all() and np.isnan(product.upper).all()
