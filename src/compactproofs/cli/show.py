"""`compactproofs show`: what a certificate says."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from compactproofs.cli.output import ForceOption, JsonOption, Output, inputs_of

if TYPE_CHECKING:
    from compactproofs.certificates.explain import Explanation, Side


def show(
    certificate: Annotated[str, typer.Argument(metavar="CERT", help="A certificate, as 'prove --certificate' writes it.")],
    json_path: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """Explain a certificate: what it claims, about which model and question, and how it argues.

    Nothing is checked. 'compactproofs check CERT MODEL' does that.
    """
    output = Output(json_path, force=force, inputs=inputs_of(certificate))
    from compactproofs.certificates.explain import explain
    from compactproofs.checker import MalformedError, read_bytes
    from compactproofs.errors import CertificateError

    try:
        data = read_bytes(certificate, "certificate")
    except MalformedError as error:
        raise CertificateError(str(error)) from None
    found = explain(data)
    output.say(f"{certificate}: {len(data)} bytes, written by {found[0].producer}")
    for each in found:
        _say(output, each)
    output.say()
    output.say("Nothing of this has been checked. To check it: compactproofs check CERT MODEL")
    output.result([_as_json(each) for each in found])


def _say(output: Output, each: Explanation) -> None:
    least, most, total = each.correct_at_least, each.correct_at_most, each.total
    share = "" if total == 0 else f" ({least / total:.8f}" + ("" if most is None else f" to {most / total:.8f}") + ")"
    output.say()
    output.say("The claim" + ("" if each.position is None else f" at position {each.position}"))
    output.say(f"  right      at least {least}" + ("" if most is None else f" and at most {most}") + f" of {total}{share}")
    if each.margin is not None:
        output.say(f"             right means: the logit is larger by more than {each.margin} than every other")
    output.say(f"  task       {each.task}; {each.distribution}")
    meaning = "the network over the real numbers" if each.semantics == "real" else "every float32 evaluation, by an error model"
    output.say(f"  semantics  {each.semantics}: {meaning}")
    output.say("  model      " + ", ".join(f"{name} {value}" for name, value in each.model.items()))
    for assumption in each.assumptions:
        output.say(f"  assumed    {assumption}")
    output.say("The argument")
    output.say(f"  below      {_in_words(each.lower, 'may fail')}")
    if each.upper is not None:
        output.say(f"  above      {_in_words(each.upper, 'may be right')}")


def _in_words(side: Side, otherwise: str) -> str:
    terms = ", ".join(f"{count} {kind}" for kind, count in sorted(side.terms.items())) or "none"
    text = f"{side.parts} parts with {side.leaves} leaves; terms: {terms}; {side.listed} sequences decided one by one"
    if side.given_up:
        text += f"; of {side.given_up} leaves nothing is claimed, so that all of them {otherwise}"
    if side.busiest and side.busiest[0][1]:
        text += "; most is about the labels " + ", ".join(f"{label} ({count})" for label, count in side.busiest)
    return text


def _as_json(each: Explanation) -> dict[str, object]:
    own = asdict(each)
    for name in ("correct_at_least", "correct_at_most", "total"):
        own[name] = None if own[name] is None else str(own[name])
    return own
