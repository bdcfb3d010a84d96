"""Files that verbs write: no input, nobody else's file and no device is ever replaced, and what cannot be written is said first."""

import json
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

import compactproofs as cp
from command import COMMAND, done, inside, refused, run
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


@pytest.mark.parametrize(
    "verb",
    [
        ["sweep", "FOLDER", "--out", "out", "--strategy", "cubic"],
        ["interpret", "FOLDER"],
        ["train", "--out", "FOLDER", "--steps", "1"],
        ["reproduce", "--out", "FOLDER", "--config", "k4"],
    ],
)
def test_the_models_of_a_folder_are_inputs(model, tmp_path, verb, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inner = tmp_path / "inner" / "other.safetensors"
    inner.parent.mkdir()
    cp.save(random_weights(1), inner)
    (inner.parent / "config.json").write_text('{"n_heads": 1}')
    before = model.read_bytes()
    verb = [tmp_path if word == "FOLDER" else word for word in verb]
    for option in ["--json", "--csv"][: 2 if verb[0] == "sweep" else 1]:
        for file in (model, inner, inner.parent / "config.json"):
            assert "which this command reads" in refused(*verb, option, file, "--force")
    assert model.read_bytes() == before and not (tmp_path / "out").exists()


def test_stored_results_are_inputs(results, tmp_path):
    (part,) = results.glob("*.parquet")
    assert "which this command reads" in refused("report", results, "--out", part, "--force")
    assert "which this command reads" in refused("report", results, "--out", tmp_path / "x.html", "--json", part, "--force")


def test_a_certificate_is_an_input_of_check(model, tmp_path):
    certificate = tmp_path / "c.json"
    done("prove", model, "--strategy", "cubic", "--certificate", certificate)
    assert "which this command reads" in refused("check", certificate, model, "--json", certificate, "--force")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder of results that a report can be made from again."""
    folder = tmp_path_factory.mktemp("stored")
    cp.save(random_weights(0), folder / "small.safetensors")
    done("report", folder / "small.safetensors", "--out", folder / "page.html")
    return folder / "page.results"


@pytest.mark.parametrize("option", ["--json", "--certificate", "--out"])
def test_files_of_others_are_kept_unless_told_otherwise_and_our_own_are_replaced(model, results, tmp_path, option):
    path = tmp_path / "mine"
    path.write_text('{"a": "thesis"}')
    verb = {"--json": ["accuracy", model], "--certificate": ["prove", model, "--strategy", "cubic"], "--out": ["report", results]}[option]
    assert "is not one of ours; choose another name, or replace it with --force" in refused(*verb, option, path)
    assert path.read_text() == '{"a": "thesis"}'
    done(*verb, option, path, "--force")
    done(*verb, option, path)
    assert '"a": "thesis"' not in path.read_text()


def test_a_sweep_keeps_files_of_others(model, tmp_path):
    csv = tmp_path / "rows.csv"
    csv.write_text("name,age\n")
    sweep = ["sweep", tmp_path, "--out", tmp_path / "out", "--strategy", "cubic", "--workers", 1, "--csv", csv]
    assert "--force" in refused(*sweep)
    done(*sweep, "--force")
    done(*sweep)


@pytest.mark.parametrize(
    "text",
    [
        "<!doctype html><p>My thesis, with a compactproofs figure.",
        '<!doctype html><body>I tag pages with &lt;meta name="generator" content="compactproofs 1">' + " " * 3000,
        '<p>quoted: <meta name="generator" content="compactproofs 1"></p>',
    ],
)
def test_a_page_that_only_mentions_us_is_not_ours(results, tmp_path, text):
    page = tmp_path / "page.html"
    page.write_text(text)
    assert "is not one of ours" in refused("report", results, "--out", page)
    assert page.read_text() == text


@pytest.mark.parametrize(
    "content", [b"<svg><text>a compactproofs figure</text></svg>", b"\x89PNG\r\n\x1a\n compactproofs figure", b"<?xml?>"]
)
@pytest.mark.parametrize("name", ["losses.svg", "pareto.png"])
def test_a_figure_that_only_mentions_us_is_not_ours_and_is_looked_at_before_proving(model, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    report = ["report", model, "--out", tmp_path / "page.html", "--figures", tmp_path]
    assert f"{name}: that file exists and is not one of ours" in refused(*report)
    assert (tmp_path / name).read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([model.name, name])


def test_a_certificate_or_an_empty_list_is_no_result_of_ours(model, tmp_path):
    path = tmp_path / "c.json"
    done("prove", model, "--strategy", "cubic", "--certificate", path)
    for text in (path.read_text(), "[]"):
        path.write_text(text)
        assert "is not one of ours" in refused("accuracy", model, "--json", path)
        assert path.read_text() == text


@pytest.mark.long
def test_figures_keep_files_of_others(results, tmp_path):
    (tmp_path / "pareto.svg").write_text("<svg>mine</svg>")
    report = ["report", results, "--out", tmp_path / "page.html", "--figures", tmp_path]
    result = inside(*report)
    assert result.returncode == 2 and "pareto.svg: that file exists" in result.stderr
    assert (tmp_path / "pareto.svg").read_text() == "<svg>mine</svg>"
    done(*report, "--force")
    done(*report)


def test_certificates_in_a_folder_keep_files_of_others(model, tmp_path):
    """Looked at before anything is proven, and only where a certificate would go."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    (folder / "brute-force.cert.json").write_text("mine")
    prove = ["prove", model, "--strategy", "cubic", "--strategy", "subcubic", "--strategy", "brute-force", "--certificate", folder]
    done(*prove)
    done(*prove)
    (folder / "cubic.cert.json").write_text("mine")
    assert "cubic.cert.json: that file exists and is not one of ours" in refused(*prove)
    assert (folder / "cubic.cert.json").read_text() == (folder / "brute-force.cert.json").read_text() == "mine"


def test_two_outputs_need_two_names(model, tmp_path):
    same = tmp_path / "same.json"
    assert "choose another name" in refused("prove", model, "--strategy", "cubic", "--json", same, "--certificate", same)


def test_results_of_a_report_go_nowhere_else(model, tmp_path):
    (tmp_path / "page.results").mkdir()
    (tmp_path / "page.results" / "summary.json").write_text("{}")
    assert "page.results, where the results would go, is not ours" in refused("report", model, "--out", tmp_path / "page.html")


def test_a_file_in_the_way_of_the_results_is_named_first(model, tmp_path):
    (tmp_path / "page.results").write_text("mine")
    (tmp_path / "link.results").symlink_to(tmp_path / "nowhere")
    for out in ("page.html", "link.html"):
        for force in ([], ["--force"]):
            said = refused("report", model, "--out", tmp_path / out, *force)
            assert "is a file; choose another name for the report, or move the file" in said and "--force" not in said
    assert (tmp_path / "page.results").read_text() == "mine"


def test_a_page_cannot_be_called_as_its_results(model, tmp_path):
    assert "the folder with the results would have that name" in refused("report", model, "--out", tmp_path / "x.results", "--force")
    assert [path.name for path in tmp_path.iterdir()] == [model.name]


def test_a_symbolic_link_is_followed_and_kept(model, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "real" / "result.json")
    done("accuracy", model, "--json", tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink() and "accuracy" in json.loads((tmp_path / "real" / "result.json").read_text())


def sweep_to_csv(folder, csv):
    return done("sweep", folder, "--out", folder / "out", "--strategy", "cubic", "--workers", 1, "--csv", csv)


def test_a_table_follows_symbolic_links_too(model, tmp_path):
    (tmp_path / "real").mkdir()
    link, target = tmp_path / "link.csv", tmp_path / "real" / "rows.csv"
    link.symlink_to(target)
    for _ in range(2):
        assert "link.csv: 1 rows" in sweep_to_csv(tmp_path, link).stdout
        assert link.is_symlink() and len(target.read_text().splitlines()) == 2
    assert [path.name for path in target.parent.iterdir()] == ["rows.csv"]


def test_a_table_goes_through_a_pipe_that_stays_one(model, tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        sweep_to_csv(tmp_path, pipe)
        assert stat.S_ISFIFO(pipe.stat().st_mode) and len(os.read(reader, 2**16).splitlines()) == 2
    finally:
        os.close(reader)


def test_a_long_name_can_be_written(tmp_path):
    path = tmp_path / f"{'x' * 248}.json"
    assert inside("strategies", "--json", path).returncode == 0
    assert json.loads(path.read_text()) and [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_new_file_has_the_users_permissions_and_an_old_one_keeps_its_own(tmp_path):
    path = tmp_path / "x.json"
    before = os.umask(0o027)
    try:
        assert inside("strategies", "--json", path).returncode == 0
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o600)
        assert inside("strategies", "--json", path).returncode == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_device_is_written_to_not_replaced(model):
    before = Path("/dev/null").stat()
    done("accuracy", model, "--json", "/dev/null")
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


@pytest.mark.parametrize("verb", [["strategies"], ["accuracy", "max-of-4", "--samples", "10"]])
def test_standard_output_may_be_closed(verb):
    result = subprocess.run(["sh", "-c", '"$@" >&-', "sh", COMMAND, *verb], stderr=subprocess.PIPE, text=True)
    said = [line for line in result.stderr.splitlines() if not line.startswith("compiling")]
    assert (result.returncode, said) == (0, [])


def test_json_does_not_go_to_a_closed_standard_output():
    result = subprocess.run(["sh", "-c", '"$@" >&-', "sh", COMMAND, "strategies", "--json", "-"], stderr=subprocess.PIPE, text=True)
    assert (result.returncode, result.stderr) == (2, "error: --json -: standard output is closed\n")
