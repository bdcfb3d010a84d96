"""`compactproofs train`: many seeds at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compactproofs.cli.destination import make_folder
from compactproofs.cli.output import ForceOption, JsonOption, Output, inputs_of, note, progress_bar
from compactproofs.errors import CompactProofsError
from compactproofs.memory import require_memory

_TABLES = 4
"""So many tables of tokens times outputs are in memory while accuracy is measured."""


def train(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the models; what is finished there is not trained again.")],
    task: Annotated[str, typer.Option("--task", help="What to learn. Known: max.")] = "max",
    n_ctx: Annotated[int, typer.Option("--n-ctx", help="Sequence length.")] = 4,
    d_vocab: Annotated[int, typer.Option("--d-vocab", help="Number of tokens.")] = 64,
    seeds: Annotated[str, typer.Option("--seeds", metavar="A:B|A,B,...", help="Seeds: a range 0:151 (end excluded) or a list.")] = "0:1",
    steps: Annotated[int, typer.Option("--steps", help="Training steps; the paper's recipe has 3000.")] = 3000,
    d_model: Annotated[int, typer.Option("--d-model")] = 32,
    d_head: Annotated[int, typer.Option("--d-head")] = 32,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; by default one per core.")] = None,
    json_path: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """Train models by the paper's recipe, many seeds at once (needs the 'train' extra).

    A seed's weights do not depend on which other seeds are trained with it. Interrupt it and run it again to go on.
    """
    output = Output(json_path, force=force, inputs=inputs_of(out))
    wanted = parse_seeds(seeds)
    from compactproofs.measuring import accuracy
    from compactproofs.training import Recipe, train_seeds

    recipe = Recipe(n_ctx=n_ctx, d_vocab=d_vocab, d_model=d_model, d_head=d_head, steps=steps, task=task)
    require_memory(_TABLES * 8 * d_vocab**2, f"measuring the accuracy of {recipe.name}", "choose a smaller --d-vocab")
    make_folder("--out", out)
    try:
        with progress_bar(f"training {len(wanted)} x {recipe.name}") as progress:
            models = {m.seed: m for m in train_seeds(recipe, wanted, out=out, workers=workers, progress=progress)}
    except KeyboardInterrupt:
        note(f"interrupted; finished seeds are kept in {out}, the same command goes on")
        raise typer.Exit(130) from None
    rows = []
    with progress_bar("measuring accuracy") as progress:
        for done, seed in enumerate(wanted):
            model = models[seed]
            exact = d_vocab**n_ctx * d_vocab <= 2**31
            measured = accuracy(model.weights, samples=None if exact else 100_000)
            rows.append(
                {
                    "seed": seed,
                    "path": str(model.path),
                    "loss": model.loss,
                    "accuracy": measured.accuracy,
                    "accuracy_method": measured.method,
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
