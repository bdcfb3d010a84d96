"""`compactproofs report` as a user runs it."""

import json

import compactproofs as cp
from command import refused, run
from models import mostly_right


def test_a_model_and_then_its_results(tmp_path):
    cp.save(mostly_right(1, v=4), tmp_path / "small.safetensors")
    page = tmp_path / "page.html"
    said = run("report", tmp_path / "small.safetensors", "--out", page, "--figures", tmp_path / "figures")
    assert f"results: {tmp_path / 'page.results'}" in said.stdout and f"report: {page}" in said.stdout
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".svg", ".png"}
    again = tmp_path / "again.html"
    data = json.loads(run("report", tmp_path / "page.results", "--out", again, "--json", "-").stdout)
    assert data.pop("producer").startswith("compactproofs ")
    assert data == {"report": str(again), "bytes": page.stat().st_size, "models": ["small"], "figures": []}
    assert again.read_bytes() == page.read_bytes()


def test_expected_errors_are_one_line(tmp_path):
    for arguments, words in (
        ([tmp_path], "holds no results"),
        (["max-of-4", "--out", tmp_path / "no" / "page.html"], "does not exist"),
        (["max-of-3"], "no bundled model"),
    ):
        assert words in refused("report", *arguments)
