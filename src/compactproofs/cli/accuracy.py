"""`compactproofs accuracy`: how often the model is right."""

from __future__ import annotations

from typing import Annotated

import typer

from compactproofs.cli.output import JsonOption, ModelArgument, Output, TaskOption, progress_bar


def accuracy(
    model: ModelArgument,
    samples: Annotated[int | None, typer.Option("--samples", metavar="N", help="Sample N sequences instead of evaluating all.")] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="Refuse if brute force would take longer than this.")] = 60.0,
    confidence: Annotated[float, typer.Option("--confidence", help="Confidence of the Clopper-Pearson interval of a sample.")] = 0.99,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the sample.")] = 0,
    task: TaskOption = "max",
    json_path: JsonOption = None,
) -> None:
    """Measure accuracy over all inputs, exactly, by brute force; or in a sample where there are too many.

    Exact means exact: a sequence counts as correct if the right output has strictly the largest logit over the real numbers. Margins that
    float64 cannot decide are decided again in exact arithmetic.
    """
    output = Output(json_path)
    from compactproofs.measuring import accuracy as measure
    from compactproofs.model.zoo import resolve
    from compactproofs.tasks import task_for

    weights = resolve(model)
    output.assumptions(weights.assumptions)
    with progress_bar("sampling" if samples else "brute force") as progress:
        result = measure(
            weights, task_for(weights, task), samples=samples, seconds=seconds, confidence=confidence, seed=seed, progress=progress
        )
    if result.method == "sampling":
        output.say(f"accuracy about {result.accuracy:.6f}: {result.correct} of {result.total} sampled sequences are right")
        output.say(f"{100 * result.confidence:g} % Clopper-Pearson interval: [{result.interval[0]:.6f}, {result.interval[1]:.6f}]")
    else:
        output.say(f"accuracy {result.accuracy:.8f}, exactly {result.correct} of {result.total} sequences")
    details = f"{result.seconds:.2f} s; {result.decided_exactly} sequences needed exact arithmetic"
    output.say(details + (f"; {result.undecided} stay undecided and count as wrong" if result.undecided else ""))
    output.result(result.as_json())
