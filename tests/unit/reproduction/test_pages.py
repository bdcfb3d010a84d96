"""Pages from synthetic sweeps: what they say is what the rows say, and nothing goes missing."""

import csv
import json
import re
from pathlib import Path

import pytest

from compactproofs.errors import ReportError, ResultsError
from compactproofs.results.schema import row
from compactproofs.results.store import pack, write_part
from compactproofs_experiments.reproduction.pages import write_pages
from compactproofs_experiments.reproduction.run import Timings, record
from synthetic_sweeps import ALL, BEST, CORRECT, TOTAL, changed, rows_of, store_of

SOME = [s for s in ALL if s.family != "subcubic" or s.parameters["attention_error"] in ("svd", "exact_EQKE+max_diff_exact")]
FEW = [s for s in ALL if s.name == "cubic" or s.label == BEST]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    path = tmp_path_factory.mktemp("out")
    store_of(path, *(rows_of(seed, SOME) for seed in range(4)))
    store_of(path, *(rows_of(seed, SOME[:3], n_ctx=20, sampled=True) for seed in range(2)), name="k20")
    measured = [
        row(model=str(n), kind="statistics", data=json.dumps({"EQKEFirstSingularFloat": 7797.67 + n, "query_direction_std": None}))
        for n in (-1, 1)
    ]
    for number, each in enumerate(measured):
        write_part(path / "results" / f"measured-{number}.parquet", [{**each, "folder": "/somewhere/k4"}])
    for models in (1, 3):  # two runs
        wall = {"training_seconds": 100.0 * models, "sweep_seconds": 2500.0 * models, "io_seconds": 0.5 * models}
        record(path / "results", Path("/somewhere/k4"), Timings(2, models, peak_memory_bytes=2**30, sweep_cpu_seconds=60.0, **wall))
    return path / "results"


@pytest.fixture(scope="module")
def pages(out, tmp_path_factory):
    into = tmp_path_factory.mktemp("pages") / "results"
    written = write_pages(out, into, command="compactproofs reproduce")
    assert sorted(written) == sorted(into.iterdir())
    return {path.name: path.read_text() for path in written}


@pytest.fixture
def texts(monkeypatch, tmp_path):
    """The pages about the results in the test's folder; without figures, which take long to draw."""
    monkeypatch.setattr("compactproofs_experiments.reproduction.pages.save_figures", lambda configuration, folder: [])

    def write():
        return {
            path.name: path.read_text()
            for path in write_pages(tmp_path / "results", tmp_path / "pages", command="x")
            if path.suffix == ".md"
        }

    return write


@pytest.mark.long
def test_every_page_figure_and_datum_is_written(pages):
    for name in ("index.md", "k4.md", "k20.md", "models.md", "comparison.md", "agreement.md", "summary.csv"):
        assert name in pages
    for figure in ("pareto", "singular-ratio", "unexplained", "accuracy"):
        assert pages[f"k4-{figure}.svg"].startswith("<?xml") and f"(k4-{figure}.svg)" in pages["k4.md"]


@pytest.mark.long
def test_links_between_pages_and_figures_lead_somewhere(pages):
    for name, text in pages.items():
        for link in re.findall(r"\]\(([^)#]+)\)", text) if name.endswith(".md") else ():
            assert link in pages or link.startswith(("../strategies/", "../explanation/", "store/results.parquet")), (name, link)


def test_tables_have_as_many_cells_as_columns(pages):
    for name, text in pages.items():
        for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE) if name.endswith(".md") else ():
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1, (name, block)


def test_the_index_says_how_much_there_is(pages):
    text = pages["index.md"]
    assert "    compactproofs reproduce\n" in text
    assert "| [max-of-4, 64 tokens](k4.md) | 4 | 151 | 62 | 168 | 80 | 0 | 0 | 22 of 22 |" in text
    assert (
        "| max-of-4, 64 tokens | 4 | 6.7 min | 2.8 h | 2.0 s | 2.0 min | 2 | 1.00 GiB |" in text
        and "did not record search and counting" in text
        and "Failures" not in text
    )


def test_what_has_no_bound_is_told(pages):
    assert "Every strategy gave a bound for every model." in pages["k4.md"]
    assert "(sampled)" in pages["k20.md"] and "`brute-force` infeasible for 2" in pages["k20.md"]
    assert "Normalised bounds" in pages["k4.md"] and "Normalised bounds" not in pages["k20.md"]


@pytest.mark.long
def test_a_packed_store_gives_the_same_pages(out, pages, tmp_path):
    (tmp_path / "store").mkdir()
    assert pack(out, tmp_path / "store" / "results.parquet") == 248 + 6 + 2 + 2
    assert b"/somewhere" not in (tmp_path / "store" / "results.parquet").read_bytes()
    again = write_pages(tmp_path / "store", tmp_path / "pages", command="compactproofs reproduce")
    assert {path.name: path.read_text() for path in again} == pages
    assert pack(tmp_path / "store", tmp_path / "again.parquet") == 258


def test_the_summary_has_a_row_for_each_strategy(pages):
    rows = list(csv.DictReader(pages["summary.csv"].splitlines()))
    assert len(rows) == 65 and {(r["config"], r["infeasible"]) for r in rows if r["label"] == "brute-force"} == {("k4", "0"), ("k20", "2")}
    cubic = next(r for r in rows if (r["config"], r["label"]) == ("k4", "cubic"))
    assert float(cubic["bound_mean"]) == pytest.approx(0.953067 * 1.0015, abs=1e-6) and cubic["published_bound_mean"] == "0.953067"


def test_models_stand_beside_the_published_statistics(pages):
    assert "| `EQKEFirstSingularFloat` | 7798" in pages["models.md"] and "1 of 1 mean within 2" in pages["models.md"]


@pytest.mark.slow
def test_the_same_results_give_the_same_pages(tmp_path):
    store_of(tmp_path, *(rows_of(seed, FEW[1:]) for seed in range(3)))
    first, second = (write_pages(tmp_path / "results", tmp_path / name, command="x") for name in "ab")
    for one, other in zip(first, second, strict=True):
        assert one.read_text() == other.read_text(), one.name


def test_a_false_bound_is_an_alarm(tmp_path, texts):
    rows = changed(rows_of(0, FEW), "cubic", correct_at_least=str(CORRECT + 1))
    store_of(tmp_path, changed(rows, BEST, "published", correct_at_least=str(TOTAL - 899)))
    found = texts()
    for name in ("index.md", "k4.md", "agreement.md"):
        assert "**1 bound must be false" in found[name]
    assert "1 of 1 value of the authors' computation exceed the truth, on 1 model" in found["agreement.md"]


def test_failures_and_repetitions_are_told(tmp_path, texts):
    rows = changed(rows_of(0, FEW), "cubic", status="failed", reason="ValueError: a | b", lower=None, correct_at_least=None)
    broken = row(model="max-of-4-v64-seed9.safetensors", status="failed", reason="unreadable", plan="p", version="0.1.0")
    older = [r for r in rows_of(1, FEW, version="0.0.9", plan="q", seconds_allowed=5.0, lower=0.1) if r["label"] == "cubic"]
    store_of(tmp_path, rows, [broken], rows_of(1, FEW), older)
    found = texts()
    assert "| max-of-4-v64-seed0.safetensors | `cubic` | ValueError: a \\| b |" in found["index.md"]
    assert "the model as a whole | unreadable" in found["index.md"] and "1 row of other sweeps" in found["index.md"]
    assert "`cubic` failed for 1" in found["k4.md"] and "0.9540 (1 of 2 models)" in found["k4.md"]


def test_an_unfinished_sweep_of_strange_models_has_pages(tmp_path):
    store_of(tmp_path, rows_of(0, FEW[:1], accuracy=None, singular_ratio=None, n_ctx=3), rows_of(1, FEW[:1], n_ctx=3))
    found = {
        path.name: path.read_text() for path in write_pages(tmp_path / "results", tmp_path / "pages", command="x") if path.suffix == ".md"
    }
    assert "nothing was published about this configuration" in found["agreement.md"] and "No statistics" in found["models.md"]
    assert "Unknown for 1 model." in found["k4.md"]


def test_without_results_the_message_says_what_to_do(tmp_path):
    with pytest.raises(ReportError, match=r"holds no results of a sweep; run 'compactproofs reproduce' first"):
        write_pages(tmp_path, tmp_path / "pages", command="compactproofs reproduce")


@pytest.mark.parametrize("text", ["[", "[1]", '{"models": "many"}', "null"])
def test_damaged_records_of_runs_are_named(tmp_path, text):
    store = store_of(tmp_path, rows_of(0, FEW[:1]))
    write_part(store / "run-k4-x.parquet", [row(kind="run", folder="/somewhere/k4", data=text)])
    with pytest.raises(ResultsError, match="remove the parts that begin with run-k4"):
        write_pages(store, tmp_path / "pages", command="x")
