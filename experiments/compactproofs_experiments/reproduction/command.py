"""`compactproofs reproduce`: the whole paper."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

import typer

from compactproofs.cli.destination import make_folder
from compactproofs.cli.output import ForceOption, JsonOption, Output, inputs_of, note, progress_bar
from compactproofs.errors import CompactProofsError


def reproduce(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for models, results and pages; what is there is kept.")],
    config: Annotated[str, typer.Option("--config", metavar="NAME", help="k4, k5, k10, k10-v128, k20, or all of them.")] = "all",
    seeds: Annotated[int, typer.Option("--seeds", min=1, metavar="N", help="Models per configuration; the paper has 151.")] = 151,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes, one thread each; by default one per core.")] = None,
    pages: Annotated[bool, typer.Option("--pages/--no-pages", help="Write tables, figures and pages at the end.")] = True,
    json_path: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """Reproduce the paper: train, prove with every strategy, and compare with the published results (needs all extras).

    Interrupt it, even with kill -9, and run it again to go on.
    """
    output = Output(json_path, force=force, inputs=inputs_of(out))
    from compactproofs.results.store import require_results
    from compactproofs_experiments.reproduction.configurations import configurations
    from compactproofs_experiments.reproduction.run import run_configuration

    chosen = configurations(config)
    make_folder("--out", out)
    folder = out / "pages"
    require_results(out / "results")
    if pages and not force and folder.exists() and any(folder.iterdir()) and not (folder / "summary.csv").is_file():
        raise CompactProofsError(f"{folder} holds files that are not ours; choose another --out, or replace them with --force")
    results = {}
    try:
        for each in chosen:
            results[each.name] = run_configuration(each, out, seeds=seeds, workers=workers, stage=_stage)
            output.say(f"{each.name}: {results[each.name].models} models, {results[each.name].failed_rows} failed rows")
    except KeyboardInterrupt:
        note(f"interrupted; what is finished is kept in {out}, the same command goes on")
        raise typer.Exit(130) from None
    written: list[Path] = []
    if pages:
        from compactproofs_experiments.reproduction.pages import write_pages

        command = f"compactproofs reproduce --config {config} --seeds {seeds} --out DIR"
        written = write_pages(out / "results", out / "pages", command=command)
        output.say(f"{len(written)} files in {out / 'pages'}; start with index.md")
    configurations_done = {name: found.as_json() for name, found in results.items()}
    output.result({"out": str(out), "configurations": configurations_done, "pages": [str(path) for path in written]})


def _stage(title: str, unit: str) -> AbstractContextManager[Callable[[int, int], None] | None]:
    return progress_bar(title, unit=unit)
