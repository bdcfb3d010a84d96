"""`compactproofs prove`: a theorem about the model."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compactproofs.cli.destination import Destination, is_certificate, make_folder
from compactproofs.cli.margins import LogLossOption, MarginOption, MarginsOption, asks_for_curve, margin_of, show_curve
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
    brief_integer,
    inputs_of,
    note,
    progress_bar,
    require_seconds,
    require_variant_of_use,
)
from compactproofs.cli.positions import PositionOption, position_of, show_every
from compactproofs.cli.proofs import show_proofs
from compactproofs.cli.questions import DistributionOption, WhereOption, asked, no_certificate
from compactproofs.cli.worst import WorstBlocksOption, factor_of, show_worst
from compactproofs.errors import CertificateError, StrategyError, TaskError

if TYPE_CHECKING:
    from compactproofs.certificates.certificate import Certificate
    from compactproofs.model.kinds import Model
    from compactproofs.proof import Proof
    from compactproofs.strategies.base import AbstractStrategy
    from compactproofs.tasks import AbstractTask


Places = dict[str, Destination]
"""By the label of a strategy: where its certificate goes."""


def prove(
    model: ModelArgument,
    strategy: Annotated[
        list[str] | None,
        typer.Option("--strategy", metavar="NAME", help="Strategy to run; may be repeated. See 'compactproofs strategies'."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Run every strategy.")] = False,
    family: Annotated[str | None, typer.Option("--family", metavar="F", help="Run every strategy of one family.")] = None,
    full: Annotated[bool, typer.Option("--full", help="List every proof, not only the frontier and a summary.")] = False,
    variant: Annotated[
        str | None, typer.Option("--variant", help="Of the paper's subcubic strategies: repaired (the default), published or both.")
    ] = None,
    max_flops: Annotated[
        float | None,
        typer.Option("--max-flops", metavar="N", help="Keep to this many FLOPs; compact strategies search for the best within it."),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            help="Budget of threshold-best, by default a few; do not run another strategy that would take longer, by default 60.",
        ),
    ] = None,
    upper: Annotated[bool, typer.Option("--upper", help="Prove an upper bound on accuracy too.")] = False,
    certificate: Annotated[
        str | None, typer.Option("--certificate", metavar="PATH", help="Write a certificate; with several strategies, a folder of them.")
    ] = None,
    semantics: Annotated[
        str,
        typer.Option(
            "--semantics", help="What the certificate is about: real, or float32-any-order (a second count, under an error model)."
        ),
    ] = "real",
    work: Annotated[
        int | None,
        typer.Option("--work", min=1, metavar="N", help="Units of work that checking the certificate may take; by default a minute's."),
    ] = None,
    worst_blocks: WorstBlocksOption = None,
    margin: MarginOption = None,
    margins: MarginsOption = None,
    log_loss: LogLossOption = False,
    task: TaskOption = None,
    where: WhereOption = None,
    distribution: DistributionOption = "uniform",
    position: PositionOption = "last",
    n_heads: HeadsOption = None,
    normalization: NormalizationOption = None,
    n_ctx: LengthOption = None,
    prefix: PrefixOption = None,
    suffix: SuffixOption = None,
    json_path: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """Prove a lower bound on the model's accuracy over all inputs; without a strategy, by threshold-best, the tightest we have.

    The bound is a theorem about the real-number network with exactly these float32 weights; a tie counts as wrong. A strategy that is
    infeasible at this size is listed with the reason, not run. With several strategies the table is sorted by FLOPs; a star marks the
    frontier: no other proof is both shorter and tighter. Of many proofs the frontier is shown, and a summary (--full: all). Ctrl-C shows
    what has been proven so far. With --position every there is a theorem for each position, and --seconds is for all of them together. With
    --distribution counts are masses: the sums of what sequences weigh. With --margin X an input is right only if the right output's logit
    is larger by more than X than every other; --margins and --log-loss ask for a whole curve.
    """
    output = Output(json_path, force=force, inputs=inputs_of(model))
    from compactproofs.certificates.writer import NO_FLOAT32, require_margin_certifiable, require_work
    from compactproofs.mixtures import prove_asked
    from compactproofs.model.zoo import resolve
    from compactproofs.positions import readings
    from compactproofs.proving import Seconds
    from compactproofs.tasks import AbstractTask

    require_seconds(1.0 if seconds is None else seconds)
    limit: Seconds = "usual" if seconds is None else seconds
    at = position_of(position)
    chosen = _chosen(strategy or [], every, family, variant, max_flops)
    weights = resolve(model, n_heads=n_heads, normalization=normalization, n_ctx=n_ctx)
    output.assumptions(weights.assumptions)
    question = asked(weights, task, (prefix, suffix), where, distribution)
    is_task = isinstance(question, AbstractTask)
    problem = question if isinstance(question, AbstractTask) else question.plain
    refusal = no_certificate(question, distribution)
    if certificate is not None and refusal is not None:
        raise CertificateError(refusal)
    if not is_task and (margins is not None or log_loss):
        raise TaskError("--margins and --log-loss are about product distributions, not about mixtures and Markov chains")
    if worst_blocks is not None:
        factor_of(worst_blocks)
        if not is_task or at == "every":
            raise TaskError("--worst-blocks is about one position, and a task, a region or a product distribution: ask about each part")
    by = margin_of(margin)
    if asks_for_curve(margins, log_loss, certificate, margin, at):
        show_curve(output, weights, problem, margins, log_loss=log_loss, strategies=chosen, seconds=seconds)
        return
    places = readings(weights, problem, at)
    place = _place(output, certificate, semantics, chosen)
    if place is not None:
        require_work(places[-1].network, sum(len(problem.label_automaton(label).tokens) for label in problem.labels), work)
    if place is not None and by:
        require_margin_certifiable(places[-1].network, semantics)
    if semantics != "real" and weights.rewritten:
        raise CertificateError(f"--semantics {semantics}: {NO_FLOAT32}")
    if max_flops is not None:
        chosen = _within(chosen, max_flops, places[-1].network, places[-1].task)
    output.assumptions(list(dict.fromkeys(text for each in places for text in each.assumptions)))
    proofs: list[Proof] = []
    interrupted = False
    try:
        with progress_bar("proving") as progress:
            for proof in prove_asked(weights, chosen, question, position=at, upper=upper, seconds=limit, progress=progress, margin=by):
                proofs.append(proof)
    except KeyboardInterrupt:
        interrupted = True
        wanted = len(chosen) * len(places)
        done = f"; {len(proofs)} of {wanted} proofs:" if wanted > 1 else "; what has been proven so far:"
        note(f"interrupted{done if proofs else ' before anything was proven'}")
    if max_flops is not None and proofs:  # counting depends on the weights, so some turn out longer than their sizes say
        proofs = _short(proofs, max_flops)
    proofs.sort(key=lambda proof: (proof.position or 0, proof.flops))
    if proofs and at == "every":
        show_every(output, proofs, len(places))
    elif proofs:
        show_proofs(output, proofs, full=full)
    results = [proof.as_json() for proof in proofs]
    if worst_blocks is not None and not interrupted:
        _add_worst(output, proofs, results, factor_of(worst_blocks))
    if interrupted:
        output.result(results)
        raise typer.Exit(130)
    if output.for_people and len(proofs) > 1 and at != "every" and is_task and not by:
        _show_truth(output, proofs, places[0].network, places[0].task)
    if place is not None:
        for label in dict.fromkeys(proof.label for proof in proofs):
            own = [(proof, result) for proof, result in zip(proofs, results, strict=True) if proof.label == label]
            written = _write(output, [proof for proof, _ in own], place, semantics, work)
            for _, result in own:
                result["certificate"] = written
    output.result(results)


def _add_worst(output: Output, proofs: list[Proof], results: list[dict[str, Any]], factor: Fraction | None) -> None:
    """The worst case over blocks, of each proof that has a ledger; of a single one, it must have one."""
    from compactproofs.worst_blocks import worst_blocks

    for proof, result in zip(proofs, results, strict=True):
        try:
            found = worst_blocks(proof, factor)
        except StrategyError:
            if len(proofs) == 1:
                raise
            continue
        show_worst(output, found, proof.label)
        result["worst_blocks"] = found.as_json()


def _place(output: Output, certificate: str | None, semantics: str, chosen: list[AbstractStrategy]) -> Destination | Places | None:
    """Where certificates go: a file for one strategy, else a folder. What cannot work is refused before anything is proven."""
    from compactproofs.certificates.writer import require_certifiable, require_semantics

    require_semantics(semantics)
    if certificate is None:
        if semantics != "real":
            raise CertificateError(f"--semantics {semantics} is what a certificate is about: give --certificate PATH too")
        return None
    if len(chosen) == 1:
        require_certifiable(chosen[0])
        return output.destination("--certificate", certificate, is_certificate)
    folder = make_folder("--certificate (of several strategies)", Path(certificate))
    places = {}
    for strategy in chosen:
        with suppress(CertificateError):
            require_certifiable(strategy)
            path = folder / f"{strategy.label.replace('/', '.')}.cert.json"
            places[strategy.label] = output.destination("--certificate", path, is_certificate)
    return places


def _write(output: Output, proofs: list[Proof], place: Destination | Places, semantics: str, work: int | None) -> dict[str, Any]:
    """Write the certificate of one strategy, for all its positions; of several strategies, one that has none is listed with the reason."""
    from compactproofs.checker import MOST_WORK
    from compactproofs.proof import certify

    proof = proofs[0]
    try:
        certificate = certify(proof if proof.position is None else proofs, semantics, work)
    except CertificateError as error:
        if isinstance(place, Destination):
            raise
        output.say(f"no certificate for {proof.label}: {error}")
        return {"path": None, "reason": str(error)}
    if not isinstance(place, Destination):
        place = place[proof.label]
    place.write(certificate.data)
    at_least = certificate.correct_at_least
    share = _in_words(certificate)
    if certificate.positions:
        share = f"{len(certificate.positions)} positions, at the weakest {share}"
    output.say(f"certificate {place.path}: {len(certificate.data)} bytes, {certificate.semantics}, {share}")
    if semantics == "real" and proof.position is None and at_least < proof.correct_at_least:
        output.say(f"  (the proof has {proof.correct_at_least}: the certificate counts in coarser integers)")
    if certificate.work > MOST_WORK:
        enough = 2 ** certificate.work.bit_length()
        output.say(f"  (checking it takes about {certificate.work / 1e9:.0f} s, more than is allowed by default: check --work {enough})")
    most = certificate.correct_at_most
    return {
        "path": str(place.path),
        "bytes": len(certificate.data),
        "semantics": certificate.semantics,
        "correct_at_least": str(at_least),
        "correct_at_most": None if most is None else str(most),
        "work": certificate.work,
    }


def _in_words(certificate: Certificate) -> str:
    """What a certificate claims, both bounds if it has both."""
    least, most, total = certificate.correct_at_least, certificate.correct_at_most, certificate.total
    if most is None:
        return f"at least {least} of {total} sequences ({least / total:.6f}), no upper bound"
    if most == least:
        return f"exactly {least} of {total} sequences ({least / total:.6f})"
    return f"at least {least} and at most {most} of {total} sequences ({least / total:.6f} to {most / total:.6f})"


def _chosen(names: list[str], every: bool, family: str | None, variant: str | None, max_flops: float | None) -> list[AbstractStrategy]:
    from compactproofs.strategies.registry import DEFAULT, all_strategies, named_strategies, strategy

    wanted = "repaired" if variant is None else variant
    picked = named_strategies(names, wanted)
    if every or family is not None or (max_flops is not None and not names):
        picked += [s for s in all_strategies(family, wanted) if s not in picked]
    chosen = picked or [strategy(DEFAULT)]
    if max_flops is not None and isfinite(max_flops):
        chosen = [each.within(max(int(max_flops), 1)) for each in chosen]
    require_variant_of_use(variant, chosen)
    return chosen


def _within(chosen: list[AbstractStrategy], max_flops: float, weights: Model, task: AbstractTask) -> list[AbstractStrategy]:
    from compactproofs.errors import StrategyError, UnsupportedError
    from compactproofs.strategies.lengths import length_by_sizes

    kept, lengths = [], []
    for strategy in chosen:
        with suppress(UnsupportedError):
            lengths.append(length_by_sizes(strategy, weights, task).flops)
            kept += [strategy] if lengths[-1] <= max_flops else []
    if not lengths:
        raise StrategyError("none of these strategies is about networks of this kind; without --max-flops they are listed with the reason")
    if not kept:
        raise StrategyError(f"--max-flops {max_flops:g}: the shortest of these proofs takes {brief_integer(min(lengths))} FLOPs")
    return kept


def _short(proofs: list[Proof], max_flops: float) -> list[Proof]:
    from compactproofs.errors import StrategyError

    kept = [proof for proof in proofs if proof.flops <= max_flops]
    if not kept:
        shortest = brief_integer(min(proof.flops for proof in proofs))
        raise StrategyError(f"--max-flops {max_flops:g}: the shortest of these proofs takes {shortest} FLOPs")
    return kept


def _show_truth(output: Output, proofs: list[Proof], weights: Model, task: AbstractTask) -> None:
    """The accuracy to compare with: exact if brute force is among the proofs or quick, else a sample."""
    from compactproofs.errors import InfeasibleError
    from compactproofs.measuring import accuracy

    if any(p.strategy == "brute-force" and p.status == "proven" for p in proofs):
        return
    try:
        exact = accuracy(weights, task, seconds=2.0)
        output.say(f"true accuracy {exact.accuracy:.8f}, by brute force")
    except InfeasibleError:
        low, high = accuracy(weights, task, samples=100_000).interval
        output.say(f"true accuracy in [{low:.6f}, {high:.6f}] with 99 % confidence (Clopper-Pearson, 100000 samples)")
