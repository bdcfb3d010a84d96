"""`prove --position`: what the option says, and the table of all positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from compactproofs.cli.output import Output
from compactproofs.errors import TaskError

if TYPE_CHECKING:
    from compactproofs.all_positions import AllPositions
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
    """One row for each position and strategy; then at how many positions nothing is left open, all of them together, and the weakest."""
    from compactproofs.all_positions import over_positions

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
        if len(own) == positions and all(proof.sound for proof in own) and any(proof.status == "proven" for proof in own):
            _say_together(output, over_positions(own))
        for proof in [proof for proof in own if proof.reason][:1]:
            output.say(f"  at position {proof.position}: {proof.reason}")
    proven = [proof for proof in proofs if proof.status == "proven"]
    if proven:
        weakest = min(proven, key=lambda proof: proof.correct_at_least)
        output.say()
        output.say(f"{weakest.label} at position {weakest.position}: {weakest.theorem}")


def _say_together(output: Output, found: AllPositions) -> None:
    """Both theorems about all positions, rounded outwards."""
    average = f"on average over them at least {_down(found.average_lower)}"
    everywhere = f"right at all of them at once on at least {_down(found.all_right_lower)} of the inputs"
    if found.average_upper < 1:
        average += f" and at most {_up(found.average_upper)}"
        everywhere += f" and at most {_up(found.all_right_upper)}"
    output.say(f"  {average}; {everywhere}")


def _down(share: Fraction) -> str:
    return f"{math.floor(share * 10**8) / 10**8:.8f}"


def _up(share: Fraction) -> str:
    return f"{math.ceil(share * 10**8) / 10**8:.8f}"


def _name(proof: Proof) -> str:
    return proof.label + (" (published)" if proof.variant == "published" else "")
