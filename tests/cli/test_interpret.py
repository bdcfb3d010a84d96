"""`compactproofs interpret` as a user runs it."""

import json
import shutil

import compactproofs as cp
from command import done, refused, run
from compactproofs.model import zoo
from models import random_weights


def test_a_model_gives_json_alone_on_standard_output(tmp_path):
    path = tmp_path / "small.safetensors"
    cp.save(random_weights(0), path)
    data = json.loads(run("interpret", path, "--json", "-").stdout)
    keys = {"sizes", "statistics", "histograms", "arrays", "ablations", "weights_sha256", "assumptions", "seconds", "version", "producer"}
    assert data.keys() == keys
    expected = cp.interpret(random_weights(0)).as_json()
    assert data["statistics"] == expected["statistics"] and data["ablations"] == expected["ablations"]
    assert len(data["ablations"]["results"]) == 32 and data["ablations"]["method"] == "enumeration"


def test_a_bundled_model_gives_an_explained_table():
    text = done("interpret", "max-of-4", "--samples", 500).stdout
    assert "EQKERatioFirstTwoSingularFloat" in text and "their ratio; large means one direction decides attention" in text
    assert "zero-ablations (a sample of 500 sequences)" in text and "EU, EQKE, EQKP, EVOU, PVOU" in text
    assert "\x1b" not in text and text.isascii()


def test_a_folder_of_published_size_is_compared(tmp_path):
    shutil.copy(zoo._FOLDER / "max-of-4.safetensors", tmp_path / "a.safetensors")
    shutil.copy(zoo._FOLDER / "max-of-4.safetensors", tmp_path / "b.safetensors")
    report = tmp_path / "report.json"
    text = done("interpret", tmp_path, "--samples", 500, "--json", report).stdout
    assert text.startswith("2 models") and "std apart" in text
    data = json.loads(report.read_text())
    assert [model["file"] for model in data["models"]] == ["a.safetensors", "b.safetensors"]
    first = data["summary"]["EQKEFirstSingularFloat"]
    assert first["models"] == 2 and first["std"] == 0 and first["minimum"] == first["mean"] == first["maximum"]
    published = data["published"]["EQKEFirstSingularFloat"]
    assert published["mean"] == 7797.67 and published["std_apart"] == (first["mean"] - 7797.67) / 381.761


def test_a_folder_of_other_models_is_not_compared(tmp_path):
    cp.save(random_weights(0), tmp_path / "a.safetensors")
    cp.save(random_weights(1), tmp_path / "b.safetensors")
    data = json.loads(done("interpret", tmp_path, "--json", "-").stdout)
    assert data["published"] is None and len(data["models"]) == 2
    assert "published" not in done("interpret", tmp_path).stdout


def test_expected_errors_are_one_line(tmp_path):
    for arguments, message in (
        ([tmp_path], "holds no .safetensors files"),
        (["max-of-3"], "Bundled models: max-of-4"),
        (["max-of-10", "--exact-ablations"], "at most 2^25"),
        (["max-of-4", "--samples", 0], "samples=0 must be at least 1"),
        (["max-of-4", "--exact-ablations", "--samples", 10], "give one or the other"),
        (["max-of-4", "--exact-ablations", "--seed", 0], "give one or the other"),
    ):
        assert message in refused("interpret", *arguments)
