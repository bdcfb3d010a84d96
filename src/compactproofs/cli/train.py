"""`compactproofs train`: many seeds at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compactproofs.cli.destination import make_folder
from compactproofs.cli.output import TASK_HELP, ForceOption, JsonOption, Output, inputs_of, note, progress_bar
from compactproofs.errors import CompactProofsError
from compactproofs.memory import require_memory

if TYPE_CHECKING:
    from compactproofs.model.kinds import Model
    from compactproofs.tasks import AbstractTask

_SAMPLES = 100_000
"""So many sequences are evaluated where all of them are too many."""

_TABLES = 4
"""So many tables of tokens times outputs are in memory while accuracy is measured."""


def train(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the models; what is finished there is not trained again.")],
    task: Annotated[str, typer.Option("--task", metavar="SPEC", help=TASK_HELP)] = "max",
    n_ctx: Annotated[int, typer.Option("--n-ctx", help="Sequence length.")] = 4,
    d_vocab: Annotated[int, typer.Option("--d-vocab", help="Number of tokens.")] = 64,
    seeds: Annotated[str, typer.Option("--seeds", metavar="A:B|A,B,...", help="Seeds: a range 0:151 (end excluded) or a list.")] = "0:1",
    steps: Annotated[int, typer.Option("--steps", help="Training steps; the paper's recipe has 3000.")] = 3000,
    d_model: Annotated[int, typer.Option("--d-model")] = 32,
    d_head: Annotated[
        int | None, typer.Option("--d-head", min=1, help="By default 32 with one head, d_model / n_heads with several.")
    ] = None,
    n_heads: Annotated[int, typer.Option("--n-heads", help="Attention heads.")] = 1,
    d_mlp: Annotated[int, typer.Option("--d-mlp", help="Neurons of an MLP; 0: no MLP.")] = 0,
    act: Annotated[
        str | None, typer.Option("--act", metavar="relu|gelu|gelu_new|silu", help="What the neurons do; by default relu.")
    ] = None,
    norm: Annotated[
        str,
        typer.Option(
            "--norm",
            metavar="none|LN|LNPre|RMS|RMSPre",
            help="Normalisation before attention, before the MLP and at the end; Pre: without parameters.",
        ),
    ] = "none",
    bias: Annotated[bool, typer.Option("--bias", help="With biases everywhere.")] = False,
    sampling: Annotated[
        str,
        typer.Option(
            "--sampling",
            metavar="uniform|balanced",
            help="Sequences to train on; balanced: every second one has a label that is drawn first, for tasks with rare labels.",
        ),
    ] = "uniform",
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; by default one per core.")] = None,
    json_path: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """Train models by the paper's recipe, many seeds at once (needs the 'train' extra).

    Without other options these are the paper's: one head, no MLP, no normalisation, no biases.
    The task is written into the files, so that prove and accuracy know it.
    A seed's weights do not depend on which other seeds are trained with it. Interrupt it and run it again to go on.
    """
    output = Output(json_path, force=force, inputs=inputs_of(out))
    wanted = parse_seeds(seeds)
    from compactproofs.tasks import MaxOfK
    from compactproofs.tasks.imported import task_by_user
    from compactproofs.training import Recipe, recipe_for, train_seeds

    model_kind: dict[str, Any] = {"n_heads": n_heads, "d_mlp": d_mlp, "act": act, "norm": norm, "bias": bias, "sampling": sampling}
    if d_head is not None:
        model_kind["d_head"] = d_head
    if task == "max":
        recipe = Recipe(n_ctx=n_ctx, d_vocab=d_vocab, d_model=d_model, steps=steps, **model_kind)
        problem: AbstractTask = MaxOfK(n_ctx, d_vocab)
    else:
        problem = task_by_user(task, n_ctx, d_vocab)
        recipe = recipe_for(problem, d_model=d_model, steps=steps, **model_kind)
    require_memory(_TABLES * 8 * d_vocab**2, f"measuring the accuracy of {recipe.name}", "choose a smaller --d-vocab")
    make_folder("--out", out)
    try:
        with progress_bar(f"training {len(wanted)} x {recipe.name}") as progress:
            models = {m.seed: m for m in train_seeds(recipe, wanted, task=problem, out=out, workers=workers, progress=progress)}
    except KeyboardInterrupt:
        note(f"interrupted; finished seeds are kept in {out}, the same command goes on")
        raise typer.Exit(130) from None
    rows = []
    with progress_bar("measuring accuracy") as progress:
        for done, seed in enumerate(wanted):
            model = models[seed]
            accuracy, method = _measured(model.weights, problem)
            rows.append(
                {
                    "seed": seed,
                    "path": str(model.path),
                    "loss": model.loss,
                    "accuracy": accuracy,
                    "accuracy_method": method,
                    "seconds": model.seconds,
                    "resumed": model.resumed,
                }
            )
            if progress is not None:
                progress(done + 1, len(wanted))
    output.table(
        ["seed", "loss", "accuracy", "seconds", "path"],
        [[str(r["seed"]), f"{r['loss']:.5f}", f"{r['accuracy']:.6f}", f"{r['seconds']:.2f}", str(r["path"])] for r in rows],
    )
    output.result(rows)


def _measured(model: Model, task: AbstractTask) -> tuple[float, str]:
    """The accuracy and how it was found: exactly where that takes seconds, else in a sample."""
    from compactproofs.measuring import accuracy
    from compactproofs.model.network import Network

    hidden = model.d_model + model.d_mlp if isinstance(model, Network) else 1
    exact = model.d_vocab**model.n_ctx * model.d_vocab * hidden <= 2**31
    measured = accuracy(model, task, samples=None if exact else _SAMPLES)
    return measured.accuracy, measured.method


MOST_SEEDS = 100_000
"""More than anybody trains at once."""


def parse_seeds(text: str) -> list[int]:
    """`0:151` or `1,2,3` to a list without repetitions."""
    try:
        if ":" in text:
            start, stop = (int(part or 0) for part in text.split(":"))
            if stop - start > MOST_SEEDS:
                raise CompactProofsError(f"--seeds {text!r}: {stop - start} seeds are more than the {MOST_SEEDS} that are possible at once")
            seeds = list(range(start, stop))
        else:
            seeds = [int(part) for part in text.split(",")]
    except ValueError:
        seeds = []
    if not seeds or min(seeds) < 0:
        raise CompactProofsError(f"--seeds {text!r}: expected a range such as 0:151 (end excluded) or a list such as 1,2,3")
    return list(dict.fromkeys(seeds))
