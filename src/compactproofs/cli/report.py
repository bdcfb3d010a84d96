"""`compactproofs report`: one HTML file about a model or about many."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compactproofs.cli.output import JsonOption, Output, progress_bar

if TYPE_CHECKING:
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
    json_path: JsonOption = None,
) -> None:
    """Write one self-contained HTML page: the theorem, all proofs, where each loses, a proof explorer and the mechanism.

    For a model, everything is proven and measured first and written to a folder beside the page (NAME.results), from which the page is
    made; give that folder (or a folder of such folders, for a page about many models) to make the page again without proving.
    """
    output = Output(json_path)
    from compactproofs.errors import ReportError
    from compactproofs.model.files import write_atomically
    from compactproofs.model.zoo import ZOO_NAMES
    from compactproofs.reports.page import page
    from compactproofs.reports.results import read_all

    target = Path(out)
    if not target.parent.is_dir():
        raise ReportError(f"--out {target}: the folder {target.parent} does not exist")
    stored = source not in ZOO_NAMES and Path(source).is_dir()
    models = read_all(Path(source)) if stored else [_collected(source, target, seconds, output)]
    write_atomically(target, page(models).encode())
    size = target.stat().st_size
    output.say(f"report: {target} ({size / 1e6:.1f} MB), about {len(models)} model{'s' if len(models) > 1 else ''}")
    written = []
    if figures is not None:
        from compactproofs.reports.static import save_figures

        written = save_figures(models, Path(figures))
        output.say(f"figures: {len(written)} files in {figures}")
    output.result(
        {"report": str(target), "bytes": size, "models": [m.summary["name"] for m in models], "figures": [str(p) for p in written]}
    )


def _collected(source: str, target: Path, seconds: float, output: Output) -> ModelResults:
    from compactproofs.model.zoo import resolve
    from compactproofs.reports.collect import collect
    from compactproofs.reports.results import ModelResults

    weights = resolve(source)
    output.assumptions(weights.assumptions)
    folder = target.with_suffix(".results")
    with progress_bar("proving") as progress:
        collect(weights, Path(source).stem, seconds=seconds, progress=progress).write(folder)
    output.say(f"results: {folder}")
    return ModelResults.read(folder)
