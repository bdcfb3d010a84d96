"""`prove --worst-blocks`: what the option says, and the table of the worst blocks."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from compactproofs.cli.output import Output
from compactproofs.errors import TaskError

if TYPE_CHECKING:
    from compactproofs.worst_blocks import WorstBlocks

WorstBlocksOption = Annotated[
    str | None,
    typer.Option(
        "--worst-blocks",
        metavar="any|C",
        help="Also bound the accuracy under distributions that weigh each (label, last token) anew: in any way, or by a factor of up to C.",
    ),
]

_FACTOR = re.compile(r"\d{1,9}(\.\d{1,9}|/[1-9]\d{0,8})?", re.ASCII)
_SHOWN = 8


def factor_of(text: str) -> Fraction | None:
    """What `--worst-blocks` says; None: any weights."""
    if text == "any":
        return None
    if not _FACTOR.fullmatch(text) or Fraction(text) < 1:
        raise TaskError(f"--worst-blocks {text:.40}: expected any, or a factor of at least 1, such as 2 or 1.5")
    return Fraction(text)


def show_worst(output: Output, found: WorstBlocks, label: str) -> None:
    """The worst blocks, and the theorem."""
    from compactproofs.worst_blocks import in_words

    output.say()
    output.say(f"{label}: the blocks of which least is proven, of {len(found.blocks)}")
    output.table(
        ["label", "last", "lower", "proven", "of"],
        [
            [str(block.label), str(block.last), in_words(block.share, 6), _brief(block.proven), _brief(block.total)]
            for block in found.blocks[:_SHOWN]
        ],
    )
    output.say(found.theorem)


def _brief(number: int) -> str:
    return str(number) if number < 10**9 else f"{float(number):.3e}"
