"""`compactproofs strategies`: the registry."""

from __future__ import annotations

from compactproofs.cli.output import JsonOption, Output


def strategies(json_path: JsonOption = None) -> None:
    """List the proof strategies, what they cost and whether they are sound."""
    output = Output(json_path)
    from compactproofs.strategies.registry import strategies as known

    rows = known()
    output.table(
        ["strategy", "family", "sound", "complexity", "source"],
        [[r.name, r.family, "yes" if r.sound else "no", r.complexity, r.source] for r in rows],
    )
    output.result([r.as_json() for r in rows])
