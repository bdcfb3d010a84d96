"""Long tables of cases: one in a few is for every test run, the others are marked `long`."""

import pytest


def thinned(values, one_in=3):
    """The values as parameters; all but every third (say) are marked `long`."""
    return [value if number % one_in == 0 else _long(value) for number, value in enumerate(values)]


def _long(value):
    plain = value if hasattr(value, "marks") else pytest.param(value)
    return pytest.param(*plain.values, marks=[*plain.marks, pytest.mark.long])
