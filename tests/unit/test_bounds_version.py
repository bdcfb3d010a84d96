"""The version of the bounds follows the code, and nothing but the code."""

import shutil
from pathlib import Path

import pytest

from compactproofs import bounds_version
from compactproofs.bounds_version import BOUNDS, MEASUREMENTS, code_version

PACKAGE = Path(bounds_version.__file__).parent


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The package's sources, to change."""
    folder = tmp_path / "compactproofs"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__", "zoo_data", "data"))
    monkeypatch.setattr(bounds_version, "__file__", str(folder / "bounds_version.py"))
    code_version.cache_clear()
    yield folder
    code_version.cache_clear()


def version(parts=BOUNDS):
    code_version.cache_clear()
    return code_version(parts)


@pytest.mark.parametrize("name", ["bounds/pairs.py", "arrays/exponential.py", "counting/kernels.py", "tasks/max_of_k.py"])
def test_it_changes_with_any_code_that_a_bound_depends_on(copy, name):
    before = version()
    (copy / name).write_text((copy / name).read_text() + "# changed\n")
    assert version() != before


@pytest.mark.parametrize("name", ["cli/prove.py", "reports/page.py", "training/batched.py"])
def test_it_does_not_change_with_anything_else(copy, name):
    before = version()
    (copy / name).write_text((copy / name).read_text() + "# changed\n")
    assert version() == before


def test_measurements_have_a_version_of_their_own(copy):
    before = version(), version(MEASUREMENTS)
    (copy / "interpretation" / "copying.py").write_text("")
    assert version() == before[0] and version(MEASUREMENTS) != before[1]


def test_everything_that_proving_imports_is_in_it():
    """What `proving` and `measuring` load of the package, by their own imports, is hashed."""
    import json
    import subprocess
    import sys

    script = "import sys, json, compactproofs.proving, compactproofs.measuring; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)
    ours = {name.split(".")[1] for name in loaded if name.startswith("compactproofs.")}
    assert ours - {part.removesuffix(".py") for part in BOUNDS} <= {"cores", "errors", "heap", "memory", "notices", "text", "version"}
