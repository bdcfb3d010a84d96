"""Writing certificates: a witness for each family of strategies, and the claim that the checker's own rule confirms for it."""

from __future__ import annotations

from typing import Any

from compactproofs import checker
from compactproofs.certificates.certificate import Certificate
from compactproofs.certificates.checking import network
from compactproofs.certificates.gaps import gap_witness
from compactproofs.certificates.pair_witness import PairWitness
from compactproofs.certificates.pools import pool_witness
from compactproofs.counting.brute_force import brute_force
from compactproofs.errors import CertificateError, DisagreementError, InfeasibleError
from compactproofs.model.weights import Weights
from compactproofs.strategies.base import AbstractStrategy, Request
from compactproofs.strategies.cubic import Cubic
from compactproofs.strategies.shared import Shared
from compactproofs.strategies.subcubic import Subcubic
from compactproofs.strategies.threshold import ThresholdBest
from compactproofs.strategies.threshold.tabled import Tabled
from compactproofs.strategies.threshold.upper import failures_at_least
from compactproofs.tasks import AbstractTask, MaxOfK
from compactproofs.version import __version__

REAL, FLOAT32 = checker.REAL, checker.FLOAT32

_SECONDS = 60.0
"""For running a strategy whose details are not given."""


def certify(
    strategy: AbstractStrategy,
    weights: Weights,
    task: AbstractTask,
    *,
    details: Any = None,
    correct_at_least: int | None = None,
    correct_at_most: int | None = None,
    semantics: str = REAL,
) -> Certificate:
    """Write a proof down.

    Args:
        strategy: whose argument to use.
        weights: the model.
        task: max-of-K.
        details: what the strategy left in `Bound.details`, if it has been run.
        correct_at_least: what has been proven. The certificate claims just what its witness proves; less is an alarm.
        correct_at_most: the same for an upper bound. None: no upper bound.
        semantics: `real`, or `float32-any-order` for a claim about the float32 forward pass.
    """
    require_semantics(semantics)
    require_certifiable(strategy, task)
    if isinstance(details, Tabled):  # the portfolio ran this one
        strategy = details
    if semantics == FLOAT32 and correct_at_most is not None:
        raise CertificateError("upper bounds are certified about the real-number network only")
    raw = network(weights)
    try:
        tables = checker.tables(raw, semantics)
    except checker.RejectedError as error:
        raise CertificateError(str(error)) from None
    rule, _ = checker.STRATEGIES[strategy.name]
    witness = _lower_witness(strategy, weights, task, tables, details)
    upper = None if correct_at_most is None else _upper_witness(strategy, weights, task, tables, details, correct_at_most)
    at_least = checker.LOWER_RULES[rule](tables, witness)
    at_most = None if upper is None else task.total - checker.check_failures(tables, upper)
    _require_agreement(strategy, weights, task, tables, (correct_at_least, at_least), (at_most, correct_at_most))
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
                "score_divisor_squared": raw.divisor,
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


def _require_agreement(
    strategy: AbstractStrategy,
    weights: Weights,
    task: AbstractTask,
    tables: checker.Tables,
    least: tuple[int | None, int],
    most: tuple[int | None, int | None],
) -> None:
    """Raise the alarm unless the checker's exact arithmetic confirms what a strategy claims: (claimed, shown) and (shown, claimed).

    On ordinary models a witness cannot show less than the strategy found: it counts on the same grid with exact tables. Where weights are
    extreme it may (the checker gives up below 2^-2064, and pools have grids of their own). Then brute force decides; if there are too
    many sequences, the strongest witness that we can write must confirm a pooled strategy, and anything else is an alarm.
    """
    claimed, shown = least
    above, below = most
    if (claimed is None or claimed <= shown) and (above is None or below is None or above <= below):
        return
    try:
        exact = brute_force(weights, task, seconds=_SECONDS)
        confirmed, refuted = exact.correct + exact.undecided, exact.correct
    except InfeasibleError:
        pooled = isinstance(strategy, Tabled)
        confirmed = checker.check_pairs(tables, _lower_witness(ThresholdBest(), weights, task, tables, None)) if pooled else shown
        refuted = task.total if above is None else above
    said = f"{strategy.label} claims at least {claimed} and at most {below} of {task.total} right sequences"
    if (claimed is not None and claimed > confirmed) or (below is not None and below < refuted):
        raise DisagreementError(
            f"{said}, and the checker can confirm at least {shown} and at most {above} only",
            f"{strategy.name} {strategy.parameters}, weights {weights.sha256}, compactproofs {__version__}",
        )


def require_semantics(semantics: str) -> None:
    """Raise unless it is one that certificates can have."""
    if semantics not in (REAL, FLOAT32):
        raise CertificateError(f"unknown semantics {semantics!r}; known: {REAL}, {FLOAT32}")


def require_certifiable(strategy: AbstractStrategy, task: AbstractTask) -> None:
    """Raise, with the reason, unless proofs by this strategy can be certified."""
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


def _lower_witness(
    strategy: AbstractStrategy, weights: Weights, task: AbstractTask, tables: checker.Tables, details: Any
) -> dict[str, Any]:
    if isinstance(strategy, Cubic):
        return {}
    if isinstance(strategy, Subcubic):
        return gap_witness(strategy, weights, Shared(weights, task))
    if isinstance(strategy, Tabled):
        return pool_witness(strategy, weights, tables)
    failures = details if isinstance(details, dict) else strategy.bound(Request(weights, task, seconds=_SECONDS)).details
    return PairWitness(weights, tables, failures).lower()


def _upper_witness(
    strategy: AbstractStrategy, weights: Weights, task: AbstractTask, tables: checker.Tables, details: Any, at_most: int
) -> dict[str, Any]:
    if at_most == task.total:
        return {"pairs": []}
    failures = details if isinstance(strategy, ThresholdBest) else failures_at_least(Request(weights, task, seconds=_SECONDS))
    return PairWitness(weights, tables, failures).upper()
