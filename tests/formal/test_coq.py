"""The kernel of Coq accepts a factored certificate, and rejects it when something is changed."""

import copy
import json
import re
import shutil
from pathlib import Path

import pytest

import compactproofs as cp
from command import inside, run
from compactproofs.certificates import coq
from compactproofs.certificates.checking import network

HERE = Path(__file__).parent
FORMAL = HERE.parents[1] / "formal"
needs_coq = pytest.mark.skipif(
    shutil.which("coqc") is None or not (FORMAL / "Checker.vo").is_file(), reason="needs Coq and a compiled formal/: run `make formal`"
)


@pytest.fixture(scope="module")
def certified():
    weights = cp.zoo("max-of-4")
    proof = cp.prove(weights, "threshold-cubic-pooled")
    return json.loads(proof.certificate.data), network(weights)


def test_no_admitted_theorem_and_no_axiom_of_our_own():
    for path in sorted(FORMAL.glob("*.v")):
        found = re.findall(r"\b(Admitted|admit|Axiom|Axioms|Parameter|Conjecture|native_compute|bypass_check)\b", path.read_text())
        assert not found, path.name


def test_other_kinds_of_certificates_are_refused(certified):
    certificate, weights = copy.deepcopy(certified[0]), certified[1]
    certificate["lower"][0]["tree"]["terms"][0] = {"joint": [1], "weights": [1], "step": [1, 0], "depth": 1, "offsets": [0] * 4}
    with pytest.raises(coq.CoqError, match="not factored"):
        coq.translate(certificate, weights)


@needs_coq
@pytest.mark.long
def test_the_kernel_accepts_max_of_4(certified):
    proved = coq.run(coq.translate(*certified))
    assert proved.accepted, proved.message
    assert proved.assumptions == tuple((HERE / "axioms.txt").read_text().split())


def count_plus_one(certificate):
    certificate["claim"]["correct_at_least"] = str(int(certificate["claim"]["correct_at_least"]) + 1)


def lowered_harm(certificate):
    for each in certificate["factors"]["labels"]:
        each["weights"][0] = 0  # output 0 would do no harm


def swapped_queries(certificate):
    first, second = [part for part in certificate["lower"] if part["label"] == 63][:2]
    first["queries"] = [*first["queries"], second["queries"][0]]  # a query in two parts


@needs_coq
@pytest.mark.long
@pytest.mark.parametrize("change", [count_plus_one, lowered_harm, swapped_queries])
def test_the_kernel_rejects(certified, change):
    certificate = copy.deepcopy(certified[0])
    change(certificate)
    proved = coq.run(coq.translate(certificate, certified[1]))
    assert not proved.accepted
    assert "Error" in proved.message


@needs_coq
@pytest.mark.long
def test_the_kernel_rejects_other_weights(certified):
    certificate, weights = certified
    shape, data = weights.tensors["W_U"]
    other = weights._replace(tensors={**weights.tensors, "W_U": (shape, data[4:] + data[:4])})
    assert not coq.run(coq.translate(certificate, other)).accepted
    assert not coq.check_coq(json.dumps(certificate).encode(), other).accepted  # its SHA-256 differs


@needs_coq
@pytest.mark.long
def test_the_verb(certified, tmp_path):
    place = tmp_path / "max4.cert.json"
    place.write_text(json.dumps(certified[0]))
    found = json.loads(run("check", "--coq", place, "max-of-4", "--json", "-").stdout)
    assert found["verdict"] == "accepted" and found["axioms"] == (HERE / "axioms.txt").read_text().split()


def test_the_verb_says_what_is_wrong_before_coq_is_asked(certified, tmp_path):
    assert inside("check", "--coq", tmp_path / "nothing.json", "max-of-4").returncode == 2
    changed = copy.deepcopy(certified[0])
    count_plus_one(changed)
    place = tmp_path / "more.cert.json"
    place.write_text(json.dumps(changed))
    assert inside("check", "--coq", place, "max-of-4").returncode == 1
