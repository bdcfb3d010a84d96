"""Run the notebooks in docs/notebooks, and write each as a page with what its cells give.

    python benchmarks/notebook_pages.py

Notebooks are committed without outputs. A cell is run as Jupyter runs it: what it prints, then its last line if that is an expression. They have
no logic of their own and show nothing that differs from run to run, so a test runs them and compares the pages.
"""

from __future__ import annotations

import ast
import io
import json
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from compactproofs.model.files import write_atomically

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "docs" / "notebooks"


def cells(notebook: Path) -> Iterator[tuple[str, str]]:
    """Their kind, `markdown` or `code`, and their text."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        yield cell["cell_type"], "".join(cell["source"])


def run(code: str, names: dict[str, Any]) -> str:
    """What a cell prints, and its last expression."""
    tree, printed = ast.parse(code), io.StringIO()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return printed.getvalue() + ("" if value is None else f"{value!r}\n")


def page(notebook: Path) -> str:
    """In Markdown."""
    lines, names = ["<!-- written by benchmarks/notebook_pages.py -->", ""], dict[str, Any]()
    for number, (kind, text) in enumerate(cells(notebook)):
        if kind == "markdown":
            lines += [text, ""]
        else:
            given = run(text, names)
            lines += ["``` {.python .notest}", text, "```", "", *(["```text", given.rstrip("\n"), "```", ""] if given else [])]
        if number == 0:
            lines += [f"This page is [a notebook]({notebook.name}), run. In a clone: `jupyter lab docs/notebooks/{notebook.name}`.", ""]
    return "\n".join(lines[:-1]) + "\n"


def everything() -> dict[Path, str]:
    """All pages."""
    return {notebook.with_suffix(".md"): page(notebook) for notebook in sorted(NOTEBOOKS.glob("*.ipynb"))}


def main() -> None:
    """Write them."""
    for path, text in everything().items():
        write_atomically(path, text.encode())
        print(path.relative_to(ROOT), file=sys.stderr)


if __name__ == "__main__":
    main()
