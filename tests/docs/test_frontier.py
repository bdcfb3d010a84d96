"""The page of the frontier is what its table says, and what it says is true: ours are no longer and prove more."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "compare_frontier.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("compare_frontier", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_made_from_the_table(script):
    assert script.PAGE.read_text() == "\n".join(script.lines(script.read())) + "\n"


def test_every_published_group_of_max_of_4_is_beaten(script):
    """By one proof of ours with no more FLOPs than its shortest and a higher bound than its best; brute force by an exact count."""
    known = script.ours(script.read(), "k4")
    groups = script.published("k4")
    assert len(groups) == 8
    for title, bound, flops in groups:
        fits = [each for each in known if each.flops <= flops]
        if title == "Brute force":
            assert any(each.exact for each in fits)
        else:
            assert max(each.bound for each in fits) > bound


def test_a_bound_that_is_too_long_is_not_taken(script):
    rows = [script.Row("k4", 0, "long", 1.0, None, 10**15), script.Row("k4", 0, "short", 0.2, None, 10**6)]
    table = [line for line in script.lines(rows) if line.startswith("| k4")]
    assert len(table) == 8 and not any("`long`" in line for line in table) and sum("`short`" in line for line in table) == 7
