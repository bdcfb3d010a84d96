"""Notebooks are committed without outputs, have no logic, run, and are what their pages show."""

import ast
import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
LOGIC = (ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.For, ast.While, ast.If, ast.Try, ast.With, ast.comprehension)


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("notebook_pages", ROOT / "benchmarks" / "notebook_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_notebooks_and_each_has_a_page():
    assert len(NOTEBOOKS) >= 2
    listed = (ROOT / "mkdocs.yml").read_text()
    for notebook in NOTEBOOKS:
        assert notebook.with_suffix(".md").is_file() and f"notebooks/{notebook.stem}.md" in listed


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_have_no_outputs_and_no_logic(notebook, script):
    content = json.loads(notebook.read_text())
    assert content["nbformat"] == 4 and len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in content["cells"] if cell["cell_type"] == "code")
    for kind, text in script.cells(notebook):
        if kind == "code":
            assert not [node for node in ast.walk(ast.parse(text)) if isinstance(node, LOGIC)], text


def test_a_cell_gives_what_jupyter_shows(script):
    names = {}
    assert script.run("x = 1\nprint(x)", names) == "1\n"
    assert script.run("x + 1", names) == "2\n" and script.run("x;None", names) == ""
    with pytest.raises(ZeroDivisionError):
        script.run("x / 0", names)


@pytest.mark.long
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_and_their_pages_show_what_they_give(notebook, script):
    """Figures of a search may differ on another machine, so numbers in outputs are not compared, but for the exact ones."""
    today, committed = script.page(notebook), notebook.with_suffix(".md").read_text()
    assert without_numbers(today) == without_numbers(committed), "python benchmarks/notebook_pages.py"
    assert "16765732" in "".join(outputs(today))


def outputs(page):
    return re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def without_numbers(page):
    return re.sub(r"(?<=^```text\n)(.*?)(?=^```)", lambda found: re.sub(r"[\d, ]+", "#", found[0]), page, flags=re.MULTILINE | re.DOTALL)
