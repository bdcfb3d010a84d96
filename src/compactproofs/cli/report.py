"""`compactproofs report`: one HTML file about a model or about many."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compactproofs.cli.destination import make_folder, mentions_us
from compactproofs.cli.output import (
    ForceOption,
    HeadsOption,
    JsonOption,
    NormalizationOption,
    Output,
    inputs_of,
    progress_bar,
    require_seconds,
)

if TYPE_CHECKING:
    from compactproofs.model.weights import Weights
    from compactproofs.reports.results import ModelResults


def report(
    source: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|RESULTS", help="A bundled model, a model file, or a folder of results (of one model, or of several)."
        ),
    ],
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="Where to write the report.")] = "report.html",
    figures: Annotated[str | None, typer.Option("--figures", metavar="DIR", help="Also write the main plots as SVG and PNG.")] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="Limit for a single strategy and for brute force.")] = 20.0,
    n_heads: HeadsOption = None,
    normalization: NormalizationOption = None,
    json_path: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """Write one self-contained HTML page: the theorem, all proofs, where each loses, a proof explorer and the mechanism.

    For a model, everything is proven and measured first and written to a folder beside the page (NAME.results), from which the page is
    made; give that folder (or a folder of such folders, for a page about many models) to make the page again without proving.
    """
    output = Output(json_path, force=force, inputs=inputs_of(source))
    from compactproofs.model.zoo import ZOO_NAMES, resolve
    from compactproofs.reports.page import page
    from compactproofs.reports.results import read_all, require_results_folder

    require_seconds(seconds)
    place = output.destination("--out", out, mentions_us)
    drawn = None if figures is None else make_folder("--figures", Path(figures))
    if source not in ZOO_NAMES and Path(source).is_dir():
        models = read_all(Path(source))
    else:
        folder = place.path.with_suffix(".results")
        require_results_folder(folder, force)
        weights = resolve(source, n_heads=n_heads, normalization=normalization)
        output.assumptions(weights.assumptions)
        models = [_collected(weights, Path(source).stem, folder, seconds)]
        output.say(f"results: {folder}")
    place.write(page(models).encode())
    size = place.path.stat().st_size
    output.say(f"report: {place.path} ({size / 1e6:.1f} MB), about {len(models)} model{'s' if len(models) > 1 else ''}")
    written = []
    if drawn is not None:
        from compactproofs.reports.static import save_figures

        written = save_figures(models, drawn, lambda path: output.destination("--figures", path, mentions_us))
        output.say(f"figures: {len(written)} files in {figures}")
    output.result(
        {"report": str(place.path), "bytes": size, "models": [m.summary["name"] for m in models], "figures": [str(p) for p in written]}
    )


def _collected(weights: Weights, name: str, folder: Path, seconds: float) -> ModelResults:
    from compactproofs.reports.collect import collect
    from compactproofs.reports.results import ModelResults

    with progress_bar("proving") as progress:
        collect(weights, name, seconds=seconds, progress=progress).write(folder)
    return ModelResults.read(folder)
