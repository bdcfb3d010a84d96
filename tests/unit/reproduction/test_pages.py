"""Pages from synthetic sweeps: what they say is what the rows say, and nothing goes missing."""

import csv
import json
import re

import duckdb
import pytest

from compactproofs.errors import ReportError
from compactproofs.reproduction.pages import write_pages
from compactproofs.sweeps.schema import row
from synthetic_sweeps import ALL, BEST, CORRECT, TOTAL, changed, folder_of, rows_of

SOME = [s for s in ALL if s.family != "subcubic" or s.parameters["attention_error"] in ("svd", "exact_EQKE+max_diff_exact")]
FEW = [s for s in ALL if s.name == "cubic" or s.label == BEST]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    path = tmp_path_factory.mktemp("out")
    folder_of(path, *(rows_of(seed, SOME) for seed in range(4)))
    folder_of(path, *(rows_of(seed, SOME[:3], n_ctx=20, sampled=True) for seed in range(2)), name="k20")
    (path / "statistics").mkdir()
    statistics = [
        {"model": str(n), "key": "", "statistics": {"EQKEFirstSingularFloat": 7797.67 + n, "query_direction_std": None}} for n in (-1, 1)
    ]
    (path / "statistics" / "k4.json").write_text(json.dumps(statistics))
    wall = {"training_seconds": 600, "sweep_seconds": 10_000.0, "statistics_seconds": 5.0}
    (path / "timings.json").write_text(json.dumps({"k4": {"models": 4, "workers": 2, "peak_memory_bytes": 2**30, **wall}}))
    return path


@pytest.fixture(scope="module")
def pages(out, tmp_path_factory):
    into = tmp_path_factory.mktemp("pages") / "results"
    written = write_pages(out, into, command="compactproofs reproduce")
    assert sorted(written) == sorted(into.iterdir())
    return {path.name: path.read_text() for path in written if path.suffix != ".parquet"} | {"bounds.parquet": str(into / "bounds.parquet")}


@pytest.fixture
def texts(monkeypatch, tmp_path):
    """The pages about the results in the test's folder; without figures, which take long to draw."""
    monkeypatch.setattr("compactproofs.reproduction.pages.save_figures", lambda configuration, folder: [])

    def write():
        return {path.name: path.read_text() for path in write_pages(tmp_path, tmp_path / "pages", command="x") if path.suffix == ".md"}

    return write


def test_every_page_figure_and_datum_is_written(pages):
    for name in ("index.md", "k4.md", "k20.md", "models.md", "comparison.md", "agreement.md", "bounds.parquet", "summary.csv"):
        assert name in pages
    for figure in ("pareto", "singular-ratio", "unexplained", "accuracy"):
        assert pages[f"k4-{figure}.svg"].startswith("<?xml") and f"(k4-{figure}.svg)" in pages["k4.md"]


def test_links_between_pages_and_figures_lead_somewhere(pages):
    for name, text in pages.items():
        for link in re.findall(r"\]\(([^)#]+)\)", text) if name.endswith(".md") else ():
            assert link in pages or link.startswith(("../strategies/", "../explanation/")), (name, link)


def test_tables_have_as_many_cells_as_columns(pages):
    for name, text in pages.items():
        for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE) if name.endswith(".md") else ():
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1, (name, block)


def test_the_index_says_how_much_there_is(pages):
    text = pages["index.md"]
    assert "    compactproofs reproduce\n" in text
    assert "| [max-of-4, 64 tokens](k4.md) | 4 | 151 | 59 | 156 | 80 | 0 | 0 | 22 of 22 |" in text
    assert (
        "| max-of-4, 64 tokens | 4 | 10.0 min | 2.8 h | - | 5.0 s | - | 2 | 1.00 GiB |" in text
        and "did not record search and counting" in text
        and "Failures" not in text
    )


def test_what_has_no_bound_is_told(pages):
    assert "Every strategy gave a bound for every model." in pages["k4.md"]
    assert "(sampled)" in pages["k20.md"] and "`brute-force` infeasible for 2" in pages["k20.md"]
    assert "Normalised bounds" in pages["k4.md"] and "Normalised bounds" not in pages["k20.md"]


def test_the_data_hold_every_row(pages):
    source = f"FROM '{pages['bounds.parquet']}'"
    found = duckdb.sql(f"SELECT config, count(*), count(DISTINCT seed) {source} GROUP BY ALL ORDER BY ALL").fetchall()
    assert found == [("k20", 6, 2), ("k4", 236, 4)]
    columns = "correct_at_least, lower, status, accuracy_correct"
    count = int(0.953067 * 1.002 * TOTAL)
    cubic = duckdb.sql(f"SELECT {columns} {source} WHERE config = 'k4' AND seed = 2 AND label = 'cubic'").fetchall()
    assert cubic == [(str(count), count / TOTAL, "proven", str(CORRECT))]


def test_the_summary_has_a_row_for_each_strategy(pages):
    rows = list(csv.DictReader(pages["summary.csv"].splitlines()))
    assert len(rows) == 62 and {(r["config"], r["infeasible"]) for r in rows if r["label"] == "brute-force"} == {("k4", "0"), ("k20", "2")}
    cubic = next(r for r in rows if (r["config"], r["label"]) == ("k4", "cubic"))
    assert float(cubic["bound_mean"]) == pytest.approx(0.953067 * 1.0015, abs=1e-6) and cubic["published_bound_mean"] == "0.953067"


def test_models_stand_beside_the_published_statistics(pages):
    assert "| `EQKEFirstSingularFloat` | 7798" in pages["models.md"] and "1 of 1 mean within 2" in pages["models.md"]


@pytest.mark.slow
def test_the_same_results_give_the_same_pages(tmp_path):
    folder_of(tmp_path, *(rows_of(seed, FEW[1:]) for seed in range(3)))
    first, second = (write_pages(tmp_path, tmp_path / name, command="x") for name in "ab")
    for one, other in zip(first, second, strict=True):
        assert one.suffix == ".parquet" or one.read_text() == other.read_text(), one.name


def test_a_false_bound_is_an_alarm(tmp_path, texts):
    rows = changed(rows_of(0, FEW), "cubic", correct_at_least=str(CORRECT + 1))
    folder_of(tmp_path, changed(rows, BEST, "published", correct_at_least=str(TOTAL - 899)))
    found = texts()
    for name in ("index.md", "k4.md", "agreement.md"):
        assert "**1 bound must be false" in found[name]
    assert "1 of 1 value of the authors' computation exceed the truth, on 1 model" in found["agreement.md"]


def test_failures_and_repetitions_are_told(tmp_path, texts):
    rows = changed(rows_of(0, FEW), "cubic", status="failed", reason="ValueError: a | b", lower=None, correct_at_least=None)
    broken = row(model="max-of-4-v64-seed9.safetensors", status="failed", reason="unreadable", plan="p", version="0.1.0")
    older = [r for r in rows_of(1, FEW, version="0.0.9", plan="q", lower=0.1) if r["label"] == "cubic"]
    folder_of(tmp_path, rows, [broken], rows_of(1, FEW), older)
    found = texts()
    assert "| max-of-4-v64-seed0.safetensors | `cubic` | ValueError: a \\| b |" in found["index.md"]
    assert "the model as a whole | unreadable" in found["index.md"] and "1 row of other sweeps" in found["index.md"]
    assert "`cubic` failed for 1" in found["k4.md"] and "0.9540 (1 of 2 models)" in found["k4.md"]


def test_an_unfinished_sweep_of_strange_models_has_pages(tmp_path):
    folder_of(tmp_path, rows_of(0, FEW[:1], accuracy=None, singular_ratio=None, n_ctx=3), rows_of(1, FEW[:1], n_ctx=3))
    found = {path.name: path.read_text() for path in write_pages(tmp_path, tmp_path / "pages", command="x") if path.suffix == ".md"}
    assert "nothing was published about this configuration" in found["agreement.md"] and "No statistics" in found["models.md"]
    assert "Unknown for 1 model." in found["k4.md"]


def test_without_results_the_message_says_what_to_do(tmp_path):
    with pytest.raises(ReportError, match=r"holds no results of a sweep; run 'compactproofs reproduce' first"):
        write_pages(tmp_path, tmp_path / "pages", command="compactproofs reproduce")


@pytest.mark.parametrize(("name", "text"), [("timings.json", "["), ("timings.json", "[1]"), ("statistics/k4.json", '[{"model": 1}]')])
def test_broken_files_are_named(tmp_path, name, text):
    folder_of(tmp_path, rows_of(0, FEW[:1]))
    (tmp_path / "statistics").mkdir()
    (tmp_path / name).write_text(text)
    with pytest.raises(ReportError, match=name.split("/")[-1]):
        write_pages(tmp_path, tmp_path / "pages", command="x")
