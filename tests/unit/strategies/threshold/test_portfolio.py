"""`threshold-best` together with others on the same model."""

import compactproofs as cp
import oracle
from compactproofs.strategies.shared import Shared
from models import mostly_right


def test_the_portfolio_starts_from_what_quartic_has_found():
    weights, shared = mostly_right(3), Shared(mostly_right(3), cp.MaxOfK(3, 5))
    quartic = cp.prove(weights, "threshold-quartic", shared=shared, upper="own")
    best = cp.prove(weights, "threshold-best", shared=shared, upper="own")
    right = oracle.count_correct(weights)
    assert quartic.correct_at_most is None
    assert quartic.correct_at_least <= best.correct_at_least <= right <= best.correct_at_most
    assert best.flops > 0
    again = cp.prove(weights, "threshold-best", shared=shared, upper="own")
    assert (again.correct_at_least, again.length) == (best.correct_at_least, best.length)


def test_an_upper_bound_of_its_own_is_only_asked_of_those_that_have_one():
    weights = mostly_right(0)
    proofs = {name: cp.prove(weights, name, upper="own") for name in ("brute-force", "cubic", "threshold-best")}
    assert cp.prove(weights, "cubic", upper=True).correct_at_most is not None
    assert proofs["cubic"].correct_at_most is None and proofs["cubic"].upper is None
    assert proofs["brute-force"].correct_at_most == proofs["brute-force"].correct_at_least <= proofs["threshold-best"].correct_at_most
