from fractions import Fraction
from math import comb

import pytest

from compactproofs.counting.clopper_pearson import clopper_pearson


def upper_tail(successes, n, p):
    return sum(comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(successes, n + 1))


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (1, 5), (3, 7), (5, 5), (10, 20), (39, 40)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_ends_solve_their_defining_equations(successes, n, confidence):
    lower, upper = clopper_pearson(successes, n, confidence)
    tail = (1 - confidence) / 2
    if successes > 0:
        assert float(upper_tail(successes, n, Fraction(lower))) == pytest.approx(tail, rel=1e-8)
    if successes < n:
        assert float(1 - upper_tail(successes + 1, n, Fraction(upper))) == pytest.approx(tail, rel=1e-8)
    assert 0 <= lower <= successes / n <= upper <= 1


def test_extreme_confidence_is_no_accident():
    assert clopper_pearson(0, 1, 0.9999999999999999) == pytest.approx((0.0, 1.0))


def test_edges_and_known_values():
    assert clopper_pearson(0, 10, 0.95) == pytest.approx((0.0, 0.30849710781876077))
    assert clopper_pearson(10, 10, 0.95) == pytest.approx((1 - 0.30849710781876077, 1.0))
    lower, upper = clopper_pearson(998_803, 1_000_000, 0.99)
    assert 0.9987 < lower < 0.998803 < upper < 0.9989


@pytest.mark.parametrize("arguments", [(3, 2, 0.9), (-1, 2, 0.9), (0, 0, 0.9), (1, 2, 1.0)])
def test_nonsense_is_refused(arguments):
    with pytest.raises(ValueError, match="need|confidence"):
        clopper_pearson(*arguments)
