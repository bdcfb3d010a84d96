"""`prove --margin`, `--margins` and `--log-loss`: what the options say, and the table of a curve."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from compactproofs.cli.output import Output, progress_bar
from compactproofs.errors import CertificateError, CompactProofsError, TaskError

if TYPE_CHECKING:
    from compactproofs.margin_curves import MarginCurve
    from compactproofs.model.kinds import Model
    from compactproofs.positions import Position
    from compactproofs.strategies.base import AbstractStrategy
    from compactproofs.tasks import AbstractTask

MarginOption = Annotated[
    str | None,
    typer.Option("--margin", metavar="X", help="Right means: larger by more than X (the nearest float64) than every other logit."),
]
MarginsOption = Annotated[
    str | None, typer.Option("--margins", metavar="A:B:STEP", help="The share of inputs right by more than each of these margins.")
]
LogLossOption = Annotated[bool, typer.Option("--log-loss", help="Bound the mean cross-entropy over all inputs, in nats, from both sides.")]

NO_CERTIFICATE = "a certificate is about one margin: give --margin instead"


def margin_of(text: str | None) -> float:
    """What `--margin` says; 0 without it."""
    if text is None:
        return 0.0
    from compactproofs.tasks.margin import margin_of_text

    return margin_of_text(text)


def asks_for_curve(margins: str | None, log_loss: bool, certificate: str | None, margin: str | None, where: Position) -> bool:
    """Whether `prove` is asked for a curve. What does not go together with one is refused."""
    if margins is None and not log_loss:
        return False
    if certificate is not None:
        raise CertificateError(f"--certificate with --margins or --log-loss: {NO_CERTIFICATE}")
    if margin is not None:
        raise CompactProofsError("--margin is one margin, --margins and --log-loss are about many: give one or the other")
    if where != "last":
        raise TaskError("--margins and --log-loss are about the last position: leave out --position")
    return True


def show_curve(
    output: Output,
    weights: Model,
    task: AbstractTask,
    margins: str | None,
    *,
    log_loss: bool,
    strategies: list[AbstractStrategy],
    seconds: float | None,
) -> None:
    """Prove every point, show them, and write them down."""
    from compactproofs.margin_curves import FOR_LOSSES, margin_curve, margins_of_text
    from compactproofs.strategies.registry import DEFAULT

    if len(strategies) != 1:
        raise CompactProofsError("--margins and --log-loss take one strategy, by default the best: leave out --all and --family")
    wanted = list(FOR_LOSSES) if margins is None else margins_of_text(margins)
    strategy = DEFAULT if strategies[0].label == DEFAULT else strategies[0]
    with progress_bar("proving") as progress:
        curve = margin_curve(weights, wanted, task, strategy=strategy, seconds=seconds, log_loss=log_loss, progress=progress)
    _table(output, curve)
    inputs = f"the {task.total_in_words} {task.inputs_in_words.rstrip(',')}"
    sure = curve.largest_margin(Fraction(99, 100))
    if sure is not None:
        output.say(f"on at least 99 % of {inputs} the right output wins by more than {sure:g}, the largest such margin of these")
    if curve.loss is not None:
        output.say(f"mean cross-entropy over {inputs}: at least {curve.loss[0]:.9f}, at most {curve.loss[1]:.9f} nats")
    output.say(f"({curve.method}, {curve.seconds:.1f} s; theorems about the real-number network)")
    output.result({**curve.as_json(), "assumptions": list(weights.assumptions), "weights_sha256": weights.sha256})


def _table(output: Output, curve: MarginCurve) -> None:
    output.table(
        ["right by more than", "lower", "upper"],
        [
            [f"{p.margin:g}", _share(row["lower"]), _share(row["upper"])]
            for p, row in zip(curve.points, curve.as_json()["points"], strict=True)
        ],
    )


def _share(value: float) -> str:
    return f"{value:.8f}"
