"""`compactproofs counterexamples`: which inputs can fail."""

from __future__ import annotations

from typing import Annotated

import typer

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
    require_seconds,
)
from compactproofs.cli.questions import DistributionOption, WhereOption, asked
from compactproofs.errors import TaskError

_SHOWN = 30


def counterexamples(
    model: ModelArgument,
    label: Annotated[int | None, typer.Option("--label", metavar="M", help="Only inputs whose right output is M.")] = None,
    seconds: Annotated[float, typer.Option("--seconds", help="For the proof and the search together.")] = 30.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the search.")] = 0,
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
    """Say for each label whether an input fails whose right output it is: yes, with the input; no, proven; or not known.

    A threshold proof bounds how many inputs of a label fail; 0 means that none does. Where it leaves some, a search looks for one. Every
    input shown fails for certain: over the real numbers another output's logit is at least as large. A tie fails.
    """
    output = Output(json_path, force=force, inputs=inputs_of(model))
    from compactproofs.failing_inputs import NO, UNKNOWN, YES
    from compactproofs.failing_inputs import counterexamples as find
    from compactproofs.markov import MarkovQuestion
    from compactproofs.mixtures import MixedQuestion
    from compactproofs.model.zoo import resolve

    require_seconds(seconds)
    weights = resolve(model, n_heads=n_heads, normalization=normalization, n_ctx=n_ctx)
    output.assumptions(weights.assumptions)
    problem = asked(weights, task, (prefix, suffix), where, distribution)
    if isinstance(problem, MixedQuestion | MarkovQuestion):
        raise TaskError(f"--distribution {distribution:.60}: ask about a product distribution or a region, not about a mixture or a chain")
    found = find(weights, problem, label=label, seconds=seconds, seed=seed)
    open_ones = sorted((each for each in found.labels if each.any_fails != NO), key=lambda each: -each.failing_at_most)
    if open_ones:
        output.table(
            ["label", "any fails", "at most", "of", "example", "wins", "by about", "worst last tokens"],
            [
                [
                    str(each.label),
                    each.any_fails,
                    _brief(each.failing_at_most),
                    _brief(each.total),
                    "-" if each.example is None else " ".join(map(str, each.example)),
                    "-" if each.output is None else str(each.output),
                    "-" if each.by is None else f"{each.by:.3g}",
                    " ".join(str(token) for token, _ in each.queries),
                ]
                for each in open_ones[:_SHOWN]
            ],
        )
        if len(open_ones) > _SHOWN:
            output.say(f"and {len(open_ones) - _SHOWN} more labels; --json has all")
    kinds = {kind: [each.label for each in found.labels if each.any_fails == kind] for kind in (YES, NO, UNKNOWN)}
    output.say(f"labels with a failing input: {len(kinds[YES])}; proven without: {len(kinds[NO])}; not known: {len(kinds[UNKNOWN])}")
    share = found.failing_at_most / found.total
    output.say(f"at most {_brief(found.failing_at_most)} of {_brief(found.total)} inputs fail ({share:.3g}); {found.seconds:.1f} s")
    if found.region.mass:
        size = f"{_brief(found.region.mass)} inputs ({found.region.mass / found.total:.3g})"
        output.say(f"all that fail lie in a region of {size}, an automaton of {found.region.automaton.n_states} states; --json has it")
    output.result({**found.as_json(), "assumptions": list(weights.assumptions), "weights_sha256": weights.sha256})


def _brief(number: int) -> str:
    return str(number) if number < 10**9 else f"{number:.3e}"
