"""Elementary functions of fixed-point numbers are within one unit, compared with decimals of many more digits and with python-flint."""

from decimal import Context, Decimal
from fractions import Fraction
from random import Random

import pytest
from flint import arb, ctx

from compactproofs.arrays import elementary


@pytest.fixture(autouse=True)
def precision():
    previous, ctx.prec = ctx.prec, 2500
    yield
    ctx.prec = previous


def units(result, truth, p):
    """How many units the result is off."""
    return abs(arb(result) - truth * arb(2) ** p)


def inputs(p, count=60):
    rng = Random(p)
    return [0, 1, 1 << p, 3 << p, 6 << p, p << p, (p + 1) << p, *(rng.randrange(1 << rng.randrange(1, p + 9)) for _ in range(count))]


@pytest.mark.parametrize("p", [1, 2, 8, 53, 192, 768])
def test_every_function_is_within_one_unit(p):
    for x in inputs(p):
        X = arb(x) / arb(2) ** p
        assert units(elementary.exp_negative(x, p), (-X).exp(), p) <= 1
        assert units(elementary.erf(x, p), X.erf(), p) <= 1
        assert elementary.erf(-x, p) == -elementary.erf(x, p)
        cosine, sine = elementary.cos_sin(x, p)
        assert units(cosine, X.cos(), p) <= 1 and units(sine, X.sin(), p) <= 1
    assert units(elementary.pi(p), arb.pi(), p) <= 1 and units(elementary.ln2(p), arb(2).log(), p) <= 1


@pytest.mark.parametrize("p", [1, 8, 53, 192, 768])
def test_logarithms_and_powers_are_within_one_unit(p):
    rng = Random(p)
    for base in (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(10000), Fraction(1e300), Fraction(rng.random() + 1)):
        X = arb(base.numerator) / arb(base.denominator)
        assert units(elementary.ln(base, p), X.log(), p) <= 1
        for exponent in (Fraction(0), Fraction(1), Fraction(1, 3), Fraction(rng.randrange(64), 64)):
            truth = (-X.log() * exponent.numerator / exponent.denominator).exp()
            assert units(elementary.inverse_power(base, exponent, p), truth, p) <= 1


def test_the_decimal_module_agrees_on_exponentials():
    context = Context(prec=120)
    for x in inputs(192):
        truth = context.exp(context.divide(Decimal(-x), Decimal(2**192)))
        assert abs(context.subtract(Decimal(elementary.exp_negative(x, 192)), context.multiply(truth, Decimal(2**192)))) <= 1


def test_what_is_not_supported_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        elementary.ln(Fraction(1, 2), 10)
    with pytest.raises(ValueError, match="exponent in"):
        elementary.inverse_power(Fraction(2), Fraction(3, 2), 10)
