"""`--where` and `--distribution`: which sequences a question is about, and how likely they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from compactproofs.cli.output import note, tokens_of

if TYPE_CHECKING:
    from compactproofs.mixtures import MixedQuestion
    from compactproofs.model.kinds import Model
    from compactproofs.tasks import AbstractTask

WhereOption = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="SPEC",
        help="Only sequences of a region: max>=N, min>=N, copies:T>=N, copies-of-max>=N (each also with <= or =), contains:T, lacks:T, "
        "distinct; joined by commas.",
    ),
]
DistributionOption = Annotated[
    str,
    typer.Option(
        "--distribution",
        metavar="SPEC",
        help="How likely sequences are: uniform, product:w0,w1,... (one weight per token; a list per position, separated by ;), or "
        "FILE.json with a product or a mixture of products.",
    ),
]


def asked(
    weights: Model, spec: str | None, fixed: tuple[str | None, str | None], where: str | None, distribution: str
) -> AbstractTask | MixedQuestion:
    """The question: a task, or a mixture of them. `fixed` are prefix and suffix. Where no task was asked for it is the one that the
    model's file names, or max; only what was asked for is imported."""
    from compactproofs.mixtures import MixedQuestion
    from compactproofs.tasks import Mixture, task_for
    from compactproofs.tasks.distribution_files import distribution_of
    from compactproofs.tasks.imported import task_by_user

    prefix, suffix = tokens_of("--prefix", fixed[0]), tokens_of("--suffix", fixed[1])
    chosen = distribution_of(distribution)
    found: AbstractTask | MixedQuestion
    if isinstance(chosen, Mixture):
        found = MixedQuestion.of(weights, chosen, spec, prefix=prefix, suffix=suffix, where=where, make=task_by_user)
    else:
        found = task_for(weights, spec, prefix=prefix, suffix=suffix, where=where, distribution=chosen, make=task_by_user)
    if spec is None and weights.task is not None:
        note(f"note: the task is {weights.task}, as the model's file says")
    return found


def no_certificate(distribution: str) -> str:
    """Why there is no certificate about a mixture."""
    return (
        f"--distribution {distribution:.60} is a mixture, and a certificate is about one product distribution: make one for each part "
        "(--distribution product:... or a file with that part); the bound of the mixture is the sum of theirs, by the shares"
    )
