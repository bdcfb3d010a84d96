"""Merged ledgers prove, query by query, the best of what each proves."""

from dataclasses import replace

import pytest

import compactproofs as cp
import oracle
from compactproofs.errors import LedgerError
from compactproofs.ledger.inspect import proven_by_query
from models import mostly_right, random_weights


@pytest.mark.long
def test_a_merge_is_at_least_as_good_as_each():
    for seed in range(4):
        weights = mostly_right(seed, v=6, k=4, noise=0.6)
        ledgers = [cp.prove(weights, f"threshold-{name}").ledger for name in ("cubic-pooled", "quartic", "exact-output")]
        merged = cp.merge(ledgers, weights)
        proven = [cp.verify(ledger, weights).correct_at_least for ledger in (*ledgers, merged)]
        assert max(proven[:-1]) <= proven[-1] <= oracle.count_correct(weights)
        by_query = [proven_by_query(ledger, weights) for ledger in ledgers]
        best = {m: [max(counts) for counts in zip(*(each[m] for each in by_query), strict=True)] for m in by_query[0]}
        assert sum(map(sum, best.values())) == proven[-1]


def test_upper_bounds_are_merged_too():
    weights = mostly_right(1, noise=0.6)
    below, both = cp.prove(weights, "threshold-quartic").ledger, cp.prove(weights, "threshold-best", upper=True).ledger
    merged = cp.verify(cp.merge([below, both], weights), weights)
    assert merged.correct_at_least == merged.correct_at_most == oracle.count_correct(weights)


def test_an_improvement_by_hand_is_kept():
    weights = mostly_right(2, noise=0.6)
    coarse, fine = (cp.prove(weights, f"threshold-{name}").ledger for name in ("quadratic-pooled", "quartic"))
    some = replace(fine, lower=tuple(part for part in fine.lower if part.label == 4))
    before, after = (cp.verify(ledger, weights).correct_at_least for ledger in (coarse, cp.merge([coarse, some], weights)))
    assert before <= after


def test_ledgers_about_different_things_are_not_merged():
    weights, other = mostly_right(1), mostly_right(2)
    one, two = cp.prove(weights, "threshold-quartic").ledger, cp.prove(other, "threshold-quartic").ledger
    with pytest.raises(LedgerError, match="different networks or questions"):
        cp.merge([one, two], weights)
    with pytest.raises(LedgerError, match="nothing to merge"):
        cp.merge([], weights)
    pooled = [cp.prove(weights, f"threshold-{name}").ledger for name in ("cubic-pooled", "cubic")]
    with pytest.raises(LedgerError, match="different factors"):
        cp.merge(pooled, weights)


def test_a_network_with_one_output_is_always_right():
    weights = random_weights(1, d_vocab=1, d_vocab_out=1)
    for name in ("threshold-cubic-pooled", "threshold-quartic", "threshold-best"):
        assert cp.verify(cp.prove(weights, name).ledger, weights).correct_at_least == 1
