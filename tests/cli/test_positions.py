"""`prove --position` and `--task sign-of-sum`, from the command line."""

import json
from dataclasses import replace

import pytest

import compactproofs as cp
from blocks import tiny_block
from command import inside, refused, run
from models import mostly_right


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A tiny causal network with an MLP, and one that is said to look ahead."""
    folder = tmp_path_factory.mktemp("positions")
    network = replace(tiny_block(0, "MLP"), causal=True)
    cp.save(network, folder / "causal.safetensors")
    cp.save(replace(network, causal=False), folder / "both.safetensors")
    cp.save(mostly_right(1), folder / "unsaid.safetensors")
    return network, folder


def test_every_position_in_a_table(saved):
    said = run("prove", saved[1] / "causal.safetensors", "--task", "sign-of-sum", "--position", "every", "--upper", "--seconds", 20)
    header, *rows = said.stdout.splitlines()
    assert header.split() == ["position", "status", "lower", "upper", "seconds"]
    assert [row.split()[:2] for row in rows[:3]] == [[str(p), "proven"] for p in range(3)]
    task = cp.task_for(saved[0], "sign-of-sum")
    exact = cp.prove(saved[0], "brute-force", task, position="every")
    whole = sum(proof.correct_at_least == proof.total for proof in exact)
    assert rows[3] == f"proven right on all inputs at {whole} of 3 positions"
    together = cp.over_positions(exact)
    least, most = (f"{float(share):.8f}"[:8] for share in (together.average_lower, together.all_right_lower))
    assert rows[4].startswith(f"  on average over them at least {least}") and f"of them at once on at least {most}" in rows[4]
    assert "the answer read at position" in said.stdout and "each token t counted as t - 2:" in said.stdout


def test_the_json_has_one_object_for_each_position_and_strategy(saved):
    given = ["--strategy", "brute-force", "--strategy", "cubic", "--json", "-"]
    found = json.loads(inside("prove", saved[1] / "unsaid.safetensors", "--position", "every", *given).stdout)
    assert sorted((each["position"], each["strategy"]) for each in found) == [(p, s) for p in range(3) for s in ("brute-force", "cubic")]
    assert [each["position"] for each in found] == [0, 0, 1, 1, 2, 2] and {each["total"] for each in found} == {"125"}
    assert {each["weights_sha256"] for each in found} == {mostly_right(1).sha256}
    (one,) = json.loads(inside("prove", saved[1] / "unsaid.safetensors", "--position", 1, "--strategy", "cubic", "--json", "-").stdout)
    assert one["position"] == 1 and one["correct_at_least"] == next(
        each["correct_at_least"] for each in found if (each["position"], each["strategy"]) == (1, "cubic")
    )
    (last,) = json.loads(inside("prove", saved[1] / "unsaid.safetensors", "--strategy", "cubic", "--json", "-").stdout)
    assert "position" not in last


def test_one_position_and_several_strategies_for_people(saved):
    said = inside("prove", saved[1] / "unsaid.safetensors", "--position", 1, "--strategy", "threshold-quartic", "--strategy", "cubic")
    true = cp.accuracy(cp.load(saved[1] / "unsaid.safetensors", n_ctx=2)).accuracy
    assert f"true accuracy {true:.8f}, by brute force" in said.stdout
    assert said.stderr == "note: attention is causal: a position sees the tokens up to it\n"
    each = inside("prove", saved[1] / "causal.safetensors", "--position", "every", "--strategy", "brute-force", "--strategy", "cubic")
    assert "cubic: proven right on all inputs at 0 of 3 positions\n  at position 0: cubic is the paper's argument" in each.stdout
    assert "brute-force: proven right on all inputs at" in each.stdout and each.stderr == ""


def test_short_proofs_at_every_position(saved):
    given = ["--strategy", "threshold-quartic", "--strategy", "cubic", "--position", "every", "--json", "-"]
    found = json.loads(inside("prove", saved[1] / "unsaid.safetensors", *given).stdout)
    limit = max(each["flops"] for each in found if each["strategy"] == "cubic")
    kept = json.loads(inside("prove", saved[1] / "unsaid.safetensors", "--max-flops", limit, *given).stdout)
    assert len(kept) >= 3 and all(each["flops"] <= limit for each in kept)


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("causal", ["--position", "3"], "position=3: expected 'last', 'every' or a number from 0 to 2"),
        ("causal", ["--position", "-1"], "--position -1: expected last, every or a number from 0"),
        ("causal", ["--position", "first"], "--position first: expected last, every or a number from 0"),
        ("both", ["--position", "every"], "the model's attention is not causal"),
        ("both", ["--position", "1"], "Only its last position, 2, can be read"),
        ("causal", ["--position", "0", "--prefix", "4"], "position 0 lies within the prefix"),
        ("causal", ["--position", "every", "--suffix", "4"], "with a suffix only the last position, 2, can be read"),
        ("causal", ["--task", "sign-of-sum:0.3"], "expected an integer or a half-integer"),
        ("causal", ["--task", "sign-of-sums"], "did you mean 'sign-of-sum'? known tasks: max, min,"),
    ],
)
def test_what_cannot_be(saved, words, message, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in refused("prove", saved[1] / f"{name}.safetensors", *words)
    assert list(tmp_path.iterdir()) == []


def test_accuracy_of_the_sign_of_a_sum(saved):
    found = json.loads(inside("accuracy", saved[1] / "causal.safetensors", "--task", "sign-of-sum:1.5", "--json", "-").stdout)
    assert int(found["correct"]) == cp.accuracy(saved[0], cp.task_for(saved[0], "sign-of-sum:1.5")).correct
