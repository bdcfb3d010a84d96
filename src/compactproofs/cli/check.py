"""`compactproofs check`: is a certificate a proof?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from compactproofs.cli.output import (
    ForceOption,
    HeadsOption,
    JsonOption,
    LengthOption,
    ModelArgument,
    NormalizationOption,
    Output,
    inputs_of,
)

if TYPE_CHECKING:
    from compactproofs.checker import Checked


def check(
    certificate: Annotated[str, typer.Argument(metavar="CERT", help="Certificate file, as written by 'prove --certificate'.")],
    model: ModelArgument,
    n_heads: HeadsOption = None,
    normalization: NormalizationOption = None,
    n_ctx: LengthOption = None,
    work: Annotated[
        int | None, typer.Option("--work", min=1, metavar="N", help="Units of work that the check may take; by default about a minute.")
    ] = None,
    coq: Annotated[
        bool, typer.Option("--coq", help="Have the kernel of Coq check what the certificate claims, too; needs Coq and a compiled formal/.")
    ] = False,
    json_path: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """Check a certificate against a model, with the stand-alone checker: exact integers, nothing in the certificate is trusted.

    Exit code 0: accepted, 1: rejected, 2: malformed, 3: internal error. On a machine without this package's dependencies,
    'python -m compactproofs.checker CERT MODEL.safetensors' does the same with the Python standard library alone. With --coq the kernel of
    Coq looks at it too, and its verdict stands.
    """
    output = Output(json_path, force=force, inputs=inputs_of(certificate, model))
    from compactproofs.certificates.checking import check as check_file

    started = time.perf_counter()
    checked = check_file(certificate, model, n_heads=n_heads, normalization=normalization, n_ctx=n_ctx, work=work)
    elapsed = time.perf_counter() - started
    if coq and checked.accepted:
        _check_coq(output, certificate, model, n_heads, normalization, n_ctx)
    output.say(f"{checked.verdict.name.lower().replace('_', ' ')}: {checked.reason} ({elapsed:.2f} s)")
    output.assumptions(checked.assumptions)
    output.result(
        {
            "verdict": checked.verdict.name.lower().replace("_", " "),
            "reason": checked.reason,
            "correct_at_least": None if checked.correct_at_least is None else str(checked.correct_at_least),
            "correct_at_most": None if checked.correct_at_most is None else str(checked.correct_at_most),
            "total": None if checked.total is None else str(checked.total),
            "semantics": checked.semantics,
            "margin": str(checked.margin),
            "question_sha256": checked.question_sha256,
            "assumptions": list(checked.assumptions),
            **({"positions": [_position(each) for each in checked.positions]} if checked.positions else {}),
            "seconds": elapsed,
        }
    )
    raise typer.Exit(checked.verdict.value)


def _check_coq(output: Output, certificate: str, model: str, n_heads: int | None, normalization: str | None, n_ctx: int | None) -> NoReturn:
    """The verdict of Coq's kernel on a certificate that the checker accepts, the theorem and the axioms that it rests on."""
    from compactproofs.certificates.checking import as_written, network
    from compactproofs.certificates.coq import check_coq
    from compactproofs.checker import read_bytes
    from compactproofs.model.zoo import resolve

    weights = resolve(model, n_heads=n_heads, normalization=normalization, n_ctx=n_ctx)
    proved = check_coq(read_bytes(certificate, "certificate"), network(weights), as_written(weights))
    verdict = "accepted" if proved.accepted else "rejected"
    output.say(f"{verdict} by the kernel of Coq: {proved.theorem} ({proved.seconds:.1f} s)")
    output.say(f"axioms: {', '.join(proved.assumptions)}" if proved.accepted else proved.message)
    output.result(
        {
            "verdict": verdict,
            "theorem": proved.theorem,
            "axioms": list(proved.assumptions),
            "message": proved.message,
            "seconds": proved.seconds,
        }
    )
    raise typer.Exit(0 if proved.accepted else 1)


def _position(checked: Checked) -> dict[str, str | int | None]:
    """What a certificate about positions says of one."""
    most = checked.correct_at_most
    return {
        "position": checked.position,
        "correct_at_least": str(checked.correct_at_least),
        "correct_at_most": None if most is None else str(most),
        "total": str(checked.total),
        "question_sha256": checked.question_sha256,
    }
