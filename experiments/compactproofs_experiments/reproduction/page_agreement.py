"""The page that says where we agree with the published results, where not, and why. Its numbers and verdicts are computed."""

from __future__ import annotations

from collections.abc import Sequence

from compactproofs.strategies.subcubic import PUBLISHED_QUERY_HANDLINGS
from compactproofs_experiments.reproduction.agreement import Agreement, pairs, reach
from compactproofs_experiments.reproduction.comparison import FAR, NEAR, NEGLIGIBLE
from compactproofs_experiments.reproduction.disagreement import Disagreement
from compactproofs_experiments.reproduction.markdown import (
    NOTHING,
    count,
    joined,
    listed,
    mean_std,
    number,
    paragraph,
    plus_minus,
    signed,
    signed_number,
    table,
)
from compactproofs_experiments.reproduction.summaries import spread

_ERRATA = "../strategies/errata.md"
_FEW = 3


def agreement_page(found: Sequence[Agreement]) -> str:
    """The whole page."""
    short = [f"- **{a.configuration.title}** ({count(len(a.configuration.models), 'model')}): {a.in_short}" for a in found]
    sections = [
        "# Agreement with the published results",
        "The numbers and verdicts of this page are computed from the results; nothing was adjusted by hand.",
        "## In short",
        "\n".join(short),
        _means(found),
        _differences(found),
        _published_as_bounds(found),
        _repairs(found),
        _best(found),
        _lengths(found),
        soundness_section(found),
    ]
    return joined(sections)


def _means(found: Sequence[Agreement]) -> str:
    rows = [_means_row(a) for a in found if a.compared]
    columns = ["configuration", "strategies compared", f"within {FAR:g} standard errors", f"within {NEAR:g} std"]
    text = paragraph(f"""
        "Ours" are the values of the authors' computation on our models, trained with their recipe from seeds of our own. A standard error
        is that of the difference of the two means: beyond {FAR:g} of them chance is an unlikely explanation, and a mean counts as
        different, unless the difference is below {NEGLIGIBLE}. Standard deviations are the published ones, over models. All strategies one
        by one: [comparison](comparison.md).
    """)
    columns += ["furthest, in std", "largest difference"]
    return joined(["## Means beside published means", text, table(columns, rows)]) if rows else ""


def _means_row(a: Agreement) -> list[str]:
    visible = [c for c in a.compared if abs(c.difference or 0.0) >= NEGLIGIBLE]
    furthest = max(visible or a.compared, key=lambda c: abs(c.distance or 0.0))
    largest = max(a.compared, key=lambda c: abs(c.difference or 0.0))
    return [
        a.configuration.title,
        f"{len(a.compared)} of {len(a.comparisons)}",
        f"{a.agreeing} of {len(a.compared)}",
        f"{sum(c.near for c in a.compared)} of {len(a.compared)}",
        signed(furthest.distance),
        signed_number(largest.difference or 0.0),
    ]


def _differences(found: Sequence[Agreement]) -> str:
    if not any(a.compared for a in found):
        return ""
    lines = [f"- **{a.configuration.title}**: {_difference(group)}" for a in found for group in a.disagreements]
    return joined([f"## Where means differ by more than {FAR:g} standard errors", "\n".join(lines) or "Nowhere."])


def _difference(group: Disagreement) -> str:
    which = group.description if group.handling is None else f"{len(group.members)} of {group.described} with {group.description}"
    differences = _range([signed_number(pick(m.difference or 0.0 for m in group.members)) for pick in (min, max)])
    errors = [m.standard_errors for m in group.members if m.standard_errors is not None]
    far = f" ({_range([signed(min(errors)), signed(max(errors))])} standard errors)" if errors else ""
    return f"{which}. We get {'more' if group.higher else 'less'}: {differences}{far}. Cause: {group.cause}."


def _range(ends: list[str]) -> str:
    return " to ".join(dict.fromkeys(ends))


def _published_as_bounds(found: Sequence[Agreement]) -> str:
    rows = [
        [
            a.configuration.title,
            *(f"{n:,}" for n in (a.published.bounds, a.published.against_exact, a.published.against_certificate, a.published.exceeding)),
            str(a.published.models),
            listed([f"`{label}`" for label in a.published.labels]) if 0 < len(a.published.labels) <= _FEW else str(len(a.published.labels)),
        ]
        for a in found
        if a.published.bounds
    ]
    if not rows:
        return ""
    false = sum(a.published.exceeding for a in found)
    checked = sum(a.published.against_exact + a.published.against_certificate for a in found)
    verdict = "No value of the authors' computation exceeds what is known of the truth here. That does not make it a proof:"
    if not checked:
        verdict = "Nothing is known here that the authors' computation could be compared with."
    if false:
        verdict = f"Of the values of the authors' computation {false:,} {'exceeds' if false == 1 else 'exceed'} the truth."
    text = paragraph(f"""
        {verdict} `mean_query+diff` as published is unsound (erratum [A2]({_ERRATA})), and all of it is floating-point arithmetic without
        rounding control (B8). Compared in exact integers, with the exact number of correct sequences where every sequence was evaluated,
        and with the smallest proven upper bound where it is not trivial.
    """)
    columns = ["configuration", "values", "against the exact count", "against a certificate", "too large", "on models", "strategies "]
    return joined(["## Are the published computations bounds in practice?", text, table(columns, rows)])


def _repairs(found: Sequence[Agreement]) -> str:
    rows = []
    for a in found:
        for handling in PUBLISHED_QUERY_HANDLINGS:
            both = pairs(a.configuration, handling)
            larger = [pair for pair in both if pair.published > pair.repaired]
            if both:
                counts = (len(both), len(larger), len({pair.model for pair in larger}), len({pair.label for pair in larger}))
                gain = spread(pair.repaired - pair.published for pair in both)
                rows.append([a.configuration.title, f"`{handling}`", *(f"{n:,}" for n in counts), plus_minus(gain)])
    text = paragraph(f"""
        The repaired strategies count more where the published ones are needlessly weak (A1, A5, A6, A7) and less where they are unsound
        or not rigorous (A2, B4, B8): see the [errata]({_ERRATA}). A pair is one model and one strategy. A published value above the
        repaired one need not be false, but the published argument made sound does not prove it.
    """)
    columns = ["configuration", "query handling ", "pairs", "published larger", "on models", "strategies", "repaired minus published"]
    return joined(["## Published against repaired", text, table(columns, rows)]) if rows else ""


def _best(found: Sequence[Agreement]) -> str:
    text = paragraph("""
        Without brute force. "Best" on our models is the best strategy of each model. The last column compares, on each of our models, the
        best proof with the best of the paper's strategies as published, cubic included: mean, least and greatest difference.
    """)
    columns = [
        *("configuration", "best published subcubic mean", "best published mean", "best as published, subcubic", "best repaired subcubic"),
        *("best proof", "best proof minus best of the paper's"),
    ]
    return joined(["## What sound proofs reach", text, table(columns, [_best_row(a) for a in found])])


def _best_row(a: Agreement) -> list[str]:
    runs = a.configuration.runs
    published = [c.published for c in a.comparisons if c.published.label != "brute-force"]
    paper = max(published, key=lambda row: row.bound, default=None)
    subcubic = max((row for row in published if row.choices), key=lambda row: row.bound, default=None)
    theirs = reach(r for r in runs if r.variant == "published" or r.family == "cubic")
    ours = reach(r for r in runs if r.sound and r.family != "brute-force")
    gain = spread(ours[key] - theirs[key] for key in ours if key in theirs)
    return [
        a.configuration.title,
        NOTHING if subcubic is None else mean_std(subcubic.bound, subcubic.bound_std),
        NOTHING if paper is None else f"{mean_std(paper.bound, paper.bound_std)} (`{paper.label}`)",
        plus_minus(spread(reach(r for r in runs if r.variant == "published").values())),
        plus_minus(spread(reach(r for r in runs if r.variant == "repaired").values())),
        plus_minus(spread(ours.values())),
        NOTHING if gain is None else f"{gain.mean:+.4f} ({gain.least:+.4f} to {gain.greatest:+.4f})",
    ]


def _lengths(found: Sequence[Agreement]) -> str:
    rows = []
    for a in found:
        ratios = {}
        for c in a.comparisons:
            runs = a.configuration.find(c.published.label, "repaired" if c.published.choices else None)
            ours = None if runs is None else runs.mean("flops")
            if ours and c.published.flops:
                ratios[c.published.label] = ours / c.published.flops
        subcubic = [ratio for label, ratio in ratios.items() if label.startswith("subcubic/")]
        if ratios:
            span = f"{min(subcubic):.2f} to {max(subcubic):.2f}" if subcubic else NOTHING
            rows.append([a.configuration.title, span, number(ratios.get("cubic"), 2), number(ratios.get("brute-force"), 4)])
    text = paragraph(f"""
        Our FLOPs, of the repaired strategies, over the published ones, where both are known. The published length of brute force comes
        from an error of the authors' counter ([errata]({_ERRATA})); where the other differences come from:
        [costs](../strategies/costs.md).
    """)
    return joined(["## Lengths", text, table(["configuration", "subcubic", "cubic", "brute force"], rows)]) if rows else ""


def soundness_section(found: Sequence[Agreement]) -> str:
    """Whether any of our proofs is false, in exact integers."""
    rows = []
    for a in found:
        compared = (a.sound.bounds, a.sound.against_exact, a.sound.against_certificate)
        false = (a.sound.exceeding, a.upper_bounds_too_small)
        rows.append([a.configuration.title, *(f"{n:,}" for n in compared), *(f"**{n:,}**" for n in false)])
    wrong = sum(a.sound.exceeding + a.upper_bounds_too_small for a in found)
    alarm = f"**{count(wrong, 'bound')} must be false: there is an error in a strategy or in the evaluation.**"
    verdict = alarm if wrong else "None is false."
    text = paragraph(f"""
        Every proven lower bound, compared in exact integers with the exact number of correct sequences of the model where it is known,
        and with the smallest upper bound proven for it where that is not trivial. {verdict}
    """)
    columns = ["configuration", "lower bounds", "against the exact count", "against a certificate", "too large", "upper bounds too small"]
    return joined(["## Soundness of our proofs", text, table(columns, rows)])
