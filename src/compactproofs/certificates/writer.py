"""Writing certificates: a witness for each family of strategies, and the claim that the checker's own rule confirms for it."""

from __future__ import annotations

from typing import Any

from compactproofs import checker
from compactproofs.certificates.certificate import Certificate
from compactproofs.certificates.checking import network
from compactproofs.certificates.gaps import gap_witness
from compactproofs.certificates.pair_witness import Efforts, PairWitness
from compactproofs.certificates.pools import pool_witness
from compactproofs.errors import CertificateError
from compactproofs.model.weights import Weights
from compactproofs.strategies.base import AbstractStrategy
from compactproofs.strategies.cubic import Cubic
from compactproofs.strategies.shared import Shared
from compactproofs.strategies.subcubic import Subcubic
from compactproofs.strategies.threshold import ThresholdBest, ThresholdExactOutput, ThresholdQuartic
from compactproofs.strategies.threshold.pairwise import first_effort
from compactproofs.strategies.threshold.tabled import Tabled
from compactproofs.tasks import AbstractTask, MaxOfK
from compactproofs.version import __version__

REAL, FLOAT32 = checker.REAL, checker.FLOAT32


def certify(
    strategy: AbstractStrategy,
    weights: Weights,
    task: AbstractTask,
    correct_at_least: int | None = None,
    correct_at_most: int | None = None,
    semantics: str = REAL,
) -> Certificate:
    """Write a proof down.

    Args:
        strategy: whose argument to use.
        weights: the model.
        task: max-of-K.
        correct_at_least: what has been proven; the certificate claims no more. None: claim all that the witness proves.
        correct_at_most: what has been proven; the certificate claims no less. None: no upper bound.
        semantics: `real`, or `float32-any-order` for a claim about the float32 forward pass.
    """
    _require_certifiable(strategy, task, semantics)
    if semantics == FLOAT32 and correct_at_most is not None:
        raise CertificateError("upper bounds are certified about the real-number network only")
    raw = network(weights)
    divisor = str(raw.divisor)
    try:
        tables = checker.tables(raw, divisor, semantics)
    except checker.RejectedError as error:
        raise CertificateError(str(error)) from None
    rule, _ = checker.STRATEGIES[strategy.name]
    witness, upper = _witnesses(strategy, weights, tables, rule, correct_at_least, correct_at_most)
    meter = checker.Meter()
    proven = checker.LOWER_RULES[rule](tables, witness, meter)
    at_least = proven if correct_at_least is None else min(proven, correct_at_least)
    at_most = None
    if upper is not None and correct_at_most is not None:
        at_most = max(task.total - checker.check_failures(tables, upper, meter), correct_at_most)
    return Certificate(
        {
            "format": checker.FORMAT,
            "version": checker.VERSION,
            "theorem": checker.THEOREM,
            "semantics": semantics,
            "error_model": checker.ERROR_MODEL if semantics == FLOAT32 else None,
            "producer": f"compactproofs {__version__}",
            "strategy": {"name": strategy.name, "parameters": strategy.parameters},
            "task": "max",
            "distribution": "uniform",
            "model": {
                **{name: getattr(weights, name) for name in ("d_vocab", "d_vocab_out", "d_model", "d_head", "n_ctx")},
                "score_divisor_squared": divisor,
                "weights_sha256": weights.sha256,
                "assumptions": list(weights.assumptions),
            },
            "claim": {
                "correct_at_least": str(at_least),
                "correct_at_most": None if at_most is None else str(at_most),
                "total": str(task.total),
            },
            "lower": {"rule": rule, "witness": witness},
            "upper": None if upper is None else {"rule": "failures", "witness": upper},
            "end": checker.FORMAT,
        }
    )


def _require_certifiable(strategy: AbstractStrategy, task: AbstractTask, semantics: str) -> None:
    if semantics not in (REAL, FLOAT32):
        raise CertificateError(f"unknown semantics {semantics!r}; known: {REAL}, {FLOAT32}")
    if not strategy.sound:
        raise CertificateError(
            f"{strategy.label} as published is not a proof, so there is nothing to certify. Use the repaired variant (repaired=True)."
        )
    if strategy.name not in checker.STRATEGIES:
        known = ", ".join(checker.STRATEGIES)
        raise CertificateError(
            f"{strategy.name} has no certificate shorter than itself: checking it means repeating it. With a certificate: {known}"
        )
    if not isinstance(task, MaxOfK):
        raise CertificateError(f"certificates are about max-of-K; this is the task {task.title!r}")


def _witnesses(
    strategy: AbstractStrategy, weights: Weights, tables: checker.Tables, rule: str, at_least: int | None, at_most: int | None
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Witnesses of the lower bound and, if `at_most` is given, of the upper bound."""
    pairs = PairWitness(weights, tables, _efforts(strategy, weights), at_least, at_most)
    upper = pairs.upper() if at_most is not None else None
    if isinstance(strategy, Cubic):
        return {}, upper
    if isinstance(strategy, Subcubic):
        return gap_witness(strategy, weights, Shared()), upper
    if isinstance(strategy, Tabled):
        return pool_witness(strategy, weights, tables), upper
    return pairs.lower(), upper


def _efforts(strategy: AbstractStrategy, weights: Weights) -> Efforts:
    if isinstance(strategy, ThresholdQuartic):
        return Efforts(first_effort(weights), refine=False, listing=False)
    if isinstance(strategy, ThresholdExactOutput):
        return Efforts(first_effort(weights, apart=True), refine=False, listing=False)
    return Efforts(first_effort(weights), refine=True, listing=isinstance(strategy, ThresholdBest))
