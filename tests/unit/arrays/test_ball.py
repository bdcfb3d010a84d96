"""Every operation on balls encloses the exact result, for exact inputs anywhere inside the balls."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from compactproofs.arrays.ball import LEAST_BITS, Ball, UndecidableError

BITS = 200


@pytest.fixture(autouse=True)
def precision():
    previous, ctx.prec = ctx.prec, 2000
    yield
    ctx.prec = previous


def random_ball(rng, shape, radius, size=2.0):
    """A ball, and exact values (fractions) at its edges and inside."""
    middle = np.array([int(Fraction(x) * 2**BITS) for x in (size * rng.normal(size=shape)).ravel()], dtype=object).reshape(shape)
    moves = rng.choice([-1, 0, 1], size=middle.size)
    inside = [Fraction(int(m) + int(s) * radius, 2**BITS) for m, s in zip(middle.ravel(), moves, strict=True)]
    exact = np.empty(middle.size, dtype=object)
    exact[:] = inside
    return Ball(middle, radius, BITS), exact.reshape(shape)


def contains(ball, exact):
    """Exact values as fractions or as balls of flint."""
    scale = arb(2) ** BITS
    for low, high, value in zip(ball.lower().flat, ball.upper().flat, np.asarray(exact, dtype=object).flat, strict=True):
        x = value if isinstance(value, arb) else arb(value.numerator) / arb(value.denominator)
        if not (arb(int(low)) <= x * scale and x * scale <= arb(int(high))):
            return False
    return True


@pytest.mark.parametrize("radius", [0, 1, 2**20, 2**150])
@pytest.mark.parametrize("seed", range(5))
def test_arithmetic(seed, radius):
    rng = np.random.default_rng(seed)
    (X, x), (Y, y), (M, m) = random_ball(rng, (3, 4), radius), random_ball(rng, (3, 4), 2 * radius), random_ball(rng, (4, 2), radius)
    assert contains(X + Y, x + y) and contains(X - Y, x - y) and contains(-X, -x) and contains(abs(X), abs(x))
    assert contains(X * Y, x * y) and contains(X / Y, x / y) and contains(X @ M, x @ m)
    assert contains(X.sum(axis=1), x.sum(axis=1)) and contains(X.mean(axis=1), x.sum(axis=1) / Fraction(4))
    assert contains(X.relu(), np.maximum(x, Fraction(0))) and contains(X.T, x.T) and contains(X[:, None], x[:, None])
    assert contains(np.concatenate([X, Y], axis=1), np.concatenate([x, y], axis=1))


@pytest.mark.parametrize("radius", [0, 1, 2**20, 2**150])
@pytest.mark.parametrize("seed", range(5))
def test_functions(seed, radius):
    rng = np.random.default_rng(seed)
    X, x = random_ball(rng, (12,), radius)
    as_arb = [arb(value.numerator) / arb(value.denominator) for value in x]
    assert contains(X.sigmoid(), [1 / (1 + (-value).exp()) for value in as_arb])
    assert contains(X.erf(), [value.erf() for value in as_arb])
    positive, values = Ball(abs(X.middle), radius, BITS), [abs(value) for value in as_arb]
    assert contains(positive.sqrt(), [value.sqrt() for value in values])
    assert contains((-positive).exp_below(), [(-value).exp() for value in values])


def test_roots_near_zero():
    for middle, radius in ((0, 0), (0, 5), (3, 5), (-4, 5), (10**9, 10**9)):
        root = Ball(np.array([middle], dtype=object), radius, BITS).sqrt()
        for value in (max(0, middle - radius), max(0, middle), middle + radius):
            assert contains(root, [(arb(value) / arb(2) ** BITS).sqrt()])


def test_every_float32_number_is_exact():
    values = np.array([0.0, -0.0, 2.0**-149, -3 * 2.0**-149, 3.4028235e38, -1.1754944e-38, 0.1, 1.0], dtype=np.float32)
    ball = Ball.exact(values, LEAST_BITS)
    assert ball.radius == 0 and [Fraction(int(x), 2**LEAST_BITS) for x in ball.middle] == [Fraction(float(x)) for x in values]
    with pytest.raises(TypeError, match="float32"):
        Ball.exact(values.astype(np.float64), BITS)
    with pytest.raises(TypeError, match="bits"):
        Ball.exact(values, 100)


def test_what_cannot_be_enclosed_is_said():
    one, unknown = Ball(np.array([1], dtype=object), 0, BITS), Ball(np.array([3], dtype=object), 3, BITS)
    with pytest.raises(UndecidableError, match="zero"):
        one / unknown
    with pytest.raises(UndecidableError, match="exponent"):
        Ball(np.array([0], dtype=object), 2 << BITS, BITS).exp_below()
    with pytest.raises(ValueError, match="negative"):
        (-one).sqrt()


def test_products_that_lose_no_digit_are_exact():
    half = Ball.exact(np.array([0.5, 0.0], dtype=np.float32), BITS)
    assert (half * half).radius == 0 and (half @ half[:, None]).radius == 0
    least = Ball(np.array([1], dtype=object), 0, BITS)
    assert (least * least).radius > 0
