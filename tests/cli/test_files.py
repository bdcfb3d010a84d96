"""Files that verbs write: no input, nobody else's file and no device is ever replaced, and what cannot be written is said first."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import compactproofs as cp
from command import COMMAND, refused, run
from models import random_weights


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "small.safetensors"
    cp.save(random_weights(0), path)
    return path


@pytest.mark.parametrize(
    ("verb", "option"),
    [
        (["report"], "--out"),
        (["report"], "--json"),
        (["accuracy"], "--json"),
        (["prove", "--strategy", "cubic"], "--json"),
        (["prove", "--strategy", "cubic"], "--certificate"),
        (["interpret"], "--json"),
    ],
)
def test_a_verb_never_replaces_its_input(model, verb, option):
    before = model.read_bytes()
    for place in (model, model.parent / "." / model.name):
        assert "which this command reads" in refused(*verb, model, option, place, "--force")
    assert model.read_bytes() == before and [path.name for path in model.parent.iterdir()] == [model.name]


def test_a_config_beside_the_model_is_an_input_too(model):
    config = model.parent / "config.json"
    config.write_text('{"n_heads": 1}')
    assert "which this command reads" in refused("accuracy", model, "--json", config, "--force")


def test_a_certificate_is_an_input_of_check(model, tmp_path):
    certificate = tmp_path / "c.json"
    run("prove", model, "--strategy", "cubic", "--certificate", certificate)
    assert "which this command reads" in refused("check", certificate, model, "--json", certificate, "--force")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder of results that a report can be made from again."""
    folder = tmp_path_factory.mktemp("stored")
    cp.save(random_weights(0), folder / "small.safetensors")
    run("report", folder / "small.safetensors", "--out", folder / "page.html")
    return folder / "page.results"


@pytest.mark.parametrize("option", ["--json", "--certificate", "--out"])
def test_files_of_others_are_kept_unless_told_otherwise_and_our_own_are_replaced(model, results, tmp_path, option):
    path = tmp_path / "mine"
    path.write_text('{"a": "thesis"}')
    verb = {"--json": ["accuracy", model], "--certificate": ["prove", model, "--strategy", "cubic"], "--out": ["report", results]}[option]
    assert "is not one of ours; choose another name, or replace it with --force" in refused(*verb, option, path)
    assert path.read_text() == '{"a": "thesis"}'
    run(*verb, option, path, "--force")
    run(*verb, option, path)
    assert '"a": "thesis"' not in path.read_text()


def test_a_sweep_keeps_files_of_others(model, tmp_path):
    csv = tmp_path / "rows.csv"
    csv.write_text("name,age\n")
    sweep = ["sweep", tmp_path, "--out", tmp_path / "out", "--strategy", "cubic", "--workers", 1, "--csv", csv]
    assert "--force" in refused(*sweep)
    run(*sweep, "--force")
    run(*sweep)


def test_figures_keep_files_of_others(results, tmp_path):
    (tmp_path / "pareto.svg").write_text("<svg>mine</svg>")
    report = ["report", results, "--out", tmp_path / "page.html", "--figures", tmp_path]
    result = run(*report, check=False)
    assert result.returncode == 2 and "pareto.svg: that file exists" in result.stderr
    assert (tmp_path / "pareto.svg").read_text() == "<svg>mine</svg>"
    run(*report, "--force")
    run(*report)


def test_two_outputs_need_two_names(model, tmp_path):
    same = tmp_path / "same.json"
    assert "choose another name" in refused("prove", model, "--strategy", "cubic", "--json", same, "--certificate", same)


def test_results_of_a_report_go_nowhere_else(model, tmp_path):
    (tmp_path / "page.results").mkdir()
    (tmp_path / "page.results" / "summary.json").write_text("{}")
    assert "page.results, where the results would go, is not ours" in refused("report", model, "--out", tmp_path / "page.html")


def test_a_symbolic_link_is_followed_and_kept(model, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "real" / "result.json")
    run("accuracy", model, "--json", tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink() and "accuracy" in json.loads((tmp_path / "real" / "result.json").read_text())


def test_a_device_is_written_to_not_replaced(model):
    before = Path("/dev/null").stat()
    run("accuracy", model, "--json", "/dev/null")
    assert Path("/dev/null").stat().st_rdev == before.st_rdev


@pytest.mark.parametrize("option", ["--json", "--certificate"])
def test_places_that_do_not_work_are_named_before_anything_is_proven(model, tmp_path, option):
    (tmp_path / "file").write_text("x")
    for place, words in (
        (tmp_path, "that is a folder; expected the name of a file"),
        (tmp_path / "no" / "x.json", "does not exist"),
        (tmp_path / "file" / "x.json", "does not exist"),
        ("/proc/x.json", "cannot be written to"),
        (tmp_path / ("x" * 300), "cannot be used"),
    ):
        assert words in refused("prove", model, "--strategy", "cubic", option, place)


@pytest.mark.parametrize("verb", [["train", "--steps", "1"], ["sweep", "MODELS", "--strategy", "cubic"], ["reproduce", "--config", "k4"]])
def test_a_folder_is_needed_where_a_folder_is_needed(model, tmp_path, verb):
    (tmp_path / "file").write_text("x")
    verb = [str(tmp_path) if word == "MODELS" else word for word in verb]
    for place in (tmp_path / "file", tmp_path / "file" / "inside", Path("/proc/nothing")):
        assert f"--out {place}: expected a folder" in refused(*verb, "--out", place)


@pytest.fixture
def full_disk():
    """A folder on a file system without room, if one can be made here; /dev/full stands in for it otherwise."""
    folder = Path(tempfile.mkdtemp())
    made = shutil.which("mount") and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", folder], capture_output=True)
    yield folder if made and made.returncode == 0 else None
    subprocess.run(["umount", folder], capture_output=True)
    folder.rmdir()


def test_a_full_disk_is_an_error_in_words(model, full_disk):
    if full_disk is None:
        said = run("strategies", "--json", "/dev/full", check=False)
    else:
        said = run("strategies", "--json", full_disk / "x.json", check=False)
        assert list(full_disk.iterdir()) == []
    assert said.returncode == 2 and "cannot write (No space left on device)" in said.stderr and "Traceback" not in said.stderr


def test_standard_output_that_takes_nothing_is_an_error_in_words(model):
    with Path("/dev/full").open("w") as full:
        result = subprocess.run([COMMAND, "accuracy", model], stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode != 0 and "Traceback" not in result.stderr
