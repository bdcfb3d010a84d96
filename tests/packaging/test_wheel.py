"""What is shipped: the wheel and the source distribution, installed where nothing else is."""

import os
import subprocess
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import compactproofs as cp

PROJECT = Path(__file__).parents[2]


def run(*command, **options):
    """A command in a folder of its own, without what this environment sets."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, env=clean, **options).stdout


def environment(folder):
    """The Python of a fresh environment."""
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def pip(python, *arguments):
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", PROJECT / "constraints.txt", *arguments)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel made from the source distribution, as an index would get them."""
    folder = tmp_path_factory.mktemp("dist")
    python = environment(folder / "build")
    pip(python, "hatchling")
    run(python, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=PROJECT)
    (source,) = folder.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(folder / "source", filter="data")
    (unpacked,) = (folder / "source").iterdir()
    run(python, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=unpacked)
    (wheel,) = folder.glob("*.whl")
    return unpacked, wheel


@pytest.mark.long
def test_the_wheel_has_what_it_needs_and_nothing_else(built):
    names = zipfile.ZipFile(built[1]).namelist()
    assert {"compactproofs/py.typed", "compactproofs/checker.py", "compactproofs/model/zoo_data/max-of-4.safetensors"} <= set(names)
    assert "compactproofs/reports/assets/report.js" in names
    assert all(name.startswith(("compactproofs/", "compactproofs-")) for name in names)
    here = {str(path.relative_to(PROJECT / "src")) for path in (PROJECT / "src").rglob("*.py")}
    assert here <= set(names)
    assert (built[0] / "formal" / "Checker.v").is_file() and (built[0] / "tests" / "packaging").is_dir()
    assert not list(built[0].rglob("*.vo"))


@pytest.mark.long
def test_the_checker_of_the_wheel_needs_nothing_but_python(built, tmp_path):
    weights = cp.zoo("max-of-4")
    cp.prove(weights, "threshold-cubic-pooled").certificate.save(tmp_path / "c.json")
    cp.save(weights, tmp_path / "model.safetensors")
    python = environment(tmp_path / "bare")
    pip(python, "--no-deps", built[1])
    said = run(python, "-m", "compactproofs.checker", tmp_path / "c.json", tmp_path / "model.safetensors", cwd=tmp_path)
    assert said.startswith("accepted") or "ACCEPTED" in said.upper()
    with pytest.raises(subprocess.CalledProcessError):
        run(python, "-c", "import numpy", cwd=tmp_path)


@pytest.mark.slow
def test_the_demo_runs_from_the_wheel(built, tmp_path):
    python = environment(tmp_path / "clean")
    pip(python, built[1])
    assert "accepted" in run(python.parent / "compactproofs", "demo", cwd=tmp_path)
    assert run(python, "-c", "import compactproofs; print(compactproofs.__file__)", cwd=tmp_path).startswith(str(tmp_path))
