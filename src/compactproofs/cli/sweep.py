"""`compactproofs sweep`: many models times many strategies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compactproofs.cli.destination import is_csv_of_ours, make_folder
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
    note,
    progress_bar,
    require_variant_of_use,
    tokens_of,
)

if TYPE_CHECKING:
    from compactproofs.strategies.base import AbstractStrategy
    from compactproofs.sweeps.plan import Plan

_SHOWN = 5


def sweep(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of models (.safetensors, .pth), folders in it included.")],
    out: Annotated[Path, typer.Option("--out", metavar="RESULTS", help="Folder for the results; what is there is not computed again.")],
    strategy: Annotated[
        list[str] | None,
        typer.Option("--strategy", metavar="NAME", help="Strategy to run; may be repeated. By default all of them."),
    ] = None,
    family: Annotated[str | None, typer.Option("--family", metavar="F", help="Run every strategy of one family.")] = None,
    variant: Annotated[
        str | None, typer.Option("--variant", help="Of the paper's subcubic strategies: repaired, published or both (the default).")
    ] = None,
    upper: Annotated[bool, typer.Option("--upper", help="Prove upper bounds on accuracy too.")] = False,
    seconds: Annotated[
        float, typer.Option("--seconds", help="Limit for a single strategy and for exact accuracy; beyond it accuracy is sampled.")
    ] = 60.0,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes, one thread each; by default one per core.")] = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="ADDRESS", help="Use the workers of a dask scheduler, such as tcp://HOST:8786.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Compute models with failed rows again.")] = False,
    csv: Annotated[str | None, typer.Option("--csv", metavar="PATH", help="Also write the results of this sweep as CSV.")] = None,
    n_heads: HeadsOption = None,
    normalization: NormalizationOption = None,
    n_ctx: LengthOption = None,
    prefix: PrefixOption = None,
    suffix: SuffixOption = None,
    json_path: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """Prove about every model in a folder with every strategy (needs the 'sweep' extra).

    Each model gives one Parquet part, written whole or not at all. Interrupt the sweep, even with kill -9, and run it again to go on.
    Whatever fails is a row with its reason; the rest goes on.
    """
    output = Output(json_path, force=force, inputs=inputs_of(folder))
    from compactproofs.model.config import Told
    from compactproofs.results.store import import_duckdb
    from compactproofs.sweeps.executors import DaskScheduler, workers_of
    from compactproofs.sweeps.plan import plan_sweep
    from compactproofs.sweeps.sweep import export_csv, run_plan

    source = workers_of(workers, scheduler)
    table = None if csv is None else output.destination("--csv", csv, is_csv_of_ours)
    import_duckdb()
    told = Told(n_heads, normalization, n_ctx)
    fixed = {"prefix": tokens_of("--prefix", prefix), "suffix": tokens_of("--suffix", suffix)}
    plan = plan_sweep(folder, _chosen(strategy or [], family, variant), told, upper=upper, seconds=seconds, **fixed)
    make_folder("--out", out)
    if isinstance(source, DaskScheduler):
        note(f"asking the scheduler at {scheduler} for workers, for at most {source.patience:g} s")
    try:
        with progress_bar(f"{len(plan.models)} models x {len(plan.work.strategies)} strategies", unit="models") as progress:
            summary = run_plan(plan, out, source, retry_failed=retry_failed, progress=progress)
    except KeyboardInterrupt:
        note(f"interrupted; finished models are kept in {out}, the same command goes on")
        raise typer.Exit(130) from None
    output.say(f"{summary.done} done, {summary.skipped} skipped, {summary.failed} failed in {summary.seconds:.1f} s; results: {out}")
    failures = _failures(out, plan) if summary.failed_rows else []
    _show(output, failures, out)
    if table is not None:
        output.say(f"{csv}: {table.fill(lambda path: export_csv(plan, out, path))} rows")
    counts = {"models": len(plan.models), "strategies": len(plan.work.strategies)}
    output.result({**counts, **summary.as_json(), "out": str(out), "csv": csv, "failures": failures})


def _chosen(names: list[str], family: str | None, variant: str | None) -> list[AbstractStrategy]:
    from compactproofs.strategies.registry import all_strategies, named_strategies

    wanted = "both" if variant is None else variant
    picked = named_strategies(names, wanted)
    if family is not None or not names:
        picked += [s for s in all_strategies(family, wanted) if s not in picked]
    require_variant_of_use(variant, picked)
    return picked


def _failures(out: Path, plan: Plan) -> list[dict[str, Any]]:
    from compactproofs.sweeps.sweep import results_of

    with results_of(plan, out) as results:
        query = "SELECT model, label, variant, reason FROM sweep WHERE status = 'failed' ORDER BY ALL"
        return [dict(zip(("model", "label", "variant", "reason"), row, strict=True)) for row in results.sql(query).fetchall()]


def _show(output: Output, failures: list[dict[str, Any]], out: Path) -> None:
    if not failures:
        return
    output.say(f"{len(failures)} failed row{'s' if len(failures) > 1 else ''} in the results:")
    for failure in failures[:_SHOWN]:
        output.say(f"  {failure['model']}  {failure['label'] or '(whole model)'}  {failure['reason']}")
    output.say("All of them, with DuckDB (or --json, --csv); --retry-failed tries them again:")
    output.say(f"  SELECT model, label, reason FROM '{out}/*.parquet' WHERE status = 'failed'")  # noqa: S608
