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
from compactproofs.plots.marks import family_of
from compactproofs.results.models import Failure, ModelResults
from compactproofs.text import printable
from compactproofs.version import __version__


def escaped(text: object) -> str:
    """Text for HTML: no tags, and no characters that cannot be seen."""
    return html.escape(printable(str(text)))


_NO_SCRIPT = "<noscript><p>Figures need JavaScript; theorems and tables do not.</p></noscript>"

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
        f'<nav aria-label="Sections">{navigation}</nav></header><main id="main">{_NO_SCRIPT}{body}</main>'
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
        if (losses := figures.losses(results))["data"]:
            drawn["losses"] = losses
        sections += [
            ("explorer", "Proof explorer", _explorer(results)),
            ("losses-section", "What each strategy loses, and where", _losses(results)),
        ]
    if results.ledger.get("blocks"):
        sections.append(("ledger", "The proof, block by block", _ledger(results)))
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
    return sections, {"figures": drawn, "explorer": explorer, "ledger": results.ledger or None}


def _many_models(models: list[ModelResults]) -> tuple[Sections, dict[str, Any]]:
    boxes = distribution.box_plots(models)
    drawn = {
        **{f"box-{i}": figure for i, figure in enumerate(boxes.values())},
        "singular-ratio": distribution.singular_ratio(models),
        "all-proofs": figures.pareto(models),
    }
    rows = distribution.distribution_table(models)
    columns = ["quantity", "mean", "std", "min", "25 %", "median", "75 %", "max", "typical"]
    cells = [[row[c] if isinstance(row[c], str) else f"{row[c]:.5g}" for c in columns] for row in rows]
    grid = "".join(_plot(f"box-{i}", name) for i, name in enumerate(boxes))
    ordered = sorted(models, key=distribution.proven_share)
    listed = [_listed(model) for model in ordered]
    numbers = {model.name: f"model-{number}" for number, model in enumerate(ordered)}
    return [
        (
            "distribution",
            "Distribution over models",
            _table(columns, cells, "Distributions over the models") + f'<div class="grid">{grid}</div>',
        ),
        ("worst", "The worst models", _worst(ordered)),
        ("length", "Tightness against length", _lengths(models)),
        (
            "ratio",
            "Bounds and the singular ratio",
            _plot("singular-ratio", "Best bound of each attention error against the ratio", tall=True),
        ),
        ("models", "Models", _table(_LISTED, listed, "Models, those of which least is proven first", anchor="model")),
    ], {"figures": drawn, "explorer": None, "ledger": None, "rows": numbers}


_LISTED = ["model", "accuracy", "proven at least", "not proven", "best proof", "seconds", "SHA-256"]
_WORST = 10


def _listed(model: ModelResults) -> list[str]:
    """What the list of models says about one."""
    accuracy = "not measured" if model.accuracy is None else f"{model.true_accuracy:.6f}"
    if model.best is None:
        return [model.name, accuracy, "nothing", "-", "-", "-", model.sha256[:16]]
    open_share = "-" if model.accuracy is None else f"{max(model.true_accuracy - model.best['lower'], 0.0):.2e}"
    return [
        model.name,
        accuracy,
        f"{model.best['lower']:.6f}",
        open_share,
        model.best["label"],
        f"{model.best['seconds']:.2f}",
        model.sha256[:16],
    ]


def _worst(ordered: list[ModelResults]) -> str:
    """The models of which least is proven, with links to their rows."""
    items = "".join(
        f'<li><a href="#model-{number}">{escaped(model.name)}</a>: '
        + ("nothing is proven" if model.best is None else f"{model.best['lower']:.6f} by {escaped(model.best['label'])}")
        + "</li>"
        for number, model in enumerate(ordered[:_WORST])
    )
    return f"<p>The best proof of each, over the accuracy of the model; the least first.</p><ol>{items}</ol>"


def _lengths(models: list[ModelResults]) -> str:
    sampled = any(m.accuracy is not None and m.accuracy["method"] != "brute-force" for m in models)
    note = "<p>Accuracies that were measured in a sample are estimates: a bound over one of them can exceed 1.</p>" if sampled else ""
    return _key(models) + note + _plot("all-proofs", "Every strategy on every model: bound over accuracy against FLOPs", tall=True)


def _key(models: Sequence[ModelResults]) -> str:
    """What the marks are, as far as they are there."""
    found = [p for model in models for p in model.proofs if p["status"] in ("proven", "computed")]
    published, brute = [p for p in found if family_of(p) == "published"], [p for p in found if p["family"] == "brute-force"]
    crosses = figures.published_beside(models)
    first = "Filled marks are proofs" if published or crosses else "Every mark is a proof"
    text = [f"{first}: further left is shorter, higher is tighter."]
    if published:
        text.append("Hollow marks are what the published code computes for the same strategies, which is not a proof.")
    if crosses:
        text.append(
            f"Thin crosses are the paper's means over {max(row.seeds for row in crosses)} other models of this size. "
            "They stand further right than our marks of the same strategies, though both count by the paper's conventions: "
            "its programs do more for the same argument "
            "(a softmax for each case where one threshold is enough; a check of singular vectors that our proofs do not need)."
        )
    if brute and len(brute) < len(found):
        length = f"{brute[0]['flops']:.2g}"
        text.append(f"Brute force ({length} FLOPs) would squeeze all others together and is hidden: choose it in the legend to see it.")
    return f"<p>{escaped(' '.join(text))}</p>"


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
    return _table(["model", "strategy", "reason"], rows, "What failed, and why") + more


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
    return (
        _key(models)
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
        '<div><p id="corrected" class="note" role="status"></p><div id="details" aria-live="polite"></div>'
        '<figure><div id="harm" class="plot" role="img" aria-label="Harm of each token"></div>'
        "<figcaption>Harm of each token where it harms most; below zero it helps. One is about what a copy of the label takes off"
        "</figcaption></figure></div></div>"
    )


def _ledger(results: ModelResults) -> str:
    blocks = results.ledger["blocks"]
    open_blocks = sum(1 for block in blocks if block["left"])
    return (
        "<p>The proof of <code>threshold-best</code> as it is kept and checked. It splits all sequences into blocks, by the right output "
        "(the label) and the last token (the query), and these by how often some tokens occur. In each, every other output is shown "
        "harmless or covered by a term, which counts the sequences in which its harms add up to zero or more. "
        f"Of {len(blocks)} blocks, {open_blocks} leave something unproven; a block that is missing is given up. "
        "Choose a block, or click it in the map.</p>"
        '<form class="controls" onsubmit="return false"><label>Block <select id="block"></select></label></form>'
        '<div class="split"><figure><div id="blocks" class="plot tall" role="img" aria-label="What is left of each block, by label and '
        'query; the list of blocks says the same"></div><figcaption>What each block leaves unproven, as a power of ten of all '
        "sequences; pale: nothing</figcaption></figure>"
        '<div id="block-details" class="panel" aria-live="polite"></div></div>'
    )


def _losses(results: ModelResults) -> str:
    lost = {label: sum(map(sum, found["lost"])) for label, found in results.explorer["strategies"].items()}
    everything = [label for label, loss in lost.items() if not loss]
    unlost = f" Nothing is lost by {escaped(', '.join(everything))}." if everything else ""
    text = (
        "Strategies lose sequences with large labels, simply because most sequences have one; what distinguishes them is how much. "
        f"Where a line has a gap, nothing is lost.{unlost}"
    )
    drawn = _plot("losses", "Fraction of all sequences that each strategy does not prove, by largest token", tall=True)
    return f"<p>{text}</p>" + (drawn if len(everything) < len(lost) else "")


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
    grid += "".join(_plot(name, text, tall=name == "ablations") for name, text in vectors.items())
    text = "The five tables replace the network exactly: scores are EQKE + EQKP, logits EU plus attended EVOU + PVOU."
    return f'<p>{text}</p><div class="grid">{grid}</div>'


def _measurements(values: dict[str, float | None]) -> str:
    parts = []
    for title, meanings in SECTIONS.items():
        rows = [[name, "-" if (x := values[name]) is None else f"{x:.6g}", text] for name, text in meanings.items() if name in values]
        if rows:
            parts.append(f"<h3>{escaped(title)}</h3>" + _table(["measurement", "value", "meaning"], rows, title))
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
    return _table(columns, rows, "All proofs, the tightest first")


def _table(columns: list[str], rows: list[list[str]], caption: str, *, anchor: str = "") -> str:
    """A table, whose rows can be linked to if they have an anchor.

    On narrow screens a row is a small card, by styles alone: the roles say that it is still a table.
    """
    head = "".join(f'<th scope="col" role="columnheader">{escaped(c)}</th>' for c in columns)
    names = [escaped(column) for column in columns]
    body = "".join(
        f'<tr role="row"{_anchored(anchor, number)}>'
        + "".join(f'<td role="cell" data-label="{name}">{escaped(cell)}</td>' for name, cell in zip(names, row, strict=True))
        + "</tr>"
        for number, row in enumerate(rows)
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(caption)}">'
        f'<table role="table"><caption>{escaped(caption)}</caption><thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table></div>'
    )


def _anchored(anchor: str, number: int) -> str:
    return f' id="{anchor}-{number}" tabindex="-1"' if anchor else ""


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
        raise MissingExtraError("a report needs plotly", "report")


def _plotly() -> str:
    require_plotly()
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
