"""Time that threshold proofs may take."""

from __future__ import annotations

from compactproofs.budget import Budget
from compactproofs.cores import available_cores
from compactproofs.errors import InfeasibleError
from compactproofs.model.kinds import Model
from compactproofs.search.engine import SECONDS_PER_TERM
from compactproofs.strategies.base import Request


def require_whole(done: int, wanted: int, budget: Budget, name: str) -> None:
    """Raise if a proof that is all or nothing has run out of time."""
    if done < wanted:
        raise InfeasibleError(
            f"{name} {out_of_time(budget)}: {done} of {wanted} labels are done. Allow more (--seconds), or try threshold-best."
        )


def out_of_time(budget: Budget) -> str:
    """Why a proof ended too early."""
    return "was interrupted" if budget.stopped else f"is not finished after the {budget.used:.1f} s allowed"


def seconds_for_pairs(weights: Model) -> float:
    """About how long looking at every pair takes; decides only what is worth starting."""
    terms = weights.d_vocab**3 / 2 * weights.d_vocab_out * weights.n_ctx
    return terms * SECONDS_PER_TERM / available_cores()


def refuse_if_too_long(request: Request, name: str, estimate: float) -> None:
    """Raise if a proof is likely to take longer than allowed."""
    if request.seconds is not None and estimate > request.seconds:
        raise InfeasibleError(
            f"{name} would take about {estimate:.1f} s at d_vocab={request.weights.d_vocab}, more than the {request.seconds:g} s allowed. "
            "Allow more (--seconds), or try threshold-cubic-pooled or threshold-quadratic-pooled."
        )
