"""Every example in a docstring runs and gives what it says."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import compactproofs

PACKAGE = Path(compactproofs.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in PACKAGE.rglob("*.py") if ">>>" in path.read_text()
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = import_module(name)
    found = [test for test in doctest.DocTestFinder().find(module, name) if test.examples]
    assert found
    for test in found:
        assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0, test.name


def test_there_are_examples():
    assert len(MODULES) > 10
