"""`compactproofs interpret`: the measurements of the mechanism, of one model or over a folder of models."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compactproofs.cli.output import (
    ForceOption,
    HeadsOption,
    JsonOption,
    LengthOption,
    NormalizationOption,
    Output,
    inputs_of,
    progress_bar,
)
from compactproofs.errors import CompactProofsError

if TYPE_CHECKING:
    from compactproofs.interpretation import Interpretation


def interpret(
    model: Annotated[str, typer.Argument(metavar="MODEL|DIR", help="A bundled model, a model file, or a folder of .safetensors files.")],
    samples: Annotated[int | None, typer.Option("--samples", metavar="N", help="Random sequences per ablation; by default 200000.")] = None,
    exact_ablations: Annotated[
        bool,
        typer.Option("--exact-ablations", help="Evaluate all sequences (at most 2^25) for every ablation; a minute at max-of-4."),
    ] = False,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the sample; by default 0.")] = None,
    n_heads: HeadsOption = None,
    normalization: NormalizationOption = None,
    n_ctx: LengthOption = None,
    json_path: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """Measure the mechanism: attention, copying, ablations, error terms, gaps; for a folder, mean and standard deviation.

    These are measurements in float64, not theorems. For a folder of max-of-4 models the published numbers stand beside.
    """
    output = Output(json_path, force=force, inputs=inputs_of(model))
    from compactproofs.interpretation import interpret
    from compactproofs.interpretation.ablations import DEFAULT_SAMPLES
    from compactproofs.model.files import load
    from compactproofs.model.zoo import ZOO_NAMES, resolve

    if exact_ablations and (samples, seed) != (None, None):
        raise CompactProofsError(
            "--exact-ablations evaluates all sequences: --samples and --seed are about a sample, give one or the other"
        )
    wanted = DEFAULT_SAMPLES if samples is None else samples
    measure = partial(interpret, samples=wanted, exact_ablations=exact_ablations, seed=seed or 0)
    if model in ZOO_NAMES or not Path(model).is_dir():
        weights = resolve(model, n_heads=n_heads, normalization=normalization, n_ctx=n_ctx)
        output.assumptions(weights.assumptions)
        measured = measure(weights)
        _show_model(output, measured)
        output.result(measured.as_json())
        return
    paths = sorted(Path(model).glob("*.safetensors"))
    if not paths:
        raise CompactProofsError(f"the folder {model} holds no .safetensors files")
    models = []
    with progress_bar("measuring models") as progress:
        for path in paths:
            models.append(measure(load(path, n_heads=n_heads, normalization=normalization, n_ctx=n_ctx)))
            if progress is not None:
                progress(len(models), len(paths))
    for assumption in dict.fromkeys(a for measured in models for a in measured.assumptions):
        output.assumptions([assumption])
    _show_folder(output, [path.name for path in paths], models)


def _show_model(output: Output, measured: Interpretation) -> None:
    from compactproofs.interpretation import explain

    sections: dict[str, list[list[str]]] = {}
    for name, value in measured.statistics.items():
        section, text = explain(name)
        if not section.startswith("zero-ablations"):
            sections.setdefault(section, []).append([name, _number(value), text])
    for section, rows in sections.items():
        output.say()
        output.say(section)
        output.table(["statistic", "value", "meaning"], rows)
    means, deviations = measured.slopes.difference_mean_by_gap, measured.slopes.difference_std_by_gap
    gaps = [gap for gap in (1, 2, 4, 8, 16, 32, 64, 128, 256) if gap <= len(means)]
    output.say()
    output.say("attention score of the label above that of a token so many below it, weighted by sequences")
    output.table(["gap", "mean", "std"], [[str(gap), _number(means[gap - 1]), _number(deviations[gap - 1])] for gap in gaps])
    output.say()
    output.say(f"zero-ablations ({_how(measured)})")
    output.table(
        ["zeroed", "accuracy", "mean -log p"],
        [[", ".join(r.zeroed) or "nothing", f"{r.accuracy:.6f}", _number(r.loss)] for r in measured.ablations.results],
    )


def _show_folder(output: Output, names: list[str], models: list[Interpretation]) -> None:
    from compactproofs.interpretation import comparable, explain, published_statistics, summarise
    from compactproofs.version import __version__

    summaries = summarise(models)
    published = published_statistics() if comparable(models) else None
    columns = ["statistic", "mean", "std", *(["published mean", "published std", "std apart"] if published else []), "meaning"]
    rows = []
    for name, summary in summaries.items():
        beside = []
        if published:
            known = published.get(name)
            beside = ["", "", ""] if known is None else [_number(known.mean), _number(known.std), _signed(known.distance(summary.mean))]
        rows.append([name, _number(summary.mean), _number(summary.std), *beside, explain(name)[1]])
    output.say(f"{len(models)} models; ablations: {', '.join(dict.fromkeys(map(_how, models)))}")
    output.table(columns, rows)
    output.result(
        {
            "models": [
                {
                    "file": name,
                    "weights_sha256": m.weights_sha256,
                    "sizes": m.sizes,
                    "statistics": m.statistics,
                    "ablations": {"method": m.ablations.method, "sequences": m.ablations.evaluated, "seed": m.ablations.seed},
                }
                for name, m in zip(names, models, strict=True)
            ],
            "summary": {name: asdict(summary) for name, summary in summaries.items()},
            "published": {name: asdict(p) | {"std_apart": p.distance(summaries[name].mean)} for name, p in published.items()}
            if published
            else None,
            "version": __version__,
        }
    )


def _how(measured: Interpretation) -> str:
    result = measured.ablations
    return f"{'all' if result.method == 'enumeration' else 'a sample of'} {result.evaluated} sequences"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}"
