"""`--margin`, `--margins`, `--log-loss` and `counterexamples`, from the command line."""

import json

import pytest

import compactproofs as cp
import networks
from command import done, inside, refused, run
from models import mostly_right


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A tiny model that is mostly right, and networks with a final norm and with two heads."""
    folder = tmp_path_factory.mktemp("margins")
    cp.save(mostly_right(1), folder / "model.safetensors")
    cp.save(networks.random_network(0, 0.6, **networks.AFFINE["final LN"]), folder / "norm.safetensors")
    cp.save(networks.random_network(1, 0.6, **networks.BLOCKS["two heads"]), folder / "heads.safetensors")
    return folder


def test_a_margin_in_the_theorem_and_the_json(saved):
    said = run("prove", saved / "model.safetensors", "--margin", "0.1", "--upper").stdout
    assert "larger by more than 0.1 (the float64, exactly 0.1000000000000000055511151231257827021181583404541015625) than that of" in said
    said = done("prove", saved / "model.safetensors", "--margin=-0.5").stdout
    assert "larger, or smaller by less than 0.5, than that of" in said
    (found,) = json.loads(done("prove", saved / "model.safetensors", "--margin", "1.5", "--upper", "--json", "-").stdout)
    exact = json.loads(done("accuracy", saved / "model.safetensors", "--margin", "1.5", "--json", "-").stdout)
    assert found["margin"] == exact["margin"] == 1.5 and found["correct_at_least"] == str(exact["correct"]) == found["correct_at_most"]
    (usual,) = json.loads(done("prove", saved / "model.safetensors", "--margin", "0", "--json", "-").stdout)
    assert "margin" not in usual and int(usual["correct_at_least"]) >= int(found["correct_at_least"])


def test_a_certificate_by_a_margin(saved, tmp_path):
    path = tmp_path / "by.cert.json"
    done("prove", saved / "model.safetensors", "--margin", "1.5", "--upper", "--certificate", path)
    said = run("check", path, saved / "model.safetensors").stdout
    assert said.startswith("accepted: ") and "by MORE THAN 3/2 than every other" in said
    assert json.loads(done("check", path, saved / "model.safetensors", "--json", "-").stdout)["margin"] == "3/2"
    assert "right means: the logit is larger by more than 1.5 than every other" in done("show", path).stdout
    (found,) = json.loads(done("show", path, "--json", "-").stdout)
    assert found["margin"] == "1.5"
    content = json.loads(path.read_text())
    content["question"]["margin"] = (0.5).hex()
    path.write_text(json.dumps(content))
    assert inside("check", path, saved / "model.safetensors").returncode == 1


def test_a_curve_and_the_loss(saved):
    said = run("prove", saved / "model.safetensors", "--margins", "-1:2:0.5", "--log-loss").stdout
    rows = [line.split() for line in said.splitlines()]
    assert rows[0] == "right by more than lower upper".split() and [row[0] for row in rows[1:8]] == [
        "-1",
        "-0.5",
        "0",
        "0.5",
        "1",
        "1.5",
        "2",
    ]
    assert "mean cross-entropy over the 5^3 = 125 sequences" in said and "(enumeration, " in said
    found = json.loads(done("prove", saved / "model.safetensors", "--margins", "-1:2:0.5", "--log-loss", "--json", "-").stdout)
    assert [point["margin"] for point in found["points"]] == [-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0] and found["total"] == "125"
    assert all(0 <= point["lower"] <= point["upper"] <= 1 for point in found["points"])
    assert found["log_loss"]["lower"] <= found["log_loss"]["upper"] <= found["log_loss"]["lower"] + 1e-9
    proved = ["prove", saved / "model.safetensors", "--strategy", "threshold-quartic", "--margins", "-1:2:0.5", "--json", "-"]
    by_proof = json.loads(done(*proved).stdout)
    assert by_proof["method"] == "threshold-quartic" and by_proof["log_loss"] is None
    for one, other in zip(by_proof["points"], found["points"], strict=True):
        assert int(one["right_at_least"]) <= int(other["right_at_least"]) <= int(one["right_at_most"])


def test_margins_of_a_network_with_a_final_norm(saved):
    said = done("prove", saved / "norm.safetensors", "--margins", "-1:1:1", "--seconds", "3").stdout
    assert "threshold-best" in said
    (found,) = json.loads(
        done("prove", saved / "norm.safetensors", "--margin", "0.5", "--strategy", "threshold-cubic", "--json", "-").stdout
    )
    assert found["status"] == "infeasible" and "a final norm, whose size matters" in found["reason"]


@pytest.mark.parametrize(
    ("model", "given", "words"),
    [
        ("model", ["--margin", "much"], "a margin 'much'; expected a decimal number such as 0.5"),
        ("model", ["--margin", "nan"], "expected a finite number"),
        ("model", ["--margin", "1e99"], "at most 2^100 in size"),
        ("model", ["--margins", "0:1"], "expected A:B:STEP, such as 0:10:0.5"),
        ("model", ["--margins", "0:1:0"], "with a step above 0"),
        ("model", ["--margins", "2:1:0.5"], "expected A:B:STEP"),
        ("model", ["--margins", "0:1:0.00001"], "at most 1000 of them"),
        ("model", ["--margins", "0:1:1", "--margin", "1"], "give one or the other"),
        ("model", ["--margins", "0:1:1", "--certificate", "x.json"], "give --margin instead"),
        ("model", ["--margins", "0:1:1", "--position", "1"], "leave out --position"),
        ("model", ["--margins", "0:1:1", "--family", "threshold"], "take one strategy"),
        ("model", ["--margins", "0:1:1", "--strategy", "cubic"], "not by how much"),
        ("heads", ["--log-loss", "--seconds", "1"], "log-loss is bounded for networks of one head"),
        ("heads", ["--margin", "1", "--certificate", "x.json"], "certificates with a margin are about networks of one head"),
        ("norm", ["--margin", "1", "--certificate", "x.json"], "certificates with a margin are about networks of one head"),
        ("model", ["--margin", "1", "--semantics", "float32-any-order", "--certificate", "x.json"], "over the real numbers"),
    ],
)
def test_what_cannot_be_asked(saved, tmp_path, model, given, words):
    given = [str(tmp_path / word) if word == "x.json" else word for word in given]
    assert words in refused("prove", saved / f"{model}.safetensors", *given)


def test_counterexamples_in_a_table_and_as_json(saved):
    said = run("counterexamples", saved / "model.safetensors").stdout
    assert "labels with a failing input: " in said and "; not known: 0" in said
    assert "all that fail lie in a region of " in said
    found = json.loads(done("counterexamples", saved / "model.safetensors", "--json", "-").stdout)
    weights = mostly_right(1)
    assert [each["label"] for each in found["labels"]] == list(range(5)) and found["total"] == "125"
    assert int(found["failing_at_most"]) == 125 - cp.accuracy(weights).correct
    assert {each["any_fails"] for each in found["labels"]} == {"yes", "no"}
    for each in found["labels"]:
        assert (each["example"] is not None) == (each["any_fails"] == "yes") == (int(each["failing_at_most"]) > 0)
        assert each["example"] is None or (max(each["example"]) == each["label"] and each["output"] != each["label"])
    failing = next(each["label"] for each in found["labels"] if each["any_fails"] == "yes")
    one = json.loads(done("counterexamples", saved / "model.safetensors", "--label", failing, "--json", "-").stdout)
    assert [each["label"] for each in one["labels"]] == [failing]
    assert 0 < int(one["region"]["mass"]) <= int(found["region"]["mass"]) <= 125 and True in one["region"]["inside"]


def test_counterexamples_of_a_region_and_of_other_networks(saved):
    given = ["--where", "max>=2", "--distribution", "product:1,0,2,1,1", "--json", "-"]
    found = json.loads(done("counterexamples", saved / "model.safetensors", *given).stdout)
    assert [each["label"] for each in found["labels"]] == [2, 3, 4]
    assert all(each["example"] is None or 1 not in each["example"] for each in found["labels"])
    assert "labels with a failing input" in done("counterexamples", saved / "heads.safetensors", "--seconds", "1").stdout


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--label", "7"], "label 7: no input carries it; labels: 0, 1, 2, 3, 4"),
        (["--where", "max>=3", "--label", "1"], "label 1: no input carries it; labels: 3, 4"),
        (["--seconds", "0"], "seconds"),
        (["--task", "nothing"], "nothing"),
    ],
)
def test_counterexamples_that_cannot_be_asked_for(saved, given, words):
    assert words in refused("counterexamples", saved / "model.safetensors", *given)
