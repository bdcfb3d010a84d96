import json
import subprocess
import sys

import pytest

import compactproofs as cp


def loaded_after(code):
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    return set(json.loads(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout))


def test_importing_the_package_and_the_command_line_loads_nothing_heavy():
    heavy = {"numpy", "numba", "torch", "safetensors"}
    assert not heavy & loaded_after("import compactproofs")
    assert not heavy & loaded_after("import compactproofs.cli.main")


def test_proving_does_not_import_torch():
    assert "torch" not in loaded_after("import compactproofs as cp; cp.prove(cp.zoo('max-of-4'))")


@pytest.mark.parametrize("name", cp.__all__)
def test_every_public_name_resolves_and_is_documented(name):
    value = getattr(cp, name)
    assert name == "__version__" or value.__doc__
    assert name in dir(cp)


@pytest.mark.parametrize("first", ["import compactproofs.strategies.registry", "cp.strategies()", "cp.prove(cp.zoo('max-of-4'))"])
def test_strategies_is_callable_whatever_was_imported_first(first):
    script = f"import compactproofs as cp\n{first}\nprint(len(cp.strategies()), cp.strategies.registry.DEFAULT)"
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_unknown_names_say_what_there_is():
    with pytest.raises(AttributeError, match="it has .*prove"):
        cp.provee  # noqa: B018
