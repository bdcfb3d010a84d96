"""Pages: what is stored can be shown again, what is damaged is refused, nothing escapes into the HTML."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compactproofs.errors import ReportError, ResultsError
from compactproofs.interpretation.explorer import EXPLORED, LARGEST_VOCABULARY, direct_tables, explore
from compactproofs.plots.distribution import QUANTITIES, distribution_table
from compactproofs.plots.static import save_figures
from compactproofs.reports.collect import collect, default_strategies, report_work, require_results_folder
from compactproofs.reports.page import page
from compactproofs.results.models import Failure, read_model, read_models
from compactproofs.results.published import published_for
from compactproofs.results.store import read_part, write_part
from compactproofs.strategies.base import Request
from compactproofs.strategies.registry import strategy
from compactproofs.tasks import MaxOfK
from models import adversarial_models, random_weights

FEW = [strategy(name) for name in ("brute-force", "cubic", "subcubic", "threshold-cubic")]


def collected(weights, name, out, strategies=FEW):
    return collect(weights, Path(f"/somewhere/{name}.safetensors"), out, report_work(strategies=strategies))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def results(store):
    return [collected(random_weights(seed, d_vocab=4, scale=0.8), f"model-{seed}", store) for seed in range(4)]


def test_everything_comes_back_from_the_store(results, store):
    found, failures = read_models(store)
    assert [m.name for m in found] == [f"model-{seed}" for seed in range(4)] and failures == []
    weights = random_weights(0, d_vocab=4, scale=0.8)
    for name, table in direct_tables(weights).items():
        assert np.array_equal(found[0].tables[name], table)
    assert found[0].sha256 == weights.sha256 and found[0].sizes["d_vocab"] == 4 and found[0].accuracy["method"] == "brute-force"
    assert page([found[0]]) == page([results[0]])


def test_what_is_there_is_not_proven_again(results, store, monkeypatch):
    monkeypatch.setattr("compactproofs.reports.collect.prove_model", None)
    assert page([collected(random_weights(1, d_vocab=4, scale=0.8), "model-1", store)]) == page([results[1]])


def test_results_that_are_not_there_are_refused(tmp_path):
    assert read_models(tmp_path) == ([], [])
    (tmp_path / "x.parquet").write_text("no part")
    with pytest.raises(ResultsError, match="cannot be read"):
        read_models(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(ReportError, match="is not ours"):
        require_results_folder(tmp_path / "mine", force=False)
    require_results_folder(tmp_path / "mine", force=True)


def put(name, new):
    return lambda data: data.__setitem__(name, new)


@pytest.mark.parametrize(
    ("kind", "change", "named"),
    [
        ("explorer", lambda data: (data.clear(), data.update(a=1)), "explorer.strategies"),
        ("explorer", lambda data: data["strategies"]["cubic"].update(lost=[["<img>"]]), "explorer.strategies"),
        ("explorer", lambda data: data["budget"][0].__setitem__(0, "<img>"), "explorer.budget"),
        ("statistics", put("EQKEFirstSingularFloat", "<img>"), "statistics"),
        ("mechanism", put("histograms", {"gap": {"bins": [0]}}), "mechanism.histograms"),
        ("mechanism", lambda data: data["ablations"].update(results=[{}]), "mechanism.ablations"),
        ("tables", put("EVOU", [[0.0] * 4] * 3), "tables.EVOU"),
        ("tables", put("EVOU", [["<img>"] * 4] * 4), "tables.EVOU"),
        ("tables", lambda data: data.pop("EU"), "tables.EU"),
    ],
)
def test_damaged_documents_are_refused_by_name(results, store, tmp_path, kind, change, named):
    rows = read_part(next(iter(store.glob("*.parquet"))))
    for row in rows:
        if row["kind"] == kind:
            data = json.loads(row["data"])
            change(data)
            row["data"] = json.dumps(data)
    write_part(tmp_path / "part.parquet", rows)
    with pytest.raises(ResultsError, match=rf"are damaged \({named}[ ,)]"):
        read_model(tmp_path / "part.parquet")


@pytest.mark.parametrize(
    ("column", "value"),
    [("flops", "many"), ("parameters", "["), ("parameters", "[" * 10**5), ("lower", float("nan")), ("assumptions", "{")],
)
def test_damaged_rows_are_refused(results, store, tmp_path, column, value):
    rows = [{**row, column: value} for row in read_part(next(iter(store.glob("*.parquet"))))]
    write_part(tmp_path / "part.parquet", rows)
    with pytest.raises(ResultsError, match="are damaged"):
        read_model(tmp_path / "part.parquet")


def test_the_page_stands_alone(results):
    text = page(results[:1])
    assert "<!doctype html>" in text and results[0].best["theorem"].split(",")[0] in text
    without_plotly = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r'(src|href)="(?!#)', without_plotly), "the page refers to something outside itself"


def test_names_cannot_inject_html(tmp_path):
    text = page([collected(random_weights(0, d_vocab=3), "<script><img src=x onerror=alert(1)>", tmp_path, FEW[:2])])
    assert "<img src=x" not in text and "&lt;img" in text


def test_nothing_from_files_reaches_the_page_as_it_is(results):
    paint, tag = "\x1b[31m\u202e\x00", '"><img src=x onerror=alert(1)><!--<script>'
    one = results[0]
    proofs = [{**proof, "label": proof["label"] + paint + tag, "theorem": paint + tag} for proof in one.proofs]
    mechanism = {**one.mechanism, "histograms": {f"{tag}{name}": found for name, found in one.mechanism["histograms"].items()}}
    texts = dict.fromkeys(("name", "sha256", "task"), tag + paint)
    changed = replace(one, **texts, assumptions=(tag + paint,), proofs=proofs, mechanism=mechanism)
    failed = [Failure(tag + paint, tag, None, paint + tag)]
    for text in (page([changed], failed), page([changed, results[1]], failed)):
        ours = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
        assert "<img src=x" not in ours and "<!--<script" not in ours
        assert not any(c in ours for c in paint if not c.isprintable()) and r"\x1b[31m" in ours


def test_results_of_a_sweep_have_a_page_without_what_was_not_measured(results):
    bare = [replace(m, statistics={}, mechanism={}, explorer={}, tables={}) for m in results]
    text = page(bare[:1])
    assert "Tightness against length" in text and 'id="mechanism"' not in text and 'id="explorer"' not in text
    unmeasured = [replace(m, accuracy=None, singular_ratio=None) for m in bare]
    assert "not measured" in page(unmeasured[:1]) and "Distribution over models" in page([*bare, *unmeasured])
    assert "What failed" in page(bare, [Failure("m", None, None, "no room")]) and "What failed" not in page(bare)


def test_explorer_counts_are_the_strategies(results):
    weights = random_weights(0, d_vocab=4, scale=0.8)
    proof = next(p for p in results[0].proofs if p["label"] == "cubic")
    lost = results[0].explorer["strategies"]["cubic"]["lost"]
    assert sum(map(sum, lost)) == pytest.approx(1 - int(proof["correct_at_least"]) / 64, abs=1e-6)
    assert set(EXPLORED) >= set(results[0].explorer["strategies"])
    for m, row in enumerate(results[0].explorer["examples"]):
        for q, example in enumerate(row):
            assert len(example) == weights.n_ctx and example[-1] == q and max(example) == m


@pytest.mark.long
@pytest.mark.parametrize(("name", "weights"), adversarial_models(), ids=lambda x: x if isinstance(x, str) else "")
def test_strange_models_have_a_page(name, weights, tmp_path):
    text = page([collected(weights, "strange", tmp_path)])
    assert "NaN" not in re.search(r'id="data">(.*?)</script>', text, flags=re.DOTALL).group(1)


def test_large_vocabularies_have_no_explorer():
    weights = random_weights(0, d_vocab=LARGEST_VOCABULARY + 1, n_ctx=2)
    assert explore(weights, [], Request(weights, MaxOfK(2, LARGEST_VOCABULARY + 1))) == {}


def test_many_models(results):
    rows = distribution_table(results)
    assert [row["quantity"] for row in rows] == list(QUANTITIES)
    accuracies = [r.true_accuracy for r in results]
    assert rows[0]["mean"] == pytest.approx(np.mean(accuracies)) and rows[0]["max"] == max(accuracies)
    assert "Distribution over models" in page(results)


@pytest.mark.long
def test_figures_for_papers(results, tmp_path):
    written = save_figures(results, tmp_path)
    assert {path.name for path in written} >= {"pareto.svg", "pareto.png", "tables.svg", "singular.png", "singular-ratio.svg", "losses.svg"}
    assert all(path.stat().st_size > 1000 for path in written)
    assert (tmp_path / "pareto.svg").read_text().startswith("<?xml")


def test_published_points():
    rows = published_for(4, 64)
    assert len(rows) == 102 and rows[1].label == "cubic" and rows[1].normalized == pytest.approx(0.953871)
    assert published_for(3, 5) == []


def test_default_strategies_are_everything_with_a_name():
    labels = {(s.label, s.variant) for s in default_strategies()}
    assert len(labels) == 1 + 1 + 150 + 100 + 10
