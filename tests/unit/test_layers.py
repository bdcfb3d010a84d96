"""Data goes one way: nothing on the left of the flow imports anything on its right, and there are no cycles."""

import ast
from pathlib import Path

import compactproofs

PACKAGE = Path(compactproofs.__file__).parent
FLOW = ["arrays", "model", "tasks", "form", "counting", "bounds", "ledger", "search", "strategies", "certificates"]
"""From left to right. `model` may not know tasks, but training does: it has to make sequences."""


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        yield name, ast.parse(path.read_text())


def imports(tree, *, lazy):
    """Modules of the package that are imported when the module is, or (lazy) at any time."""
    nodes = ast.walk(tree) if lazy else _at_once(tree)
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("compactproofs"):
            base = node.module.removeprefix("compactproofs").lstrip(".")
            yield from (f"{base}.{alias.name}".lstrip(".") for alias in node.names)


def _at_once(tree):
    for node in tree.body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield from ast.walk(node) if not isinstance(node, ast.FunctionDef | ast.ClassDef) else ()


def test_nothing_on_the_left_knows_anything_on_its_right():
    wrong = []
    for name, tree in modules():
        layer = name.split(".")[0]
        if layer not in FLOW or name.startswith("model.training"):
            continue
        for used in imports(tree, lazy=False):
            other = used.split(".")[0]
            if other in FLOW and FLOW.index(other) > FLOW.index(layer):
                wrong.append(f"{name} imports {used}")
    assert not wrong


def test_there_are_no_cycles():
    names = {name for name, _ in modules()}
    edges = {}
    for name, tree in modules():
        found = set()
        for used in imports(tree, lazy=False):
            while used and used not in names:
                used = used.rpartition(".")[0]
            found.add(used)
        edges[name] = found - {name, ""}
    done, path = set(), []

    def visit(name):
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name not in done:
            path.append(name)
            for other in edges.get(name, ()):
                visit(other)
            path.pop()
            done.add(name)

    for name in sorted(edges):
        visit(name)
