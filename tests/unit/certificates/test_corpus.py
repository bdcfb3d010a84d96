"""Every certificate of tests/corpus gets the verdict, and the reason, that it was made for."""

import json
import subprocess
import sys
from functools import cache
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest

import compactproofs as cp
import network_oracle
from compactproofs import checker
from compactproofs.tasks import LabellingAutomaton
from oracle import is_correct
from trees import json_leaves

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
    found, (mass, total) = checked(name), truth(name)
    assert found.correct_at_least <= mass and found.total == total
    assert found.correct_at_most is None or mass <= found.correct_at_most


@cache
def right(model, sequence, label):
    network = cp.load(CORPUS / model)
    return network_oracle.is_correct(network, sequence, label) if "block" in model else is_correct(network, sequence, label)


def truth(name):
    """The mass that is answered right, and all of it, for the question that the certificate asks."""
    model = EXPECTED[name]["model"]
    question, sequences = json.loads((CORPUS / name).read_text())["question"], list(product(range(5), repeat=3))
    task, labels = question["task"], [max(x) for x in sequences]
    if task != "max":
        labels = (
            LabellingAutomaton(np.array(task["following"]), np.array(task["labels"]), task["start"]).label(np.array(sequences)).tolist()
        )
    masses = question["masses"] or [[1] * 5] * 3
    weights = [prod(row[t] for row, t in zip(masses, x, strict=True)) for x in sequences]
    return sum(mass for mass, x, label in zip(weights, sequences, labels, strict=True) if right(model, x, label)), sum(weights)


@pytest.mark.parametrize("name", ["exact-accuracy", "another-task", "block-heads", "block-norm", "block-mlp"])
def test_the_exact_certificates_are_exact(name):
    found = checked(f"accept/{name}.json")
    assert found.correct_at_least == found.correct_at_most == truth(f"accept/{name}.json")[0]


def test_all_kinds_of_terms_are_there():
    kinds = set()
    for name in (name for name in EXPECTED if name.startswith("accept/")):
        content = json.loads((CORPUS / name).read_text())
        parts = content["lower"] + (content["upper"] or [])
        leaves = [leaf for part in parts for leaf in json_leaves(part)]
        kinds |= {next(iter(term)) for leaf in leaves for term in leaf["terms"]} | {"listed" for leaf in leaves if leaf["listed"]}
        kinds |= {"given up" if part["tree"] is None else "split" if "token" in part["tree"] else "whole" for part in parts}
        kinds.add(content["question"]["semantics"])
    assert kinds == {"joint", "apart", "factored", "spoiler", "listed", "split", "whole", "given up", "real", "float32-any-order"}


def test_the_corpus_is_small():
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.suffix in (".json", ".safetensors")) < 450_000


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
