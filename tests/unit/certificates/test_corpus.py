"""Every certificate of tests/corpus gets the verdict, and the reason, that it was made for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import compactproofs as cp
from compactproofs import checker

CORPUS = Path(__file__).parents[2] / "corpus"
EXPECTED = json.loads((CORPUS / "expected.json").read_text())


def checked(name):
    return checker.check((CORPUS / name).read_bytes(), (CORPUS / EXPECTED[name]["model"]).read_bytes())


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_verdict_and_reason(name):
    found = checked(name)
    assert (found.verdict.name.lower(), EXPECTED[name]["reason"] in found.reason) == (EXPECTED[name]["verdict"], True), found.reason


def test_every_file_is_expected_and_every_folder_is_used():
    files = {f"{folder}/{path.name}" for folder in ("accept", "reject", "malformed") for path in (CORPUS / folder).iterdir()}
    assert files == set(EXPECTED)
    used = {entry["model"] for entry in EXPECTED.values()}
    assert used == {f"models/{path.name}" for path in (CORPUS / "models").iterdir()}


@pytest.mark.parametrize("name", sorted(name for name in EXPECTED if name.startswith("accept/")))
def test_accepted_claims_are_true(name):
    found, truth = checked(name), cp.accuracy(cp.load(CORPUS / EXPECTED[name]["model"])).correct
    assert found.correct_at_least <= truth
    assert found.correct_at_most is None or truth <= found.correct_at_most


def test_the_exact_certificate_is_exact():
    found = checked("accept/exact-accuracy.json")
    assert found.correct_at_least == found.correct_at_most == cp.accuracy(cp.load(CORPUS / "models/a.safetensors")).correct


@pytest.mark.parametrize("folder", ["accept", "reject", "malformed"])
def test_exit_codes_of_the_stand_alone_file(folder, tmp_path):
    """A copy of the one file, in a folder of its own, without site-packages: no numpy, no compactproofs."""
    alone = tmp_path / "checker.py"
    alone.write_text(Path(checker.__file__).read_text())
    name = sorted(name for name in EXPECTED if name.startswith(folder))[0]
    command = [sys.executable, "-I", "-S", str(alone), str(CORPUS / name), str(CORPUS / EXPECTED[name]["model"])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == {"accept": 0, "reject": 1, "malformed": 2}[folder], done.stderr
    assert done.stdout.startswith(EXPECTED[name]["verdict"]) and EXPECTED[name]["reason"] in done.stdout
