"""Proofs of one model as a table: all of a few; of many, the frontier and a summary by family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compactproofs.cli.output import Output, brief_integer

if TYPE_CHECKING:
    from compactproofs.proof import Proof

MANY = 15
"""More proofs than this are summed up."""
_FEW = 3


def show_proofs(output: Output, proofs: list[Proof], *, full: bool) -> None:
    """The table, and what has been proven in words."""
    proofs, elsewhere = _about_this_network(proofs)
    unbeaten = _unbeaten(proofs)
    if full or len(proofs) <= MANY or not unbeaten:
        _table(output, proofs, unbeaten)
    else:
        _table(output, unbeaten, unbeaten)
        output.say()
        _summary(output, proofs)
        output.say(f"{len(proofs)} proofs, of which the first table has the frontier: no other is both shorter and tighter (--full: all)")
    if elsewhere:
        output.say(f"{len(elsewhere)} more strategies are not about this network or question, such as {elsewhere[0].label}:")
        output.say(f"  {elsewhere[0].reason}")
    compiling = max(p.compile_seconds for p in proofs)
    if compiling > 0.5:
        output.say(f"(compiled for {compiling:.0f} s, once for this machine; not part of the seconds)")
    if len(proofs) <= _FEW:
        for proof in proofs:
            output.say()
            output.say(f"{proof.label}: {proof.reason or proof.theorem}")
            if proof.advice:
                output.say(f"({proof.advice})")
        return
    best = max((p for p in proofs if p.status == "proven"), key=lambda p: p.correct_at_least, default=None)
    if best is not None:
        output.say()
        output.say(f"best, {best.label}: {best.theorem}")


def _unbeaten(proofs: list[Proof]) -> list[Proof]:
    """The frontier."""
    from compactproofs.results.frontier import on_frontier

    proven = [p for p in proofs if p.status == "proven"]
    kept = on_frontier([(p.flops, p.correct_at_least) for p in proven])
    return [p for p, keep in zip(proven, kept, strict=True) if keep]


def _table(output: Output, proofs: list[Proof], unbeaten: list[Proof]) -> None:
    stars = {id(p) for p in unbeaten}
    output.table(
        ["", "strategy", "status", "lower", "upper", "FLOPs", "unexplained", "seconds"],
        [
            [
                "*" if id(p) in stars else "",
                p.label + (" (published)" if p.variant == "published" else ""),
                p.status,
                "-" if p.reason else f"{p.lower:.8f}",
                "-" if p.upper is None or p.reason else f"{p.upper:.8f}",
                brief_integer(p.flops),
                brief_integer(p.unexplained_dimensions),
                f"{p.seconds:.3f}",
            ]
            for p in proofs
        ],
    )


def _summary(output: Output, proofs: list[Proof]) -> None:
    """A row for each family: how many proofs, the tightest, and the shortest that says anything."""
    rows = []
    for family in dict.fromkeys(p.family for p in proofs):
        own = [p for p in proofs if p.family == family]
        proven = [p for p in own if p.status == "proven"]
        best = max(proven, key=lambda p: (p.correct_at_least, -p.flops), default=None)
        shortest = min((p for p in proven if p.correct_at_least > 0), key=lambda p: p.flops, default=None)
        rows.append([family, str(len(own)), str(len(proven)), *_bound(best), *_bound(shortest)])
    output.table(["family", "proofs", "proven", "tightest", "FLOPs", "shortest above 0", "FLOPs"], rows)


def _bound(proof: Proof | None) -> tuple[str, str]:
    return ("-", "-") if proof is None else (f"{proof.lower:.8f}", brief_integer(proof.flops))


def _about_this_network(proofs: list[Proof]) -> tuple[list[Proof], list[Proof]]:
    """What to show row by row, and strategies that do not apply, if there are many of them beside others."""
    elsewhere = [proof for proof in proofs if proof.status == "infeasible" and not proof.length.flops_breakdown]
    shown = [proof for proof in proofs if proof not in elsewhere]
    return (shown, elsewhere) if shown and len(elsewhere) > _FEW else (proofs, [])
