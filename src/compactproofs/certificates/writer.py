"""Writing certificates: the ledger that the proof already has, and the claim that the checker's own rule confirms for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from compactproofs import checker
from compactproofs.arrays.rounding import round_up
from compactproofs.certificates.certificate import Certificate
from compactproofs.certificates.checking import network
from compactproofs.certificates.encode import encoded, encoded_question
from compactproofs.certificates.hints import certifiable_block
from compactproofs.counting.brute_force import brute_force
from compactproofs.counting.gaps import right_by_margin
from compactproofs.counting.outcome import ExactCount
from compactproofs.errors import CertificateError, DisagreementError, InfeasibleError
from compactproofs.form.embedded import is_affine
from compactproofs.ledger.ledger import Ledger
from compactproofs.ledger.sources import is_pooled
from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.model.weights import Weights
from compactproofs.strategies.base import AbstractStrategy, Origin, Request
from compactproofs.strategies.brute_force import BruteForce
from compactproofs.strategies.threshold import ThresholdBest, ThresholdCubic, ThresholdCubicPooled, ThresholdQuartic
from compactproofs.strategies.threshold.compact import CompactStrategy
from compactproofs.strategies.threshold.tabled import Tabled
from compactproofs.strategies.threshold.upper import parts_above
from compactproofs.tasks import AbstractTask
from compactproofs.tasks.margin import margin_of_question
from compactproofs.tasks.question import FLOAT32, REAL, Question
from compactproofs.version import __version__

NO_FLOAT32 = "float32 claims are about networks of one head without biases and norms: with them, the forward pass takes other steps"
"""Why there is none."""

NO_MARGIN = "certificates with a margin are about networks of one head without an MLP or a norm at the end, over the real numbers"
"""Why there is none."""

_NANOSECONDS = 250
"""Of a product of integers in the checker, with all that is done besides."""
_SECONDS = 60.0
"""For proofs that stand in for one without a ledger that can be written down, and for the referee."""


def certify(
    origin: Origin, at_least: int, at_most: int | None, own: Ledger | None, semantics: str = REAL, work: int | None = None
) -> Certificate:
    """Write down what has been proven; `own` is the ledger of the proof, if it has one.

    The certificate claims just what the checker finds in it. That is at least what was proven, else it is an alarm; for a strategy without
    a ledger of its own (the paper's) a threshold proof stands in that proves at least as much. For `float32-any-order`, a claim about the
    float32 forward pass, the strategy is run again with a margin, and the claim is its own. A check of whole blocks that would take longer
    than `work` units is refused with an estimate.
    """
    require_semantics(semantics)
    strategy, weights, task, masses = origin.strategy, origin.weights, origin.question.task, origin.question.masses
    if origin.question.margin is not None:
        require_margin_certifiable(weights, semantics)
    require_certifiable(strategy)
    if semantics == FLOAT32:
        if at_most is not None:
            raise CertificateError("upper bounds are certified about the real-number network only")
        if weights.rewritten:
            raise CertificateError(NO_FLOAT32)
        question = Question(task, masses, float32_margin(weights, task), FLOAT32)
        return _first(_ledgers(strategy, Request(weights, task, seconds=_SECONDS, asked=question), None), weights, strategy, 0)
    if own is not None:
        require_work(weights, sum(len(part.leaves) for part in (*own.lower, *(own.upper or ()))), work)
    asked = None if masses is None and origin.question.margin is None else origin.question
    ledgers = _ledgers(strategy, Request(weights, task, seconds=_SECONDS, asked=asked), own)
    return _first(ledgers, weights, strategy, at_least, at_most)


def _ledgers(strategy: AbstractStrategy, request: Request, own: Ledger | None) -> Iterator[tuple[Ledger, bool]]:
    """Ledgers that can be written down: the proof's own (True), else of ever stronger strategies that stand in for it."""
    if own is not None and _is_writable(own, request.weights):
        yield own, True
        return
    stronger: list[AbstractStrategy] = [ThresholdCubicPooled(), ThresholdCubic(), ThresholdQuartic(), ThresholdBest()]
    if isinstance(strategy, Tabled):
        stronger.insert(0, type(strategy)("exact", "exact_EQKE+max_diff_exact"))
    elif strategy.family == "threshold" and not isinstance(strategy, CompactStrategy):
        stronger.insert(0, strategy)
    for each in stronger:
        try:
            bound = each.bound(request)
        except InfeasibleError:
            continue
        ledger = None if bound.make_ledger is None else bound.make_ledger()
        if ledger is not None and _is_writable(ledger, request.weights):
            yield ledger, False


def _is_writable(ledger: Ledger, weights: Model) -> bool:
    """Whether the checker knows what the ledger rests on: not the paper's replacements, nor several queries of a whole block at once."""
    return (ledger.factors is None or ledger.factors.exact) and not any(is_pooled(part, weights) for part in ledger.lower)


def _first(
    ledgers: Iterator[tuple[Ledger, bool]], weights: Model, strategy: AbstractStrategy, at_least: int, at_most: int | None = None
) -> Certificate:
    """The certificate of the first ledger in which the checker finds at least what was proven."""
    raw, found = network(weights), None
    for ledger, own in ledgers:
        own_upper = at_most if ledger.upper is not None else None  # a bound that is searched for again may be a little looser
        if at_most is not None and ledger.upper is None:
            ledger = replace(ledger, upper=_above(ledger, weights, at_most))
        elif at_most is None:
            ledger = replace(ledger, upper=None)
        meter = checker.Meter(checker.NO_LIMIT)
        content = _content(ledger, weights, strategy, raw, meter)
        found = Certificate(content, max(meter.work, checker.WORK_PER_BYTE * meter.bytes))
        if found.correct_at_least >= at_least and (own_upper is None or (found.correct_at_most or 0) <= own_upper):
            return found
        if own:
            _referee(strategy, weights, ledger.question, found, (at_least, own_upper))
            return found
    best = "" if found is None else f"; the best that was found claims {found.correct_at_least} of the {at_least} proven"
    raise CertificateError(
        f"{strategy.label} has no ledger that can be written down, and no threshold proof stands in for it within {_SECONDS:g} s{best}"
    )


def _above(ledger: Ledger, weights: Model, at_most: int) -> tuple[Any, ...]:
    question = ledger.question
    asked = None if question.masses is None and question.margin is None else question
    return () if at_most == question.total else parts_above(Request(weights, question.task, seconds=_SECONDS, asked=asked))


def _content(ledger: Ledger, weights: Model, strategy: AbstractStrategy, raw: checker.Network, meter: checker.Meter) -> dict[str, Any]:
    """The certificate, with the claim that the checker finds."""
    written = encoded(ledger, weights)
    try:
        at_least, at_most, _ = checker.proven(written, raw, meter)
    except checker.RejectedError as error:
        raise CertificateError(str(error)) from None
    return {
        "format": checker.FORMAT,
        "version": checker.VERSION,
        "producer": f"compactproofs {__version__}, {strategy.label}",
        "question": written["question"],
        "model": about_model(weights, raw),
        "claim": {
            "correct_at_least": str(at_least),
            "correct_at_most": None if at_most is None else str(at_most),
            "total": str(ledger.question.total),
        },
        **{name: written[name] for name in ("factors", "lower", "upper")},
        "end": checker.FORMAT,
    }


def require_work(weights: Model, leaves: int, work: int | None) -> None:
    """Raise if checking so many leaves of a whole block would take more work than allowed, with an estimate; or if it is none that the
    checker knows."""
    block, most = certifiable_block(weights), checker.MOST_WORK if work is None else work
    if block is None or block.mlp is None:
        return
    products = 4 * leaves * block.n_ctx * block.d_vocab * block.n_heads * block.d_mlp
    if products * _NANOSECONDS > most:
        raise CertificateError(
            f"no certificate: checking {leaves} leaves with {block.d_mlp} neurons takes about {products:.1e} products of integers, "
            f"{products * _NANOSECONDS / 1e9:.0f} s in Python. If that is all right, allow it: --work {2 * products * _NANOSECONDS} "
            "(in Python certify(work=...))"
        )


def about_model(weights: Model, raw: checker.Network) -> dict[str, Any]:
    """The field `model`."""
    return {
        **{name: getattr(weights, name) for name in ("d_vocab", "d_vocab_out", "d_model", "d_head", "n_ctx")},
        "score_divisor_squared": raw.divisor,
        "weights_sha256": weights.sha256,
        "assumptions": list(weights.assumptions),
    }


def _referee(strategy: AbstractStrategy, weights: Model, question: Question, found: Certificate, proven: tuple[int, int | None]) -> None:
    """Raise the alarm unless brute force confirms what the checker does not find.

    A ledger's integers are never below the checker's, so on ordinary models this is not reached. Where weights are extreme the checker
    gives up below 2^-2064.
    """
    at_least, at_most = proven
    try:
        usual = Question(question.task).masses
        if question.masses is not None and (usual is None or not np.array_equal(question.masses, usual)):
            raise InfeasibleError("brute force counts sequences")
        exact = _counted(weights, question)
        confirmed, refuted = exact.correct + exact.undecided, exact.correct
    except InfeasibleError:
        confirmed, refuted = found.correct_at_least, found.correct_at_most or 0
    if at_least > confirmed or (at_most is not None and at_most < refuted):
        raise DisagreementError(
            f"{strategy.label} claims at least {at_least} and at most {at_most} of {found.total}, and the checker finds at least "
            f"{found.correct_at_least} and at most {found.correct_at_most} only",
            f"{strategy.name} {strategy.parameters}, weights {weights.sha256}, compactproofs {__version__}",
        )


def float32_margin(weights: Model, task: AbstractTask) -> np.ndarray:
    """(query, label): how far a float32 forward pass may move any difference of logits, rounded up; 0 where there is no sequence."""
    raw = network(weights)
    value = encoded_question(Question(task, semantics=FLOAT32))
    try:
        meter = checker.Meter(checker.NO_LIMIT)
        question = checker.read_question(value, weights.d_vocab, weights.n_ctx, meter)
        T = checker.tables(raw, question, checker.read_factors(None, raw.sizes()), meter)
    except checker.RejectedError as error:
        raise CertificateError(str(error)) from None
    margins = np.zeros((weights.d_vocab, weights.d_vocab_out))
    for q, (exact, own) in enumerate(zip(T.EU, T.own, strict=True)):
        for m, (x, y) in enumerate(zip(exact, own, strict=True)):
            if x != y:
                margins[q, m] = round_up(Fraction(x - y, 1 << T.scale))
    return margins


def _counted(weights: Model, question: Question) -> ExactCount:
    if question.margin is None or question.semantics != REAL:
        return brute_force(weights, question.task, seconds=_SECONDS)
    if not isinstance(weights, Weights):
        raise InfeasibleError("brute force by a margin is about networks of the first kind")
    return right_by_margin(weights, question.task, margin_of_question(question), seconds=_SECONDS)


def require_margin_certifiable(weights: Model, semantics: str) -> None:
    """Raise unless the checker knows margins of such networks."""
    if semantics != REAL or (isinstance(weights, Network) and not is_affine(weights, by_margin=True)):
        raise CertificateError(NO_MARGIN)


def require_semantics(semantics: str) -> None:
    """Raise unless it is one that certificates can have."""
    if semantics not in (REAL, FLOAT32):
        raise CertificateError(f"unknown semantics {semantics!r}; known: {REAL}, {FLOAT32}")


def require_certifiable(strategy: AbstractStrategy) -> None:
    """Raise, with the reason, unless proofs by this strategy can be certified."""
    if not strategy.sound:
        raise CertificateError(
            f"{strategy.label} as published is not a proof, so there is nothing to certify. Use the repaired variant (repaired=True)."
        )
    if isinstance(strategy, BruteForce):
        raise CertificateError(
            "brute-force has no certificate shorter than itself: checking it means repeating it. "
            "threshold-best certifies the same count for short sequences, of networks that it is about"
        )
