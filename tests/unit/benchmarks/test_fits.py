"""The fits behind docs/results/scale.md. (Other benchmarks have no tests; a wrong exponent would not be seen.)"""

import importlib.util
import math
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[3] / "experiments" / "compactproofs_experiments" / "scale" / "fits.py"


@pytest.fixture(scope="module")
def fits():
    spec = importlib.util.spec_from_file_location("scale_fits", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["scale_fits"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["scale_fits"]


def test_an_exact_power_is_found_whatever_the_order_of_the_sizes(fits):
    found = fits.fit([64, 16, 32], [5 * 64**3, 5 * 16**3, 5 * 32**3])
    assert found.slope == pytest.approx(3) and found.factor == pytest.approx(5) and found.misfit == pytest.approx(0, abs=1e-9)
    assert found.last_slope == pytest.approx(3) and found.sizes == (16, 32, 64)
    assert found.size_at(5 * 100**3) == pytest.approx(100) == found.size_at(5 * 100**3, from_last=True)


def test_an_exact_exponential_has_its_base(fits):
    found = fits.fit([3, 4, 5, 6], [2.0 * 16**k for k in (3, 4, 5, 6)], exponential=True)
    assert found.base == pytest.approx(16) and found.at(7) == pytest.approx(2 * 16**7)
    assert found.size_at(2 * 16**9) == pytest.approx(9) == found.size_at(2 * 16**9, from_last=True)


def test_overhead_shows_as_a_steeper_end_and_as_a_misfit(fits):
    found = fits.fit([1, 2, 4], [1.0, 1.0, 4.0])
    assert found.slope == pytest.approx(1) and found.last_slope == pytest.approx(2)
    line = [found.at(size) for size in (1, 2, 4)]
    assert found.misfit == pytest.approx(max(max(a / b, b / a) for a, b in zip(line, (1.0, 1.0, 4.0), strict=True)) - 1)


def test_what_does_not_grow_never_reaches_a_larger_cost(fits):
    assert fits.fit([1, 2, 4], [3.0, 3.0, 3.0]).size_at(100, from_last=True) == math.inf


def test_one_size_is_refused_by_name(fits):
    with pytest.raises(ValueError, match="sizes=\\[8, 8\\]"):
        fits.fit([8, 8], [1.0, 2.0])
