"""One HTML file that opens anywhere: styles, script, plotly and all data inlined."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from compactproofs.errors import MissingExtraError
from compactproofs.interpretation.explanations import SECTIONS
from compactproofs.plots import distribution
from compactproofs.plots import interactive as figures
from compactproofs.results.models import Failure, ModelResults
from compactproofs.text import printable
from compactproofs.version import __version__


def escaped(text: object) -> str:
    """Text for HTML: no tags, and no characters that cannot be seen."""
    return html.escape(printable(str(text)))


Sections = list[tuple[str, str, str]]
"""Identifier, title and HTML of each section."""


def page(models: list[ModelResults], failures: Sequence[Failure] = ()) -> str:
    """The whole report: of one model with everything that is known, of several with distributions; and what failed."""
    sections, data = _one_model(models[0]) if len(models) == 1 else _many_models(models)
    if failures:
        sections.append(("failures", "What failed", _failures(failures)))
    title = models[0].name if len(models) == 1 else f"{len(models)} models"
    navigation = "".join(f'<a href="#{name}">{escaped(text)}</a>' for name, text, _ in sections)
    body = "".join(f'<section id="{name}"><h2>{escaped(text)}</h2>{content}</section>' for name, text, content in sections)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="generator" content="compactproofs {__version__}">'
        f"<title>compactproofs: {escaped(title)}</title><style>{_asset('report.css')}</style></head><body>"
        f'<a class="skip" href="#main">Skip to content</a><header><p class="brand">compactproofs</p><h1>{escaped(title)}</h1>'
        f'<nav aria-label="Sections">{navigation}</nav></header><main id="main">{body}</main>'
        f'<script type="application/json" id="data">{_inline(data)}</script>'
        f"<script>{_plotly()}</script><script>{_asset('report.js')}</script>"
        "</body></html>"
    )


def _one_model(results: ModelResults) -> tuple[Sections, dict[str, Any]]:
    drawn: dict[str, Any] = {"pareto": figures.pareto([results]), "unexplained": figures.unexplained([results])}
    if results.tables:
        drawn |= {f"table-{name}": figure for name, figure in figures.table_heatmaps(results).items()}
        drawn |= {name.replace(" ", "-"): figure for name, figure in figures.singular_vectors(results).items()}
    measured = figures.histograms(results.mechanism)
    drawn |= {f"histogram-{name}": figure for name, (_, figure) in measured.items()}
    ablations = figures.ablations(results.mechanism)
    sections: Sections = [("theorem", "The theorem", _summary(results)), ("length", "Tightness against length", _length([results]))]
    if results.explorer:
        drawn["losses"] = figures.losses(results)
        sections += [
            ("explorer", "Proof explorer", _explorer(results)),
            ("losses-section", "What each strategy loses, and where", _losses()),
        ]
    captions = {f"histogram-{name}": caption for name, (caption, _) in measured.items()}
    if ablations is not None:
        drawn["ablations"] = ablations
        captions["ablations"] = "Accuracy with tables set to zero: what the model needs"
    if results.tables:
        sections.append(("mechanism", "The mechanism", _mechanism(captions)))
    if results.statistics:
        sections.append(("measurements", "Measurements", _measurements(results.statistics)))
    sections.append(("proofs", "All proofs", _proofs(results.proofs)))
    explorer = {**results.explorer, "n_ctx": results.sizes["n_ctx"]} if results.explorer else None
    return sections, {"figures": drawn, "explorer": explorer}


def _many_models(models: list[ModelResults]) -> tuple[Sections, dict[str, Any]]:
    boxes = {f"box-{i}": figure for i, figure in enumerate(distribution.box_plots(models).values())}
    drawn = {**boxes, "singular-ratio": distribution.singular_ratio(models), "all-proofs": figures.pareto(models)}
    rows = distribution.distribution_table(models)
    columns = ["quantity", "mean", "std", "min", "25 %", "median", "75 %", "max", "typical"]
    cells = [[row[c] if isinstance(row[c], str) else f"{row[c]:.5g}" for c in columns] for row in rows]
    grid = "".join(_plot(f"box-{i}", name) for i, name in enumerate(distribution.QUANTITIES))
    listed = [
        [m.name, "-" if m.accuracy is None else f"{m.true_accuracy:.6f}", "-" if m.best is None else m.best["label"], m.sha256[:16]]
        for m in models
    ]
    return [
        ("distribution", "Distribution over models", _table(columns, cells) + f'<div class="grid">{grid}</div>'),
        ("length", "Tightness against length", _lengths(models)),
        (
            "ratio",
            "Bounds and the singular ratio",
            _plot("singular-ratio", "Best bound of each attention error against the ratio", tall=True),
        ),
        ("models", "Models", _table(["model", "accuracy", "best proof", "SHA-256"], listed)),
    ], {"figures": drawn, "explorer": None}


def _lengths(models: list[ModelResults]) -> str:
    sampled = any(m.accuracy is not None and m.accuracy["method"] != "brute-force" for m in models)
    note = "<p>Accuracies that were measured in a sample are estimates: a bound over one of them can exceed 1.</p>" if sampled else ""
    return note + _plot("all-proofs", "Every proof of every model: bound over accuracy", tall=True)


def _summary(results: ModelResults) -> str:
    sizes = ", ".join(f"{name} {results.sizes[name]}" for name in ("d_vocab", "d_model", "d_head", "n_ctx"))
    assumed = "".join(f"<li>{escaped(text)}</li>" for text in results.assumptions)
    proven = {p["label"]: p for p in results.proofs if p["status"] == "proven"}
    cards = "".join(_card(title, proven.get(label)) for title, label in _HEADLINES)
    theorem = "No strategy could be run." if results.best is None else results.best["theorem"] or results.best["label"]
    return (
        f'<p class="theorem">{escaped(theorem)}</p>'
        f"<p>Task: {escaped(results.task)}. True accuracy: {_truth(results)}. {escaped(sizes)}. Weights {escaped(results.sha256[:16])}.</p>"
        f'<div class="cards">{cards}</div>' + (f"<p>Assumed:</p><ul>{assumed}</ul>" if assumed else "")
    )


def _truth(results: ModelResults) -> str:
    if results.accuracy is None:
        return "not measured"
    if results.accuracy["method"] == "brute-force":
        return f"exactly {results.true_accuracy:.8f}"
    low, high = results.accuracy["interval"]
    return f"between {low:.6f} and {high:.6f} with {100 * results.accuracy['confidence']:g} % confidence (a sample)"


def _failures(failures: Sequence[Failure]) -> str:
    rows = [[f.model, f.label or "(whole model)", f.reason] for f in failures[:_MOST_FAILURES]]
    more = "" if len(failures) <= _MOST_FAILURES else f"<p>And {len(failures) - _MOST_FAILURES} more.</p>"
    return _table(["model", "strategy", "reason"], rows) + more


_MOST_FAILURES = 100

_HEADLINES = (
    ("best", "threshold-best"),
    ("pooled threshold", "threshold-cubic-pooled"),
    ("the paper's cubic", "cubic"),
    ("best subcubic", "subcubic/max_diff_exact/exact_EQKE+max_diff_exact/envelope"),
)


def _card(title: str, proof: dict[str, Any] | None) -> str:
    if proof is None:
        return ""
    return (
        f'<div class="card"><p>{escaped(title)}</p><p class="number">{proof["lower"]:.6f}</p>'
        f"<p>{escaped(proof['label'])}<br>{proof['flops']:.3g} FLOPs</p></div>"
    )


def _length(models: Sequence[ModelResults]) -> str:
    of_the_paper = all(model.of_the_papers_kind for model in models)
    crosses = " Hollow marks are what the published code computes, which is not a proof; thin crosses are the paper's means."
    return (
        f"<p>Every {'filled ' if of_the_paper else ''}mark is a proof. Further left is shorter, higher is tighter."
        f"{crosses if of_the_paper else ''} Brute force is far to the right: double-click the figure to see it.</p>"
        + _plot("pareto", "Bound over true accuracy against FLOPs", tall=True)
        + _plot("unexplained", "Unexplained dimensions against FLOPs", tall=True)
    )


def _explorer(results: ModelResults) -> str:
    options = "".join(f"<option>{escaped(label)}</option>" for label in results.explorer["strategies"])
    last = results.sizes["d_vocab"] - 1
    return (
        "<p>For a strategy: how many of the sequences with a given largest token (the label) and last token (the query) are proven "
        "right. Click a cell, or type the two tokens.</p>"
        f'<form class="controls" onsubmit="return false"><label>Strategy <select id="strategy">{options}</select></label>'
        f'<label>Label <input id="label" type="number" min="0" max="{last}" value="{last}"></label>'
        f'<label>Query <input id="query" type="number" min="0" max="{last}" value="{last // 2}"></label></form>'
        '<div class="split"><figure><div id="map" class="plot tall" role="img" aria-label="Certified fraction by label and query"></div>'
        "<figcaption>Fraction of sequences proven, by label and query</figcaption></figure>"
        '<div><div id="details" aria-live="polite"></div><figure><div id="harm" class="plot"></div>'
        "<figcaption>Harm of each token, in copies of the label; below zero it helps</figcaption></figure></div></div>"
    )


def _losses() -> str:
    return (
        "<p>Strategies lose sequences with large labels, simply because most sequences have one; what distinguishes them is how much.</p>"
        + _plot("losses", "Fraction of all sequences that each strategy does not prove, by largest token", tall=True)
    )


def _mechanism(captions: dict[str, str]) -> str:
    tables = {
        "EQKE": "Attention score of a key token for a query token: it should grow with the key",
        "EQKP": "Attention score of a position, same scale: it should be small",
        "EVOU": "What attending to a token adds to each output: a strong diagonal copies",
        "PVOU": "What attending to a position adds, same scale: it should be small",
        "EU": "What the query token adds directly: noise that the diagonal must beat",
    }
    grid = "".join(_plot(f"table-{name}", f"{name}. {text}") for name, text in tables.items())
    vectors = {
        "singular-values": "Singular values of EQKE: one large value means attention is one number per query times one per key",
        "query-directions": "Query side: how strongly each query attends at all",
        "size-directions": "Key side: the order that the model gives to tokens",
        **captions,
    }
    grid += "".join(_plot(name, text) for name, text in vectors.items())
    text = "The five tables replace the network exactly: scores are EQKE + EQKP, logits EU plus attended EVOU + PVOU."
    return f'<p>{text}</p><div class="grid">{grid}</div>'


def _measurements(values: dict[str, float | None]) -> str:
    parts = []
    for title, meanings in SECTIONS.items():
        rows = [[name, "-" if (x := values[name]) is None else f"{x:.6g}", text] for name, text in meanings.items() if name in values]
        if rows:
            parts.append(f"<h3>{escaped(title)}</h3>" + _table(["measurement", "value", "meaning"], rows))
    return "".join(parts) or "<p>None were made.</p>"


def _proofs(proofs: list[dict[str, Any]]) -> str:
    columns = ["strategy", "status", "lower", "upper", "FLOPs", "unexplained", "seconds"]
    rows = [
        [
            p["label"] + (" (published)" if p["variant"] == "published" else ""),
            p["status"],
            "-" if p["reason"] else f"{p['lower']:.6f}",
            "-" if p["upper"] is None or p["reason"] else f"{p['upper']:.6f}",
            f"{p['flops']:.3g}",
            str(p["unexplained_dimensions"]),
            f"{p['seconds']:.3f}",
        ]
        for p in sorted(proofs, key=lambda p: -p["lower"])
    ]
    return _table(columns, rows)


def _table(columns: list[str], rows: list[list[str]]) -> str:
    head = "".join(f'<th scope="col">{escaped(c)}</th>' for c in columns)
    body = "".join("<tr>" + "".join(f"<td>{escaped(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _plot(name: str, caption: str, *, tall: bool = False) -> str:
    text, figure = escaped(caption), escaped(name)
    size = "plot tall" if tall else "plot"
    drawn = f'<div class="{size}" data-figure="{figure}" role="img" aria-label="{text}"></div>'
    return f"<figure>{drawn}<figcaption>{text}</figcaption></figure>"


def _inline(data: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return (files("compactproofs") / "reports" / "assets" / name).read_text(encoding="utf-8")


def require_plotly() -> None:
    """Say how to get plotly if it is not there."""
    if find_spec("plotly") is None:
        raise MissingExtraError("a report needs plotly: pip install 'compactproofs[report]'")


def _plotly() -> str:
    require_plotly()
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
