"""Merging ledgers: of several claims about the same query and label the better stands. A portfolio is a merge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compactproofs.errors import LedgerError
from compactproofs.ledger.ledger import Factored, Ledger, Part
from compactproofs.ledger.verify import verify
from compactproofs.model.weights import Weights


def merge(ledgers: Sequence[Ledger], weights: Weights) -> Ledger:
    """One ledger that proves, for every query and label, the best of what the given ones prove.

    A claim about a query set restricts to each query. Ledgers with different `factors` cannot be merged where both have factored terms.

    Guarantee: the result proves at least as much as each of them.
    Cost: verifying each of them, query by query.
    """
    if not ledgers:
        raise LedgerError("nothing to merge")
    questions = {ledger.question.sha256 for ledger in ledgers}
    if len(questions) != 1 or {ledger.weights_sha256 for ledger in ledgers} != {weights.sha256}:
        raise LedgerError("ledgers about different networks or questions cannot be merged")
    factors = [ledger.factors for ledger in ledgers if ledger.factors is not None and _uses_factors(ledger)]
    if any(other is not factors[0] for other in factors[1:]):
        raise LedgerError("ledgers with different factors cannot be merged")
    uppers = [ledger.upper for ledger in ledgers if ledger.upper is not None]
    return replace(
        ledgers[0],
        lower=_best([(ledger, ledger.lower) for ledger in ledgers], weights, upper=False),
        upper=_best([(ledger, ledger.upper) for ledger in ledgers if ledger.upper is not None], weights, upper=True) if uppers else None,
        factors=factors[0] if factors else None,
    )


def _uses_factors(ledger: Ledger) -> bool:
    terms = (term for part in ledger.lower for leaf in part.leaves if leaf is not None for term in leaf.terms)
    return any(isinstance(term, Factored) for term in terms)


def _best(sides: list[tuple[Ledger, tuple[Part, ...]]], weights: Weights, *, upper: bool) -> tuple[Part, ...]:
    """For each (label, query) the part with the smallest claim. (A pool's table is tighter for one of its queries, so parts stay apart.)"""
    best: dict[tuple[int, int], tuple[int, Part]] = {}
    for ledger, parts in sides:
        single = tuple(part.restricted((query,)) for part in parts for query in part.queries)
        alone = replace(ledger, lower=(), upper=single) if upper else replace(ledger, lower=single, upper=None)
        verified = verify(alone, weights)
        for part, claim in zip(single, verified.right if upper else verified.failing, strict=True):
            key = (part.label, part.queries[0])
            if key not in best or claim < best[key][0]:
                best[key] = claim, part
    return tuple(part for _, (_, part) in sorted(best.items(), key=lambda entry: entry[0]))
