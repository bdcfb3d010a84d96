"""`--where` and `--distribution`: which sequences a question is about, and how likely they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from compactproofs.cli.output import note, tokens_of

if TYPE_CHECKING:
    from compactproofs.mixtures import Asked
    from compactproofs.model.kinds import Model

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
        help="How likely sequences are: uniform, product:w0,w1,... (one weight per token; a list per position, separated by ;), "
        "markov:FILE.json with a Markov chain, or FILE.json with a product, a chain or a mixture of them.",
    ),
]


def asked(weights: Model, spec: str | None, fixed: tuple[str | None, str | None], where: str | None, distribution: str) -> Asked:
    """The question: a task, one of a Markov chain, or a mixture. `fixed` are prefix and suffix. Where no task was asked for it is the one
    that the model's file names, or max; only what was asked for is imported."""
    from compactproofs.markov import MarkovQuestion
    from compactproofs.mixtures import MixedQuestion
    from compactproofs.tasks import Chain, Mixture, task_for
    from compactproofs.tasks.distribution_files import distribution_of
    from compactproofs.tasks.imported import task_by_user

    prefix, suffix = tokens_of("--prefix", fixed[0]), tokens_of("--suffix", fixed[1])
    chosen = distribution_of(distribution)
    found: Asked
    if isinstance(chosen, Mixture):
        found = MixedQuestion.of(weights, chosen, spec, prefix=prefix, suffix=suffix, where=where, make=task_by_user)
    elif isinstance(chosen, Chain):
        found = MarkovQuestion.of(weights, chosen, spec, prefix=prefix, suffix=suffix, where=where, make=task_by_user)
    else:
        found = task_for(weights, spec, prefix=prefix, suffix=suffix, where=where, distribution=chosen, make=task_by_user)
    if spec is None and weights.task is not None:
        note(f"note: the task is {weights.task}, as the model's file says")
    return found


def no_certificate(question: Asked, distribution: str) -> str | None:
    """Why there is no certificate about a mixture or a chain; None if there is one."""
    from compactproofs.markov import MarkovQuestion
    from compactproofs.mixtures import MixedQuestion

    if isinstance(question, MixedQuestion):
        return (
            f"--distribution {distribution:.60} is a mixture, and a certificate is about one product distribution: make one for each part "
            "(--distribution product:... or a file with that part); the bound of the mixture is the sum of theirs, by the shares"
        )
    if isinstance(question, MarkovQuestion):
        return (
            f"--distribution {distribution:.60} is a Markov chain: it is proven about a network that has copies of tokens, and a "
            "certificate would be about that one, not about the model. There are certificates about product distributions and regions"
        )
    return None
