"""`compactproofs report` as a user runs it."""

import json
import os

import duckdb
import pytest

import compactproofs as cp
from command import done, refused, run
from models import mostly_right, random_weights


@pytest.mark.long
def test_a_model_and_then_its_results(tmp_path):
    cp.save(mostly_right(1, v=4), tmp_path / "small.safetensors")
    page = tmp_path / "page.html"
    said = run("report", tmp_path / "small.safetensors", "--out", page, "--figures", tmp_path / "figures")
    assert f"results: {tmp_path / 'page.results'}" in said.stdout and f"report: {page}" in said.stdout
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".svg", ".png"}
    again = tmp_path / "again.html"
    data = json.loads(done("report", tmp_path / "page.results", "--out", again, "--json", "-").stdout)
    assert data.pop("producer").startswith("compactproofs ")
    assert data == {"report": str(again), "bytes": page.stat().st_size, "models": ["small"], "figures": []}
    assert again.read_bytes() == page.read_bytes()


@pytest.mark.long
def test_a_folder_of_models_a_sweep_and_a_reproduction(tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    for seed in range(3):
        cp.save(mostly_right(seed, v=4), models / f"seed{seed}.safetensors")
    (models / "bad.safetensors").write_bytes(b"no model")
    names = ["seed0", "seed1", "seed2"]

    def reported(source, *options):
        data = json.loads(done("report", source, "--out", tmp_path / "page.html", "--json", "-", *options).stdout)
        return data["models"], (tmp_path / "page.html").read_text(encoding="utf-8")

    done("sweep", models, "--out", tmp_path / "swept" / "results", "--strategy", "cubic", "--strategy", "threshold-cubic", "--workers", 1)
    for source in (tmp_path / "swept" / "results", tmp_path / "swept"):  # a reproduction keeps its store in `results`
        found, text = reported(source)
        assert found == names and "Distribution over models" in text and "bad.safetensors" in text and "not a readable" in text
    found, text = reported(models, "--seconds", 5)
    assert found == names and "What failed" in text and (tmp_path / "page.results").is_dir()
    assert reported(tmp_path / "page.results") == (names, text)


def test_results_of_the_first_edition_are_refused(tmp_path):
    old = tmp_path / "old.results"
    old.mkdir()
    (old / "summary.json").write_text('{"format": "compactproofs-results-1"}')
    for folder in (old, tmp_path):
        assert "holds results of an earlier edition; make them again" in refused("report", folder)
    (tmp_path / "sweep").mkdir()
    duckdb.sql(f"COPY (SELECT 'x' AS model, 1.0 AS lower) TO '{tmp_path}/sweep/part.parquet'")
    assert "holds results of another edition" in refused("report", tmp_path / "sweep")
    cp.save(random_weights(0), tmp_path / "m.safetensors")
    assert "holds results of another edition" in refused("sweep", tmp_path, "--out", tmp_path / "sweep", "--strategy", "cubic")


def test_a_file_name_that_is_not_utf_8_has_a_page(tmp_path):
    model = os.fsencode(tmp_path) + b"/odd\xff\x1b[31m.safetensors"
    cp.save(random_weights(0), os.fsdecode(model))
    done("report", os.fsdecode(model), "--out", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert r"<title>compactproofs: odd\udcff\x1b[31m</title>" in text and r"<h1>odd\udcff\x1b[31m</h1>" in text


def test_options_about_a_model_are_refused_for_results(tmp_path):
    (tmp_path / "x.results").mkdir()
    for option in (["--seconds", 5], ["--n-heads", 1], ["--normalization", "none"], ["--n-ctx", 2]):
        assert "are about a model" in refused("report", tmp_path / "x.results", *option)


def test_expected_errors_are_one_line(tmp_path):
    for arguments, words in (
        ([tmp_path], "holds no results"),
        (["max-of-4", "--out", tmp_path / "no" / "page.html"], "does not exist"),
        (["max-of-3"], "no bundled model"),
    ):
        assert words in refused("report", *arguments)
