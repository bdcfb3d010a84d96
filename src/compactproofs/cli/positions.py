"""`prove --position`: what the option says, and the table of all positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from compactproofs.cli.output import Output
from compactproofs.errors import TaskError

if TYPE_CHECKING:
    from compactproofs.positions import Position
    from compactproofs.proof import Proof

PositionOption = Annotated[
    str,
    typer.Option("--position", metavar="last|every|N", help="Where the answer is read: a position from 0 (attention must be causal)."),
]


def position_of(text: str) -> Position:
    """What `--position` says."""
    if text == "last":
        return "last"
    if text == "every":
        return "every"
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise TaskError(f"--position {text:.40}: expected last, every or a number from 0")
    return int(text)


def show_every(output: Output, proofs: Sequence[Proof], positions: int) -> None:
    """One row for each position and strategy; then at how many positions nothing is left open, and the weakest theorem."""
    names = list(dict.fromkeys(map(_name, proofs)))
    several = len(names) > 1
    output.table(
        ["position", *(["strategy"] if several else []), "status", "lower", "upper", "seconds"],
        [
            [
                str(proof.position),
                *([_name(proof)] if several else []),
                proof.status,
                "-" if proof.reason else f"{proof.lower:.8f}",
                "-" if proof.upper is None or proof.reason else f"{proof.upper:.8f}",
                f"{proof.seconds:.3f}",
            ]
            for proof in proofs
        ],
    )
    for name in names:
        own = [proof for proof in proofs if _name(proof) == name]
        whole = sum(proof.status == "proven" and proof.correct_at_least == proof.total for proof in own)
        output.say(f"{f'{name}: ' if several else ''}proven right on all inputs at {whole} of {positions} positions")
        for proof in [proof for proof in own if proof.reason][:1]:
            output.say(f"  at position {proof.position}: {proof.reason}")
    proven = [proof for proof in proofs if proof.status == "proven"]
    if proven:
        weakest = min(proven, key=lambda proof: proof.correct_at_least)
        output.say()
        output.say(f"{weakest.label} at position {weakest.position}: {weakest.theorem}")


def _name(proof: Proof) -> str:
    return proof.label + (" (published)" if proof.variant == "published" else "")
