"""`compactproofs report`: one HTML file about a model or about many."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compactproofs.cli.destination import is_figure, is_page, make_folder
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
from compactproofs.errors import ReportError
from compactproofs.text import printable

if TYPE_CHECKING:
    from compactproofs.cli.destination import Destination
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
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="Limit for a single strategy and for brute force; by default 20.")
    ] = None,
    n_heads: HeadsOption = None,
    normalization: NormalizationOption = None,
    json_path: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """Write one self-contained HTML page: the theorem, all proofs, where each loses, a proof explorer and the mechanism.

    For a model, everything is proven and measured first and written to a folder beside the page (NAME.results), from which the page is
    made; give that folder (or a folder of such folders, for a page about many models) to make the page again without proving.
    """
    from compactproofs.model.zoo import ZOO_NAMES, resolve
    from compactproofs.reports.page import page, require_plotly
    from compactproofs.reports.results import read_all, require_results_folder, result_files

    stored = source not in ZOO_NAMES and Path(source).is_dir()
    output = Output(json_path, force=force, inputs=result_files(Path(source)) if stored else inputs_of(source))
    if stored and (seconds, n_heads, normalization) != (None, None, None):
        raise ReportError(
            f"{source} holds results, and nothing is proven again: --seconds, --n-heads and --normalization are about a model"
        )
    require_seconds(20.0 if seconds is None else seconds)
    require_plotly()
    place = output.destination("--out", out, is_page)
    folder = place.path.with_suffix(".results")
    if not stored and folder == place.path:
        raise ReportError(f"--out {out}: the folder with the results would have that name; give the page another one, such as page.html")
    drawn = {} if figures is None else _places(output, make_folder("--figures", Path(figures)))
    if stored:
        models = read_all(Path(source))
    else:
        require_results_folder(folder, force)
        weights = resolve(source, n_heads=n_heads, normalization=normalization)
        output.assumptions(weights.assumptions)
        models = [_collected(weights, printable(Path(source).stem), folder, 20.0 if seconds is None else seconds)]
        output.say(f"results: {folder}")
    place.write(page(models).encode())
    size = place.path.stat().st_size
    output.say(f"report: {place.path} ({size / 1e6:.1f} MB), about {len(models)} model{'s' if len(models) > 1 else ''}")
    written = []
    if figures is not None:
        from compactproofs.reports.static import save_figures

        written = save_figures(models, Path(figures), lambda path, data: drawn[path].write(data))
        output.say(f"figures: {len(written)} files in {figures}")
    output.result(
        {"report": str(place.path), "bytes": size, "models": [m.summary["name"] for m in models], "figures": [str(p) for p in written]}
    )


def _places(output: Output, folder: Path) -> dict[Path, Destination]:
    """A place for every figure, looked at before anything is proven."""
    from compactproofs.reports.static import figure_files, require_matplotlib

    require_matplotlib()
    return {path: output.destination("--figures", path, is_figure) for path in figure_files(folder)}


def _collected(weights: Weights, name: str, folder: Path, seconds: float) -> ModelResults:
    from compactproofs.reports.collect import collect
    from compactproofs.reports.results import ModelResults

    with progress_bar("proving") as progress:
        collect(weights, name, seconds=seconds, progress=progress).write(folder)
    return ModelResults.read(folder)
