"""`compactproofs prove`: a theorem about the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from compactproofs.cli.output import JsonOption, ModelArgument, Output, TaskOption, brief_integer, progress_bar

if TYPE_CHECKING:
    from compactproofs.strategies.base import AbstractStrategy, Proof


def prove(
    model: ModelArgument,
    strategy: Annotated[
        list[str] | None,
        typer.Option("--strategy", metavar="NAME", help="Strategy to run; may be repeated. See 'compactproofs strategies'."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Run every strategy.")] = False,
    family: Annotated[str | None, typer.Option("--family", metavar="F", help="Run every strategy of one family.")] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="Do not run a strategy that would take longer than this.")] = 60.0,
    upper: Annotated[bool, typer.Option("--upper", help="Prove an upper bound on accuracy too.")] = False,
    task: TaskOption = "max",
    json_path: JsonOption = None,
) -> None:
    """Prove a lower bound on the model's accuracy over all inputs.

    The bound is a theorem about the real-number network with exactly these float32 weights; a tie counts as wrong. A strategy that is
    infeasible at this size is listed with the reason, not run.
    """
    output = Output(json_path)
    from compactproofs.model.zoo import resolve
    from compactproofs.proving import prove as prove_one
    from compactproofs.tasks import task_for

    chosen = _chosen(strategy or [], every, family)
    weights = resolve(model)
    output.assumptions(weights.assumptions)
    problem = task_for(weights, task)
    proofs = []
    for each in chosen:
        with progress_bar(each.name) as progress:
            proofs.append(prove_one(weights, each, problem, upper=upper, seconds=seconds, progress=progress))
    proofs.sort(key=lambda proof: proof.flops)
    _show(output, proofs)
    output.result([proof.as_json() for proof in proofs])


def _chosen(names: list[str], every: bool, family: str | None) -> list[AbstractStrategy]:
    from compactproofs.strategies.registry import DEFAULT, all_strategies, strategy

    picked = [strategy(name) for name in names]
    if every or family is not None:
        picked += [s for s in all_strategies(family) if s not in picked]
    return picked or [strategy(DEFAULT)]


def _show(output: Output, proofs: list[Proof]) -> None:
    output.table(
        ["strategy", "status", "lower", "upper", "FLOPs", "unexplained", "seconds"],
        [
            [
                p.strategy,
                p.status,
                "-" if p.reason else f"{p.lower:.8f}",
                "-" if p.upper is None or p.reason else f"{p.upper:.8f}",
                brief_integer(p.flops),
                brief_integer(p.unexplained_dimensions),
                f"{p.seconds:.2f}",
            ]
            for p in proofs
        ],
    )
    for proof in proofs:
        output.say()
        output.say(f"{proof.strategy}: {proof.reason or proof.theorem}")
