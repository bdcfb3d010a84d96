"""`compactproofs strategies`: the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from compactproofs.cli.output import ForceOption, JsonOption, Output

if TYPE_CHECKING:
    from compactproofs.strategies.registry import StrategyInfo


def strategies(
    full: Annotated[bool, typer.Option("--full", help="A row for every strategy, not one for many of a kind.")] = False,
    family: Annotated[str | None, typer.Option("--family", metavar="F", help="Only those of one family.")] = None,
    match: Annotated[str | None, typer.Option("--match", metavar="TEXT", help="Only those whose name contains TEXT.")] = None,
    variant: Annotated[str, typer.Option("--variant", help="Of the paper's subcubic strategies: repaired, published or both.")] = "both",
    json_path: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """List the proof strategies, what they cost and whether they are sound. Many of a kind are one row (--full: every one)."""
    output = Output(json_path, force=force)
    from compactproofs.errors import StrategyError
    from compactproofs.strategies.registry import require_family
    from compactproofs.strategies.registry import strategies as known

    require_family(family)
    rows = [r for r in known(variant) if family in (None, r.family) and (match is None or match in r.label)]
    if not rows:
        raise StrategyError(f"no strategy has {match!r:.40} in its name; 'compactproofs strategies --full' lists them all")
    shown = [[r] for r in rows] if full or match is not None else _kinds(rows)
    output.table(
        ["strategy", "variant", "sound", "complexity", "source"],
        [[_name(own), own[0].variant or "-", "yes" if own[0].sound else "no", own[0].complexity, own[0].source] for own in shown],
    )
    if len(shown) < len(rows):
        output.say(f"{len(rows)} strategies; --full lists every one, --match TEXT those with TEXT in their names")
    output.result([r.as_json() for r in rows])


def _kinds(rows: list[StrategyInfo]) -> list[list[StrategyInfo]]:
    """Those of one name and variant together."""
    found: dict[tuple[str, str | None], list[StrategyInfo]] = {}
    for row in rows:
        found.setdefault((row.name, row.variant), []).append(row)
    return list(found.values())


def _name(rows: list[StrategyInfo]) -> str:
    return rows[0].label if len(rows) == 1 else f"{rows[0].name}/... ({len(rows)})"
