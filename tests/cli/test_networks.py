"""Networks with norms, rotary positions and fixed tokens, from the command line."""

import json
import subprocess
import sys

import numpy as np
import pytest

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
    names = ("threshold-best", "brute-force", "cubic")
    given = [word for name in names for word in ("--strategy", name)]
    proofs = {p["strategy"]: p for p in json.loads(inside("prove", tmp_path / "heads.safetensors", *given, "--json", "-").stdout)}
    assert proofs["threshold-best"]["status"] == proofs["cubic"]["status"] == "infeasible"
    assert "2 heads" in proofs["threshold-best"]["reason"]
    assert proofs["brute-force"]["correct_at_least"] == str(network_oracle.count_correct(network))
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
    assert ("mlp.safetensors", "threshold-quartic", "infeasible") in rows and ("norm.safetensors", "threshold-quartic", "proven") in rows
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
