"""`compactproofs accuracy`: how often the model is right."""

from __future__ import annotations

from typing import Annotated

import typer

from compactproofs.cli.margins import MarginOption, margin_of
from compactproofs.cli.output import (
    ForceOption,
    HeadsOption,
    JsonOption,
    LengthOption,
    ModelArgument,
    NormalizationOption,
    Output,
    PrefixOption,
    SuffixOption,
    TaskOption,
    inputs_of,
    progress_bar,
    require_seconds,
)
from compactproofs.cli.questions import DistributionOption, WhereOption, asked
from compactproofs.errors import CompactProofsError


def accuracy(
    model: ModelArgument,
    samples: Annotated[int | None, typer.Option("--samples", metavar="N", help="Sample N sequences instead of evaluating all.")] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="Refuse if it would take longer than this.")] = 60.0,
    confidence: Annotated[
        float | None, typer.Option("--confidence", help="Confidence of the Clopper-Pearson interval of a sample; by default 0.99.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the sample; by default 0.")] = None,
    margin: MarginOption = None,
    task: TaskOption = None,
    where: WhereOption = None,
    distribution: DistributionOption = "uniform",
    n_heads: HeadsOption = None,
    normalization: NormalizationOption = None,
    n_ctx: LengthOption = None,
    prefix: PrefixOption = None,
    suffix: SuffixOption = None,
    json_path: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """Measure accuracy over all inputs, exactly, by brute force; or in a sample where there are too many.

    Exact means exact: a sequence counts as correct if the right output has strictly the largest logit over the real numbers. Margins that
    float64 cannot decide are decided again in exact arithmetic; what even that leaves open (an exact tie behind an MLP) is said.
    """
    output = Output(json_path, force=force, inputs=inputs_of(model))
    from compactproofs.mixtures import accuracy_asked
    from compactproofs.model.zoo import resolve
    from compactproofs.tasks import AbstractTask

    if samples is None and (confidence, seed) != (None, None):
        raise CompactProofsError("--confidence and --seed are about a sample: give --samples N too")
    require_seconds(seconds)
    weights = resolve(model, n_heads=n_heads, normalization=normalization, n_ctx=n_ctx)
    output.assumptions(weights.assumptions)
    problem = asked(weights, task, (prefix, suffix), where, distribution)
    by = margin_of(margin)
    if by:
        output.say(f"right means: by more than {margin}")
    counted = isinstance(problem, AbstractTask) and problem.uniform
    if not isinstance(problem, AbstractTask) or problem.allowed is not None or problem.partial or not problem.uniform:
        output.say(f"inputs: {problem.inputs_in_words.rstrip(',')}")
    with progress_bar("sampling" if samples else "brute force") as progress:
        result = accuracy_asked(
            weights,
            problem,
            samples=samples,
            seconds=seconds,
            confidence=0.99 if confidence is None else confidence,
            seed=seed or 0,
            progress=progress,
            margin=by,
        )
    sequences = "sequences" if counted else "(the mass of all sequences)"
    if result.method == "sampling":
        output.say(f"accuracy about {result.accuracy:.6f}: {result.correct} of {result.total} sampled sequences are right")
        output.say(f"{100 * result.confidence:g} % Clopper-Pearson interval: [{result.interval[0]:.6f}, {result.interval[1]:.6f}]")
    elif result.undecided:
        output.say(f"accuracy at least {result.accuracy:.8f}: {result.correct} of {result.total} {sequences} for certain")
    else:
        output.say(f"accuracy {result.accuracy:.8f}, exactly {result.correct} of {result.total} {sequences}")
    details = f"{result.seconds:.2f} s; {result.decided_exactly} sequences needed exact arithmetic"
    output.say(details + (f"; {result.undecided} stay undecided and count as wrong" if result.undecided else ""))
    output.result({**result.as_json(), "inputs": problem.inputs_in_words.rstrip(","), "weights_sha256": weights.sha256})
