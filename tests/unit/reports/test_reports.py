"""Result files and pages: what is written can be read, what is broken is refused, nothing escapes into the HTML."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from compactproofs.reports.distribution import QUANTITIES, distribution_table
from compactproofs.reports.explorer import LARGEST_VOCABULARY, explore
from compactproofs.reports.results import ModelResults, read_all, require_results_folder
from compactproofs.reports.static import save_figures
from safetensors.numpy import save_file

from compactproofs.errors import ReportError
from compactproofs.model.files import write_atomically
from compactproofs.reports import results as results_module
from compactproofs.reports.collect import EXPLORED, collect, default_strategies
from compactproofs.reports.page import page
from compactproofs.results.published import published_for
from compactproofs.strategies.base import Request
from compactproofs.strategies.registry import strategy
from compactproofs.tasks import MaxOfK
from models import adversarial_models, random_weights

FEW = [strategy(name) for name in ("brute-force", "cubic", "subcubic", "threshold-cubic")]


@pytest.fixture(scope="module")
def results():
    return [collect(random_weights(seed, d_vocab=4, scale=0.8), f"model-{seed}", strategies=FEW) for seed in range(4)]


def test_results_survive_writing(results, tmp_path):
    results[0].write(tmp_path / "a")
    found = ModelResults.read(tmp_path / "a")
    for part in ("summary", "proofs", "explorer", "measurements"):
        assert getattr(found, part) == json.loads(json.dumps(getattr(results[0], part)))
    assert all(np.array_equal(found.tables[name], results[0].tables[name]) for name in ("EQKE", "EQKP", "EVOU", "PVOU", "EU"))
    assert page([found]) == page([results[0]])


def test_broken_results_are_refused(results, tmp_path):
    with pytest.raises(ReportError, match="holds no results"):
        read_all(tmp_path)
    results[0].write(tmp_path / "a")
    (tmp_path / "a" / "proofs.json").write_text("[")
    with pytest.raises(ReportError, match="does not hold the results"):
        read_all(tmp_path)
    results[0].write(tmp_path / "a")
    (tmp_path / "a" / "summary.json").write_text('{"format": "other"}')
    with pytest.raises(ReportError, match="another format"):
        read_all(tmp_path / "a")


def test_results_that_were_not_written_to_their_end_are_refused_and_can_be_written_again(results, tmp_path, monkeypatch):
    folder = tmp_path / "a"
    results[0].write(folder)
    for allowed in range(1, 6):
        calls = iter(range(allowed))

        def failing(path, data, calls=calls):
            if next(calls, None) is None:
                raise OSError("no space left on device")
            write_atomically(path, data)

        with monkeypatch.context() as patch:
            patch.setattr(results_module, "write_atomically", failing)
            with pytest.raises(OSError, match="no space"):
                results[1].write(folder)
        with pytest.raises(ReportError, match="not written to their end"):
            read_all(tmp_path)
        require_results_folder(folder, force=False)
    results[1].write(folder)
    assert read_all(tmp_path)[0].summary["name"] == "model-1"


@pytest.mark.parametrize("part", ["proofs", "measurements"])
def test_results_of_two_models_in_one_folder_are_refused(results, tmp_path, part):
    for number in (0, 1):
        results[number].write(tmp_path / str(number))
    (tmp_path / "1" / f"{part}.json").rename(tmp_path / "0" / f"{part}.json")
    with pytest.raises(ReportError, match=f"{part} are about another model than summary"):
        ModelResults.read(tmp_path / "0")


def remove(name):
    return lambda value: value.pop(name)


def put(name, new):
    return lambda value: value.__setitem__(name, new)


@pytest.mark.parametrize(
    ("part", "change", "named"),
    [
        ("summary", remove("name"), "summary.name"),
        ("summary", put("accuracy", None), "summary.accuracy"),
        ("summary", put("accuracy", {"accuracy": "1"}), "summary.accuracy"),
        ("summary", put("d_vocab", "4"), "summary.d_vocab"),
        ("summary", put("n_ctx", True), "summary.n_ctx"),
        ("summary", put("theorem", 3), "summary.theorem"),
        ("summary", put("sha256", ["a"]), "summary.sha256"),
        ("proofs", lambda proofs: proofs[1].update(lower="0.5"), r"proofs\[1\].lower"),
        ("proofs", lambda proofs: proofs[0].update(flops=float("nan")), r"proofs\[0\].flops"),
        ("proofs", lambda proofs: proofs[0].pop("variant"), r"proofs\[0\].variant"),
        ("proofs", lambda proofs: proofs.append(7), r"proofs\[4\]"),
        ("explorer", lambda explorer: (explorer.clear(), explorer.update(a=1)), "explorer.strategies"),
        ("explorer", lambda explorer: explorer["strategies"]["cubic"].update(lost=[["<img>"]]), "explorer.strategies"),
        ("explorer", lambda explorer: explorer["budget"][0].__setitem__(0, "<img>"), "explorer.budget"),
        ("measurements", put("statistics", []), "measurements.statistics"),
        ("measurements", put("histograms", {"gap": {"bins": [0]}}), "measurements.histograms"),
        ("measurements", lambda found: found["ablations"].update(results=[{}]), "measurements.ablations"),
    ],
)
def test_damaged_results_are_refused_by_name(results, tmp_path, part, change, named):
    folder = tmp_path / "a"
    results[0].write(folder)
    content = json.loads((folder / f"{part}.json").read_text())
    change(content)
    (folder / f"{part}.json").write_text(json.dumps(content))
    with pytest.raises(ReportError, match=rf"the results are damaged \({named}[ ,)]"):
        read_all(folder)


@pytest.mark.parametrize("value", [np.zeros((4, 3), np.float32), np.zeros(4, np.float32), np.full((4, 4), np.nan, np.float32)])
def test_damaged_tables_are_refused_by_name(results, tmp_path, value):
    results[0].write(tmp_path)
    save_file({**{name: np.asarray(table) for name, table in results[0].tables.items()}, "EVOU": value}, tmp_path / "tables.safetensors")
    with pytest.raises(ReportError, match=r"the results are damaged \(EVOU\)"):
        read_all(tmp_path)


def test_what_is_nested_without_end_is_refused(results, tmp_path):
    results[0].write(tmp_path)
    (tmp_path / "proofs.json").write_text("[" * 10**5)
    with pytest.raises(ReportError, match="does not hold the results of a model"):
        read_all(tmp_path)


def test_the_page_stands_alone(results):
    text = page(results[:1])
    assert "<!doctype html>" in text and results[0].summary["theorem"].split(",")[0] in text
    without_plotly = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r'(src|href)="(?!#)', without_plotly), "the page refers to something outside itself"


def test_names_cannot_inject_html():
    results = collect(random_weights(0, d_vocab=3), "</script><img src=x onerror=alert(1)>", strategies=FEW[:2])
    text = page([results])
    assert "<img src=x" not in text and "&lt;img" in text


def test_nothing_from_files_reaches_the_page_as_it_is(results):
    paint, tag = "\x1b[31m\u202e\x00", '"><img src=x onerror=alert(1)><!--<script>'
    one = results[0]
    proofs = [{**proof, "label": proof["label"] + paint + tag} for proof in one.proofs]
    measured = {**one.measurements, "histograms": {f"{tag}{name}": found for name, found in one.measurements["histograms"].items()}}
    texts = dict.fromkeys(("name", "sha256", "task", "theorem", "best"), tag + paint)
    summary = {**one.summary, **texts, "assumptions": [tag + paint]}
    changed = replace(one, summary=summary, proofs=proofs, measurements=measured)
    for text in (page([changed]), page([changed, results[1]])):
        ours = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
        assert "<img src=x" not in ours and "<!--<script" not in ours
        assert not any(c in ours for c in paint if not c.isprintable()) and r"\x1b[31m" in ours


def test_explorer_counts_are_the_strategies(results):
    weights = random_weights(0, d_vocab=4, scale=0.8)
    proof = next(p for p in results[0].proofs if p["label"] == "cubic")
    lost = results[0].explorer["strategies"]["cubic"]["lost"]
    assert sum(map(sum, lost)) == pytest.approx(1 - int(proof["correct_at_least"]) / 64, abs=1e-6)
    assert set(EXPLORED) >= set(results[0].explorer["strategies"])
    for m, row in enumerate(results[0].explorer["examples"]):
        for q, example in enumerate(row):
            assert len(example) == weights.n_ctx and example[-1] == q and max(example) == m


@pytest.mark.parametrize(("name", "weights"), adversarial_models(), ids=lambda x: x if isinstance(x, str) else "")
def test_strange_models_have_a_page(name, weights):
    text = page([collect(weights, name, strategies=FEW)])
    assert "NaN" not in re.search(r'id="data">(.*?)</script>', text, flags=re.DOTALL).group(1)


def test_large_vocabularies_have_no_explorer():
    weights = random_weights(0, d_vocab=LARGEST_VOCABULARY + 1, n_ctx=2)
    assert explore(weights, [], Request(weights, MaxOfK(2, LARGEST_VOCABULARY + 1))) == {}


def test_many_models(results, tmp_path):
    rows = distribution_table(results)
    assert [row["quantity"] for row in rows] == list(QUANTITIES)
    accuracies = [r.summary["accuracy"]["accuracy"] for r in results]
    assert rows[0]["mean"] == pytest.approx(np.mean(accuracies)) and rows[0]["max"] == max(accuracies)
    assert "Distribution over models" in page(results)
    for number, one in enumerate(results):
        one.write(tmp_path / str(number))
    assert len(read_all(tmp_path)) == 4


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
    assert len(labels) == 1 + 1 + 150 + 100 + 7
