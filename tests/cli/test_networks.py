"""Networks with norms, rotary positions and fixed tokens, from the command line."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import blocks
import compactproofs as cp
import network_oracle
import networks
from command import inside, refused, run


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A tiny network with a norm, and its file."""
    network = networks.mostly_right_network(1, "LN")
    path = tmp_path_factory.mktemp("networks") / "norm.safetensors"
    cp.save(network, path)
    return network, path


def test_a_theorem_and_a_certificate_that_the_one_file_checks(saved, tmp_path):
    network, path = saved
    place = tmp_path / "norm.cert.json"
    (proof,) = json.loads(run("prove", path, "--upper", "--certificate", place, "--json", "-").stdout)
    true = network_oracle.count_correct(network)
    assert (proof["correct_at_least"], proof["correct_at_most"]) == (str(true), str(true))
    assert "norm LN before attention" in proof["theorem"]
    alone = subprocess.run([sys.executable, "-m", "compactproofs.checker", place, path], capture_output=True, text=True)
    assert alone.returncode == 0 and f"at least {true} and at most {true} of 125" in alone.stdout
    assert inside("check", place, path).returncode == 0


def test_fixed_tokens(saved, tmp_path):
    network, path = saved
    place = tmp_path / "framed.cert.json"
    (proof,) = json.loads(inside("prove", path, "--prefix", "4", "--suffix", "0", "--certificate", place, "--json", "-").stdout)
    true = network_oracle.count_correct(network, [(4, x, 0) for x in (1, 2, 3)], lambda x: x[1])
    assert (proof["correct_at_least"], proof["total"]) == (str(true), "3")
    assert "from 1 to 3, after the fixed token 4 and before the fixed token 0," in proof["theorem"]
    assert inside("check", place, path).returncode == 0
    measured = json.loads(inside("accuracy", path, "--prefix", "4", "--suffix", "0", "--json", "-").stdout)
    assert (measured["correct"], measured["total"]) == (str(true), "3")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--prefix", "x"], "expected tokens, which are numbers"),
        (["--prefix", "5"], "the fixed token 5 is none of the model's tokens, 0 to 4"),
        (["--prefix", "1,2", "--suffix", "3"], "3 fixed tokens leave no place among the model's n_ctx=3 positions"),
    ],
)
def test_fixed_tokens_that_cannot_be(saved, words, message):
    assert message in refused("prove", saved[1], *words)


def test_what_no_bound_is_about_is_infeasible_and_brute_force_is_exact(tmp_path):
    network = networks.random_network(0, **networks.BLOCKS["two heads"])
    cp.save(network, tmp_path / "heads.safetensors")
    names = ("threshold-best", "threshold-cubic", "brute-force", "cubic")
    given = [word for name in names for word in ("--strategy", name)]
    proofs = {p["strategy"]: p for p in json.loads(inside("prove", tmp_path / "heads.safetensors", *given, "--json", "-").stdout)}
    assert proofs["threshold-cubic"]["status"] == proofs["cubic"]["status"] == "infeasible"
    assert "2 heads" in proofs["threshold-cubic"]["reason"]
    true = str(network_oracle.count_correct(network))
    assert proofs["brute-force"]["correct_at_least"] == proofs["threshold-best"]["correct_at_least"] == true
    assert "none of these strategies" in refused("prove", tmp_path / "heads.safetensors", "--strategy", "cubic", "--max-flops", "1e9")


def test_max_flops_passes_over_what_is_not_about_the_network(saved):
    found = json.loads(inside("prove", saved[1], "--max-flops", "1e5", "--json", "-").stdout)
    assert found and {p["family"] for p in found} == {"threshold", "brute-force"} and all(p["flops"] <= 1e5 for p in found)


def test_the_mechanism_of_a_network_is_not_measured(saved):
    assert "interpret measures the paper's quantities" in refused("interpret", saved[1])


def test_a_sweep_and_a_report_of_networks(saved, tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    cp.save(saved[0], folder / "norm.safetensors")
    cp.save(networks.random_network(0, **networks.BLOCKS["MLP"]), folder / "mlp.safetensors")
    given = [word for name in ("threshold-quartic", "brute-force") for word in ("--strategy", name)]
    data = json.loads(inside("sweep", folder, "--out", tmp_path / "out", *given, "--workers", 1, "--json", "-").stdout)
    assert data["failed"] == 0 and data["done"] == 2
    with cp.open_results(tmp_path / "out") as results:
        rows = results.sql("SELECT model, label, status FROM results ORDER BY ALL").fetchall()
    assert {("mlp.safetensors", "threshold-quartic", "proven"), ("norm.safetensors", "threshold-quartic", "proven")} <= set(rows)
    inside("report", folder / "norm.safetensors", "--out", tmp_path / "page.html", "--seconds", 5)
    page = (tmp_path / "page.html").read_text()
    assert "norm LN before attention" in page and "thin crosses" not in page


def test_train_and_prove_with_a_bos(tmp_path):
    """A model of six tokens, the last of which always comes first."""
    rng = np.random.default_rng(0)
    shapes = {"W_E": (6, 4), "W_pos": (3, 4), "W_Q": (4, 4), "W_K": (4, 4), "W_V": (4, 4), "W_O": (4, 4), "W_U": (4, 5)}
    weights = cp.Weights(**{name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()})
    cp.save(weights, tmp_path / "bos.safetensors")
    assert "--prefix and --suffix" in refused("prove", tmp_path / "bos.safetensors")
    (proof,) = json.loads(inside("prove", tmp_path / "bos.safetensors", "--prefix", "5", "--upper", "--json", "-").stdout)
    assert proof["total"] == "25" and proof["correct_at_least"] == proof["correct_at_most"]


def test_certificates_of_whole_blocks(tmp_path):
    """A block that the checker knows, one that it does not, and one that is wide."""
    network = blocks.tiny_block(0, "two heads, final LN")
    cp.save(network, tmp_path / "heads.safetensors")
    place = tmp_path / "heads.cert.json"
    (proof,) = json.loads(inside("prove", tmp_path / "heads.safetensors", "--upper", "--certificate", place, "--json", "-").stdout)
    true = network_oracle.count_correct(network)
    assert (proof["correct_at_least"], proof["correct_at_most"]) == (str(true), str(true))
    alone = subprocess.run(
        [sys.executable, "-m", "compactproofs.checker", place, tmp_path / "heads.safetensors"], capture_output=True, text=True
    )
    assert alone.returncode == 0 and f"at least {true} and at most {true} of 125" in alone.stdout
    cp.save(blocks.tiny_block(0, "LN, GELU"), tmp_path / "gelu.safetensors")
    said = refused("prove", tmp_path / "gelu.safetensors", "--certificate", tmp_path / "gelu.cert.json")
    assert "does not know a norm before the MLP and an MLP and a final norm and neurons other than ReLU" in said
    said = refused("prove", "max-of-4-mlp", "--certificate", tmp_path / "wide.cert.json")
    assert "neurons takes about" in said and "--work" in said


def test_a_certificate_of_every_position(tmp_path):
    network = replace(blocks.tiny_block(0, "MLP"), causal=True)
    cp.save(network, tmp_path / "mlp.safetensors")
    place, given = tmp_path / "every.cert.json", ("--task", "sign-of-sum", "--position", "every", "--json", "-")
    proofs = json.loads(inside("prove", tmp_path / "mlp.safetensors", "--upper", "--certificate", place, *given).stdout)
    checked = json.loads(inside("check", place, tmp_path / "mlp.safetensors", "--json", "-").stdout)
    assert checked["verdict"] == "accepted" and checked["assumptions"] == []
    for p, (proof, found) in enumerate(zip(proofs, checked["positions"], strict=True)):
        assert found["position"] == p and int(found["total"]) == 5 ** (p + 1)
        ways = 5 ** (2 - p)
        counts = int(found["correct_at_least"]) * ways, int(found["correct_at_most"]) * ways
        assert counts == (int(proof["correct_at_least"]), int(proof["correct_at_most"]))
