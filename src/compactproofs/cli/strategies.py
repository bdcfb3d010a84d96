"""`compactproofs strategies`: the registry."""

from __future__ import annotations

from typing import Annotated

import typer

from compactproofs.cli.output import ForceOption, JsonOption, Output


def strategies(
    variant: Annotated[str, typer.Option("--variant", help="Of the paper's subcubic strategies: repaired, published or both.")] = "both",
    json_path: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """List the proof strategies, what they cost and whether they are sound."""
    output = Output(json_path, force=force)
    from compactproofs.strategies.registry import strategies as known

    rows = known(variant)
    output.table(
        ["strategy", "variant", "sound", "complexity", "source"],
        [[r.label, r.variant or "-", "yes" if r.sound else "no", r.complexity, r.source] for r in rows],
    )
    output.result([r.as_json() for r in rows])
