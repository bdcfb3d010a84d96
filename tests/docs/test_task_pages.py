"""The pages on tasks are what the package and the committed rows say, and what they say is true."""

import importlib.util
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from compactproofs.tasks import DESCRIBED, KNOWN, task_of_size

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "task_pages.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("task_pages", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["task_pages"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["task_pages"]


@pytest.fixture(scope="module")
def written(script):
    return script.everything()


def test_every_page_figure_and_the_navigation_are_as_they_would_be_written_today(script, written):
    for path, text in written.items():
        assert (script.ROOT / path).read_text(encoding="utf-8") == text, f"{path}: python benchmarks/task_pages.py"
    there = {path.name for path in (script.ROOT / script.PAGES).iterdir()} - {"rows.json"}
    assert there == {path.name for path in written if path.parent == script.PAGES}


def test_every_task_of_the_library_has_a_page_with_a_figure(script, written):
    assert [each.usage for each in DESCRIBED] == list(KNOWN)
    for each in DESCRIBED:
        assert each.definition and each.remembers and each.title and task_of_size(each.example, 4, 16).spec == each.example
        page = written[script.PAGES / f"{each.name}.md"]
        assert f"]({each.name}.svg)" in page and each.definition in page
        assert f"tasks/{each.name}.md" in written[Path("mkdocs.yml")]


def test_figures_are_small_have_titles_and_work_in_the_dark(written):
    figures = [text for path, text in written.items() if path.suffix == ".svg"]
    assert len(figures) == len(DESCRIBED) + 1
    for text in figures:
        root = ET.fromstring(text)
        names = [child.tag.rpartition("}")[2] for child in root]
        assert names[:2] == ["title", "desc"] and root.get("role") == "img"
        assert len(text) < 30_000 and "prefers-color-scheme:dark" in text


def test_a_figure_draws_every_move_and_every_right_output(script):
    """Of parity: two states after every token, each with two arrows; three tokens, of which one changes the state."""
    task = task_of_size("parity:2", 3, 3)
    text = script.figure(task, script.in_words(task))
    assert text.count('class="edge"') == 2 + 4 + 4 and text.count('class="out"') == 2
    assert text.count(">0,1</text>") == 5 and text.count(">2</text>") == 5


def test_bounds_are_rounded_outwards_and_equal_ones_are_fractions(script):
    row = {"correct_at_least": "999999", "correct_at_most": "2000001", "total": "3000000"}
    assert script._interval(row) == "[0.333333, 0.666667]"
    assert script._interval(row | {"correct_at_most": "999999"}) == "999999 / 3000000"
    almost = {"correct_at_least": str(10**9 - 2), "correct_at_most": str(10**9 - 1), "total": str(10**9)}
    assert script._interval(almost) == "[0.999999, 1.000000]"


def test_what_the_checker_did_not_accept_is_not_said_to_be_accepted(script):
    assert [
        script._verdict({"accepted": a, "reason": r}) for a, r in ((True, ""), (None, "not made"), (False, "it has more than 9 bytes"))
    ] == [*("accepted", "not made", "refused, too large")]
    assert script._verdict({"accepted": False, "reason": "the claim is wrong"}) == "refused"


def test_rows_are_of_tasks_of_the_library_and_hold_the_accuracy(script):
    """Where all sequences were looked at, their count is inside the bounds; of few tokens the bounds are that count."""
    measured = script.rows()
    assert {r["task"] for r in measured} <= {each.example for each in DESCRIBED} and len(measured) >= 13
    for r in measured:
        least, most, total = (int(r[name]) for name in ("correct_at_least", "correct_at_most", "total"))
        assert total == task_of_size(r["task"], r["n_ctx"], r["d_vocab"]).total and 0 <= least <= most <= total
        assert r["exact"] == (r["n_ctx"] <= 4)
        if r["exact"]:
            assert least <= round(r["accuracy"] * total) <= most
        if (r["n_ctx"], r["d_vocab"]) == (4, 16):
            assert least == most and r["accepted"]
