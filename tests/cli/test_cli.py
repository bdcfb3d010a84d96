"""The command as a user runs it: its own process, its own exit code, its own standard output and error."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import compactproofs as cp
from command import COMMAND, done, inside, refused, run
from compactproofs.cli.output import NormalizationOption, fitted
from compactproofs.model.config import NORMALIZATIONS
from models import random_weights
from random_networks import random_network


@pytest.fixture
def small_model(tmp_path):
    path = tmp_path / "small.safetensors"
    cp.save(random_weights(0), path)
    return path


def test_help_lists_the_verbs():
    text = run("--help").stdout
    for verb in ("demo", "prove", "check", "accuracy", "interpret", "report", "strategies", "sweep", "tasks", "train"):
        assert verb in text and "Usage" in inside(verb, "--help").stdout
    assert run("--version").stdout == f"compactproofs {cp.__version__}\n"


def test_accuracy_json_is_alone_on_standard_output(small_model):
    result = run("accuracy", small_model, "--json", "-")
    data = json.loads(result.stdout)
    assert {"accuracy", "correct", "total", "method", "seconds", "interval", "undecided", "assumptions"} <= data.keys()
    assert data["total"] == "125" and data["method"] == "brute-force" and data["undecided"] == 0
    assert data["interval"][0] <= data["accuracy"] <= data["interval"][1]
    assert int(data["correct"]) == cp.accuracy(random_weights(0)).correct


@pytest.mark.long
def test_accuracy_of_a_whole_block(tmp_path):
    network = random_network(20, act="gelu", norm_final="LN")
    cp.save(network, tmp_path / "block.safetensors")
    data = json.loads(done("accuracy", tmp_path / "block.safetensors", "--json", "-").stdout)
    assert (int(data["correct"]), data["method"], data["total"]) == (cp.accuracy(network).correct, "brute-force", "64")
    assert "Clopper-Pearson" in done("accuracy", tmp_path / "block.safetensors", "--samples", 500).stdout


def test_accuracy_says_what_stays_undecided(tmp_path, monkeypatch):
    network = random_network(11, norm_1="LN", eps=0.0, positions=False)
    W_E = np.array(network.W_E)
    W_E[2] = 1.0  # a norm of nothing
    cp.save(replace(network, W_E=W_E), tmp_path / "block.safetensors")
    text = done("accuracy", tmp_path / "block.safetensors").stdout
    assert "accuracy at least" in text and "37 stay undecided" in text and "exactly" not in text


def test_accuracy_by_sampling():
    data = json.loads(done("accuracy", "max-of-20", "--samples", 5000, "--confidence", 0.9, "--json", "-").stdout)
    assert data["method"] == "sampling" and data["total"] == "5000" and data["confidence"] == 0.9
    assert data["interval"][0] < data["accuracy"] < data["interval"][1] or data["accuracy"] == 1.0
    assert "Clopper-Pearson" in done("accuracy", "max-of-20", "--samples", 5000).stdout


def test_accuracy_refuses_the_infeasible_and_offers_sampling():
    result = run("accuracy", "max-of-20", check=False)
    assert result.returncode == 2 and result.stdout == ""
    assert "years" in result.stderr and "--samples" in result.stderr and "Traceback" not in result.stderr


def test_prove_json_is_a_list_with_the_contracted_keys(small_model):
    (proof,) = json.loads(run("prove", small_model, "--strategy", "brute-force", "--upper", "--json", "-").stdout)
    keys = {
        "strategy",
        "family",
        "parameters",
        "variant",
        "sound",
        "status",
        "lower",
        "upper",
        "correct_at_least",
        "total",
        "flops",
        "flops_breakdown",
        "integer_ops",
        "unexplained_dimensions",
        "seconds",
        "arithmetic",
        "theorem",
        "assumptions",
        "version",
    }
    assert keys <= set(proof)
    assert proof["lower"] <= int(proof["correct_at_least"]) / 125 <= proof["upper"]
    (plain,) = json.loads(done("prove", small_model, "--json", "-").stdout)
    assert plain["upper"] is None


def test_prove_lists_the_infeasible_with_its_reason():
    (proof,) = json.loads(done("prove", "max-of-10", "--strategy", "brute-force", "--seconds", 1, "--json", "-").stdout)
    assert proof["status"] == "infeasible" and "years" in proof["reason"]
    text = done("prove", "max-of-10", "--family", "brute-force").stdout
    assert "infeasible" in text


def test_prove_prints_a_clean_table_in_a_pipe(small_model):
    text = run("prove", small_model, "--strategy", "brute-force").stdout
    assert text.lstrip().startswith("strategy") and "brute-force" in text and "strictly larger logit" in text
    assert "\x1b" not in text and text.isascii()


@pytest.mark.long
def test_prove_all_sorts_by_flops_and_marks_the_frontier(small_model):
    proofs = json.loads(done("prove", small_model, "--all", "--variant", "both", "--json", "-").stdout)
    assert len(proofs) == 321 and [p["flops"] for p in proofs] == sorted(p["flops"] for p in proofs)
    assert {p["status"] for p in proofs if not p["sound"]} == {"computed"}
    lines = done("prove", small_model, "--family", "subcubic").stdout.splitlines()
    assert sum(line.startswith("* ") for line in lines) >= 1
    assert any(line.startswith("true accuracy") for line in lines)
    full = done("prove", small_model, "--family", "subcubic", "--full").stdout.splitlines()
    assert sum("subcubic/" in line for line in lines) < 40 < sum("subcubic/" in line for line in full)
    assert any(line.startswith("subcubic ") and " 150 " in line for line in lines), "a summary by family"


def test_max_flops_keeps_to_short_proofs(small_model):
    every = json.loads(done("prove", small_model, "--all", "--json", "-").stdout)
    limit = sorted(p["flops"] for p in every)[20]
    kept = json.loads(done("prove", small_model, "--all", "--max-flops", limit, "--json", "-").stdout)
    assert 0 < len(kept) < len(every) and all(p["flops"] <= limit for p in kept)
    assert "the shortest of these proofs takes" in refused("prove", small_model, "--all", "--max-flops", 1)


def test_max_flops_lets_compact_strategies_search_within_it():
    proofs = json.loads(done("prove", "max-of-4", "--max-flops", 360000, "--json", "-").stdout)
    best = max(proofs, key=lambda proof: proof["lower"])
    assert best["strategy"] == "threshold-low-rank" and best["parameters"] == {"flops": 360000}
    assert best["lower"] > 0.25 and all(proof["flops"] <= 360000 for proof in proofs)


def test_prove_alone_runs_the_portfolio_and_upper_gives_an_interval():
    (proof,) = json.loads(run("prove", "max-of-4", "--upper", "--json", "-").stdout)
    assert proof["strategy"] == "threshold-best" and proof["family"] == "threshold"
    assert proof["correct_at_least"] == proof["correct_at_most"] == "16765732"  # exact, as by brute force
    (cubic,) = json.loads(done("prove", "max-of-4", "--strategy", "cubic", "--upper", "--json", "-").stdout)
    assert int(cubic["correct_at_least"]) < 16765732 <= int(cubic["correct_at_most"]) < 16777216


def test_a_strategy_can_be_named_with_its_choices():
    (proof,) = json.loads(done("prove", "max-of-4", "--strategy", "subcubic/max_diff_exact/svd/envelope", "--json", "-").stdout)
    assert proof["parameters"]["attention_error"] == "svd" and proof["variant"] == "repaired" and 0.5 < proof["lower"] < 1


def test_tasks_lists_what_task_knows():
    rows = json.loads(inside("tasks", "--json", "-").stdout)
    assert [row["task"] for row in rows][:3] == ["max", "min", "first"]
    text = inside("tasks").stdout
    assert "kth-largest:N" in text and "the N. largest token, copies counted" in text
    assert "known tasks: max, min, first" in refused("prove", "max-of-4", "--task", "maximum")


def test_strategies_are_summed_up_listed_and_filtered():
    text = inside("strategies").stdout
    assert "subcubic/... (150)" in text and "321 strategies; --full lists every one" in text and len(text.splitlines()) < 30
    assert len(inside("strategies", "--full").stdout.splitlines()) == 322
    assert inside("strategies", "--match", "low-rank").stdout.splitlines()[1].startswith("threshold-low-rank")
    assert inside("strategies", "--family", "cubic").stdout.count("\n") == 2
    assert "no strategy has 'xyz' in its name" in refused("strategies", "--match", "xyz")
    assert "unknown family 'threshhold'; did you mean 'threshold'?" in refused("strategies", "--family", "threshhold")


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_tables_fit_the_terminal(width):
    rows = [["a" * n, "b", "c" * 30] for n in (10, 50, 90)]
    cut = fitted(["name", "x", "more"], rows, width)
    assert max(sum(map(len, row)) + 12 for row in cut) <= max(width, 2 * 24 + 1 + 12)
    assert [row[1] for row in cut] == ["b"] * 3 and cut[0][0] == rows[0][0]
    assert width < 200 or cut == rows


def test_strategies_json():
    rows = json.loads(run("strategies", "--json", "-").stdout)
    assert all({"name", "family", "parameters", "sound", "complexity", "source"} <= row.keys() for row in rows)


def test_json_to_a_file_keeps_the_text_on_standard_output(small_model, tmp_path):
    path = tmp_path / "result.json"
    result = done("accuracy", small_model, "--json", path)
    assert "accuracy" in result.stdout and json.loads(path.read_text())["total"] == "125"
    assert "does not exist" in refused("accuracy", small_model, "--json", tmp_path / "nowhere" / "x.json")


def test_shorter_sequences_than_the_model_reads(small_model):
    (proof,) = json.loads(done("prove", small_model, "--strategy", "cubic", "--n-ctx", 2, "--json", "-").stdout)
    assert proof["total"] == "25" and "sequences of 2 tokens; the model reads up to 3" in proof["theorem"]
    assert json.loads(done("accuracy", small_model, "--n-ctx", 2, "--json", "-").stdout)["total"] == "25"
    assert "the model reads 1 to 3" in refused("accuracy", small_model, "--n-ctx", 4)


def test_assumptions_are_printed_and_kept(tmp_path):
    path = tmp_path / "bare.safetensors"
    save_file({n: np.array(t) for n, t in random_weights(0).tensors.items()}, path)
    assert "--n-heads N --normalization none" in refused("prove", path)
    result = done("prove", path, "--n-heads", 1, "--normalization", "none", "--json", "-")
    assert "note: one attention head, because the user said so" in result.stderr and "note: no config found" in result.stderr
    (proof,) = json.loads(result.stdout)
    assert "no config found" in " ".join(proof["assumptions"])
    assert proof["theorem"].endswith(f" Assumed about the model: {'; '.join(proof['assumptions'])}.")
    assert "sequences of 3 tokens from 0 to 4" in proof["theorem"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["prove", "max-of-3"], "Bundled models: max-of-4"),
        (["prove", "missing.safetensors"], "no such file"),
        (["prove", "max-of-4", "--strategy", "nonsense"], "known strategies: brute-force, cubic, subcubic"),
        (["prove", "max-of-4", "--family", "nonsense"], "families: brute-force, cubic, subcubic"),
        (["accuracy", "max-of-4", "--task", "median"], "known tasks: max"),
        (["accuracy", "max-of-4", "--samples", "0"], "samples=0 must be at least 1"),
        (["accuracy", "max-of-4", "--samples", "10", "--confidence", "1"], "confidence=1.0 must lie"),
        (["accuracy", "max-of-4", "--confidence", "0.9"], "give --samples N too"),
        (["accuracy", "max-of-20", "--samples", "1000000000000", "--seconds", "1"], "sampling 1000000000000 sequences would take about"),
        (["train", "--out", "x", "--seeds", "5:1"], "expected a range such as 0:151"),
        (["train", "--out", "x", "--seeds", "abc"], "expected a range such as 0:151"),
        (["train", "--out", "x", "--task", "median"], "unknown task 'median'; did you mean 'min'? known tasks: max"),
        (["train", "--out", "x", "--task", "parity:64"], "there is no token 64; tokens are 0 to 63"),
        (["train", "--out", "x", "--task", "regex:1{5}"], "has the label 0 for every sequence, so there is nothing to learn"),
        (["train", "--out", "x", "--sampling", "balanced"], "the task max is trained on uniform sequences"),
        (["train", "--out", "x", "--sampling", "rare"], "sampling='rare': expected one of uniform, balanced"),
        (["train", "--out", "x", "--seeds", "0:99999999999"], "99999999999 seeds are more than the 100000 that are possible at once"),
        (["train", "--out", "x", "--d-vocab", "100000000"], "the tensors would take 25600016896 bytes"),
        (["train", "--out", "x", "--d-vocab", "2000000"], "measuring the accuracy of max-of-4-v2000000 would take about"),
        (["train", "--out", "x", "--n-ctx", "100000", "--d-vocab", "2"], "2^100000 input sequences: more than 10^4000"),
        (["train", "--out", "x", "--act", "gelu"], "act=gelu says what neurons do, and there are none; say how many"),
        (["train", "--out", "x", "--d-mlp", "8", "--act", "tanh"], "act='tanh': expected one of relu, gelu, gelu_new, silu"),
        (["train", "--out", "x", "--norm", "BN"], "norm='BN': expected one of none, LN, LNPre, RMS, RMSPre"),
        (["train", "--out", "x", "--n-heads", "5"], "d_model=32 is not a multiple of n_heads=5; say how large a head is (d_head)"),
        (["prove", "max-of-4", "--variant", "published"], "none of the strategies chosen comes in that variant"),
        (["prove", "max-of-4", "--strategy", "cubic", "--variant", "both"], "none of the strategies chosen comes in that variant"),
        (["prove", "max-of-4", "--strategy", "subcubic", "--variant", "published"], "none of the strategies chosen comes in that variant"),
        (["prove", "max-of-4", "--family", "threshold", "--variant", "repaired"], "only the paper's subcubic ones do"),
    ],
)
def test_expected_errors_are_one_line_without_a_traceback(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in refused(*arguments)
    assert list(tmp_path.iterdir()) == []


def test_the_help_lists_every_normalisation():
    (option,) = NormalizationOption.__metadata__
    assert option.metavar == "|".join(NORMALIZATIONS)


def test_an_expected_error_of_a_real_process():
    result = run("prove", "max-of-3", check=False)
    assert (result.returncode, result.stdout) == (2, "") and result.stderr.startswith("error: no bundled model")


@pytest.mark.long
def test_train_writes_models_and_reports_each_seed(tmp_path):
    pytest.importorskip("torch")
    arguments = [
        "train",
        "--n-ctx",
        2,
        "--d-vocab",
        8,
        "--d-model",
        8,
        "--d-head",
        8,
        "--steps",
        20,
        "--seeds",
        "3:5",
        "--out",
        tmp_path / "m",
    ]
    rows = json.loads(run(*arguments, "--json", "-").stdout)
    assert [row["seed"] for row in rows] == [3, 4]
    for row in rows:
        assert {"path", "loss", "accuracy", "seconds"} <= row.keys() and Path(row["path"]).exists()
        assert row["accuracy"] == cp.accuracy(cp.load(row["path"])).accuracy
    assert all(row["resumed"] for row in json.loads(done(*arguments, "--json", "-").stdout))


@pytest.mark.long
def test_demo_tells_the_story_without_torch(tmp_path):
    result = subprocess.run([COMMAND, "demo"], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    for word in ("theorem", "2^120", "years", "Not a theorem", "Try next"):
        assert word in result.stdout


def test_prove_and_check_a_certificate(small_model, tmp_path):
    path = tmp_path / "small.cert.json"
    said = done("prove", small_model, "--strategy", "threshold-cubic", "--upper", "--certificate", path)
    assert f"certificate {path}" in said.stdout
    accepted = done("check", path, small_model)
    assert accepted.stdout.startswith("accepted: at least ") and "over the real numbers" in accepted.stdout
    data = json.loads(run("check", path, small_model, "--json", "-").stdout)
    assert data["verdict"] == "accepted" and data["total"] == "125" and data["semantics"] == "real"
    assert {"verdict", "reason", "correct_at_least", "correct_at_most", "total", "assumptions", "seconds"} <= data.keys()

    cp.save(random_weights(1), tmp_path / "other.safetensors")
    rejected = inside("check", path, tmp_path / "other.safetensors")
    assert rejected.returncode == 1 and "SHA-256 differs" in rejected.stdout
    path.write_text(path.read_text()[:-20])
    malformed = inside("check", path, small_model, "--json", "-")
    assert malformed.returncode == 2 and json.loads(malformed.stdout)["verdict"] == "malformed"
    assert inside("check", tmp_path / "none.json", small_model).returncode == 2
    alone = subprocess.run([sys.executable, "-m", "compactproofs.checker", path, small_model], capture_output=True, text=True)
    assert alone.returncode == 2 and alone.stdout.startswith("malformed: the certificate is not valid JSON")
    assert subprocess.run([sys.executable, "-m", "compactproofs.checker"], capture_output=True).returncode == 2


def test_a_certificate_that_takes_long_to_check_says_so(small_model, tmp_path, monkeypatch):
    path = tmp_path / "long.cert.json"
    monkeypatch.setattr("compactproofs.checker.MOST_WORK", 1)
    said = done("prove", small_model, "--strategy", "threshold-cubic", "--certificate", path).stdout
    allowed = re.search(r"more than is allowed by default: check --work (\d+)\)", said)
    assert done("check", path, small_model, "--work", allowed[1]).stdout.startswith("accepted")


def test_several_certificates_go_to_a_folder(small_model, tmp_path):
    folder = tmp_path / "certificates"
    arguments = ["--strategy", "cubic", "--strategy", "brute-force", "--strategy", "subcubic", "--certificate", folder]
    listed = json.loads(done("prove", small_model, *arguments, "--json", "-").stdout)
    paths = {entry["strategy"]: entry["certificate"]["path"] for entry in listed}
    assert paths["brute-force"] is None and len(list(folder.iterdir())) == 2
    for strategy in ("cubic", "subcubic"):
        assert inside("check", paths[strategy], small_model).returncode == 0


def test_certificates_that_cannot_be_written_are_refused_at_once(small_model, tmp_path):
    for arguments, words in (
        (["--strategy", "brute-force", "--certificate", tmp_path / "c.json"], "checking it means repeating it"),
        (["--strategy", "cubic", "--certificate", tmp_path / "no" / "c.json"], "does not exist"),
        (["--strategy", "cubic", "--certificate", tmp_path], "expected the name of a file"),
        (["--strategy", "cubic", "--certificate", tmp_path / "c.json", "--semantics", "float16"], "unknown semantics"),
        (["--family", "subcubic", "--certificate", small_model], "a file has that name"),
        (["--strategy", "cubic", "--certificate", small_model], "which this command reads"),
        (["--semantics", "float16"], "unknown semantics"),
        (["--semantics", "float32-any-order"], "give --certificate PATH too"),
        (["--strategy", "cubic", "--variant", "foo"], "variants: repaired, published, both"),
        (["--seconds", "0"], "--seconds 0: expected a positive number"),
        (["--family", "subcubic", "--semantics", "float16", "--certificate", tmp_path / "c"], "unknown semantics"),
    ):
        assert words in refused("prove", small_model, *arguments)


def test_a_float32_certificate_says_what_it_assumes(small_model, tmp_path):
    path = tmp_path / "f32.cert.json"
    done("prove", small_model, "--strategy", "cubic", "--certificate", path, "--semantics", "float32-any-order")
    assert "ASSUMING the error model float32-1" in done("check", path, small_model).stdout


@pytest.mark.long
def test_train_makes_networks(tmp_path):
    pytest.importorskip("torch")
    kind = ["--n-heads", 2, "--d-mlp", 32, "--act", "silu", "--norm", "RMS", "--bias"]
    sizes = ["--n-ctx", 2, "--d-vocab", 8, "--d-model", 16, "--steps", 3, "--seeds", "7", "--out", tmp_path]
    (row,) = json.loads(done("train", *kind, *sizes, "--json", "-").stdout)
    network = cp.load(row["path"])
    assert Path(row["path"]).name == "max-of-2-v8-heads2-silu32-RMS-bias-seed7.safetensors"
    assert (
        network.described == "2 heads, norm RMS before attention, norm RMS before the MLP, silu MLP of 32 neurons, final norm RMS, biases"
    )
    assert (network.d_head, network.norm_2.bias, network.b_U.shape) == (8, None, (8,))
    assert row["accuracy_method"] == "brute-force" and row["accuracy"] == cp.accuracy(network).accuracy
