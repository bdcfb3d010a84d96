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
    LengthOption,
    NormalizationOption,
    Output,
    PrefixOption,
    SuffixOption,
    inputs_of,
    progress_bar,
    require_seconds,
    tokens_of,
)
from compactproofs.errors import ReportError

if TYPE_CHECKING:
    from compactproofs.cli.destination import Destination
    from compactproofs.model.config import Told
    from compactproofs.results.models import Failure, ModelResults


def report(
    source: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|DIR|RESULTS", help="A bundled model, a model file, a folder of models, or results of a sweep or reproduction."
        ),
    ],
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="Where to write the report.")] = "report.html",
    figures: Annotated[str | None, typer.Option("--figures", metavar="DIR", help="Also write the main plots as SVG and PNG.")] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="Limit for a single strategy and for brute force; by default 20.")
    ] = None,
    n_heads: HeadsOption = None,
    normalization: NormalizationOption = None,
    n_ctx: LengthOption = None,
    prefix: PrefixOption = None,
    suffix: SuffixOption = None,
    json_path: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """Write one self-contained HTML page: the theorem, all proofs, where each loses, a proof explorer and the mechanism.

    For a model, or a folder of models, everything is proven and measured first and kept in a folder beside the page (NAME.results), from
    which the page is made. Give that folder, or the results of a sweep or a reproduction, to make a page without proving.
    """
    from compactproofs.model.config import Told
    from compactproofs.model.zoo import ZOO_NAMES
    from compactproofs.reports.collect import require_results_folder
    from compactproofs.reports.page import page, require_plotly
    from compactproofs.results.store import import_duckdb

    folder = Path(source)
    stored = _store(folder) if source not in ZOO_NAMES and folder.is_dir() else None
    inputs = sorted(stored.glob("*.parquet")) if stored is not None else inputs_of(source)
    output = Output(json_path, force=force, inputs=inputs)
    if stored is not None and any(option is not None for option in (seconds, n_heads, normalization, n_ctx, prefix, suffix)):
        about = "--seconds, --n-heads, --normalization, --n-ctx, --prefix, --suffix are about a model"
        raise ReportError(f"{source} holds results, nothing is proven again: {about}")
    require_seconds(20.0 if seconds is None else seconds)
    require_plotly()
    import_duckdb()
    place = output.destination("--out", out, is_page)
    kept = place.path.with_suffix(".results")
    if stored is None and kept == place.path:
        raise ReportError(f"--out {out}: the folder with the results would have that name; give the page another one, such as page.html")
    drawn = {} if figures is None else _places(output, make_folder("--figures", Path(figures)))
    if stored is not None:
        models, failures = _read(stored, source)
    else:
        require_results_folder(kept, force)
        told = Told(n_heads, normalization, n_ctx)
        fixed = tokens_of("--prefix", prefix), tokens_of("--suffix", suffix)
        models, failures = _collected(output, source, kept, told, 20.0 if seconds is None else seconds, fixed)
        output.say(f"results: {kept}")
    place.write(page(models, failures).encode())
    size = place.path.stat().st_size
    output.say(f"report: {place.path} ({size / 1e6:.1f} MB), about {len(models)} model{'s' if len(models) > 1 else ''}")
    written = []
    if figures is not None:
        from compactproofs.plots.static import save_figures

        written = save_figures(models, Path(figures), lambda path, data: drawn[path].write(data))
        output.say(f"figures: {len(written)} files in {figures}")
    output.result({"report": str(place.path), "bytes": size, "models": [m.name for m in models], "figures": [str(p) for p in written]})


def _store(folder: Path) -> Path | None:
    """The results in a folder: its own, or those of a reproduction; None if it has none, and so is a folder of models."""
    from compactproofs.model.files import model_files

    for place in (folder, folder / "results"):
        if any(place.glob("*.parquet")):
            return place
    if any(folder.glob("summary.json")) or any(folder.glob("*/summary.json")):
        raise ReportError(f"{folder} holds results of an earlier edition; make them again with 'compactproofs report MODEL'")
    return None if model_files(folder) else folder


def _read(stored: Path, source: str) -> tuple[list[ModelResults], list[Failure]]:
    from compactproofs.results.models import read_models

    models, failures = read_models(stored)
    if not models:
        reason = (
            f": {failures[0].model}: {failures[0].reason}" if failures else "; expected Parquet parts, as 'sweep' and 'report' write them"
        )
        raise ReportError(f"{source} holds no results of a model, and no models{reason}")
    return models, failures


def _places(output: Output, folder: Path) -> dict[Path, Destination]:
    """A place for every figure, looked at before anything is proven."""
    from compactproofs.plots.static import figure_files, require_matplotlib

    require_matplotlib()
    return {path: output.destination("--figures", path, is_figure) for path in figure_files(folder)}


Fixed = tuple[tuple[int, ...], tuple[int, ...]]


def _collected(
    output: Output, source: str, out: Path, told: Told, seconds: float, fixed: Fixed
) -> tuple[list[ModelResults], list[Failure]]:
    """Prove and measure, about one model or all of a folder, and read what was kept."""
    from compactproofs.model.zoo import ZOO_NAMES, resolve, zoo_path
    from compactproofs.reports.collect import collect, collect_all, default_strategies, report_work

    if source not in ZOO_NAMES and Path(source).is_dir():
        with progress_bar("proving", unit="models") as progress:
            collect_all(Path(source), out, report_work(seconds, one=False, fixed=fixed), told, progress=progress)
        return _read(out, source)
    weights = resolve(source, n_heads=told.n_heads, normalization=told.normalization, n_ctx=told.n_ctx)
    output.assumptions(weights.assumptions)
    path = zoo_path(source) if source in ZOO_NAMES else Path(source)
    work = report_work(seconds, default_strategies(weights), fixed=fixed)
    with progress_bar("proving") as progress:
        return [collect(weights, path, out, work, progress=progress)], []
