"""From models to the store that a report is made from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from compactproofs.cores import available_cores
from compactproofs.errors import ReportError
from compactproofs.model.config import Told
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.results.models import ModelResults, read_model
from compactproofs.results.schema import DOCUMENTS, FORMAT
from compactproofs.results.store import Place, content_of, read_part, require_results, write_part
from compactproofs.strategies.base import AbstractStrategy
from compactproofs.strategies.registry import all_strategies
from compactproofs.sweeps.executors import LocalPool
from compactproofs.sweeps.plan import Work, plan_sweep
from compactproofs.sweeps.sweep import run_plan
from compactproofs.sweeps.work import prove_model

Progress = Callable[[int, int], None]

_SAMPLES = 200_000


def default_strategies(weights: Model | None = None) -> list[AbstractStrategy]:
    """All of the paper's strategies, as published and repaired, and the named threshold strategies; of a network that the paper's are not
    about, without them."""
    named = [s for s in all_strategies(None, "both") if s.family != "threshold" or s.label == s.name]
    return [s for s in named if s.family in ("brute-force", "threshold")] if isinstance(weights, Network) else named


Fixed = tuple[tuple[int, ...], tuple[int, ...]]
"""Tokens before and after the input."""


def report_work(
    seconds: float = 20.0, strategies: list[AbstractStrategy] | None = None, *, one: bool = True, fixed: Fixed = ((), ())
) -> Work:
    """What a report shows: of one model everything, of many no documents but statistics."""
    chosen = default_strategies() if strategies is None else strategies
    documents = DOCUMENTS if one else DOCUMENTS[:1]
    prefix, suffix = fixed
    return Work(tuple(chosen), prefix=prefix, suffix=suffix, upper=True, seconds=seconds, samples=_SAMPLES, documents=documents)


def collect(weights: Model, model: Path, out: Path, work: Work, *, progress: Progress | None = None) -> ModelResults:
    """Run everything that a report shows of one model, on all cores, and keep it in the folder `out` under the name `model`.

    What is there, of the same network by the same code, is not computed again.
    """
    place = Place.of(model.parent, model)
    part = out / place.part(content_of(weights), work.digest)
    if read_part(part) is None:
        rows = prove_model(work, weights, threads=available_cores(), progress=progress)
        out.mkdir(parents=True, exist_ok=True)
        write_part(part, place.named(rows))
    return read_model(part)


def collect_all(folder: Path, out: Path, work: Work, told: Told, *, progress: Progress | None = None) -> None:
    """The same for every model of a folder, in processes of this machine."""
    plan = plan_sweep(folder, work.strategies, told, **{name: getattr(work, name) for name in _OPTIONS})
    run_plan(plan, out, LocalPool(None), progress=progress)


_OPTIONS = ("prefix", "suffix", "upper", "seconds", "samples", "documents")


def require_results_folder(folder: Path, force: bool) -> None:
    """Raise if keeping results there would mix them with what somebody else wrote, or cannot work."""
    if not folder.is_dir() and (folder.exists() or folder.is_symlink()):
        raise ReportError(f"{folder}, where the results would go, is a file; choose another name for the report, or move the file")
    if not folder.exists():
        return
    others = [path for path in folder.iterdir() if path.suffix not in (".parquet", ".tmp") and path.name != "stale"]
    if others and not force:
        raise ReportError(
            f"{folder}, where the results would go, is not ours ({others[0].name}, expected {FORMAT}); choose another name for the report, "
            "or use it anyway with --force"
        )
    require_results(folder)
