"""Whole blocks with several queries at once (`form.pooled`). Truth comes from `network_oracle`."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import blocks
import network_oracle
from compactproofs import ThresholdCubicPooled, certify, check, merge, prove, verify
from compactproofs.errors import LedgerError
from compactproofs.form import pooled as module
from compactproofs.ledger.ledger import Leaf, Spoiler
from compactproofs.strategies.base import Request
from compactproofs.strategies.threshold.whole import grown
from compactproofs.tasks import MaxOfK
from compactproofs.tasks.question import Question
from hostile import hostile_hints
from thinned import thinned

TASK = MaxOfK(blocks.K, blocks.V)
KINDS = ("MLP", "GELU", "final LN", "LN, MLP", "two heads", "two heads, MLP", "three heads, LN, MLP")


@cache
def network(kind, seed=1):
    return blocks.tiny_block(seed, kind, harder=seed == 1)


@cache
def truth(kind, seed=1):
    return network_oracle.bounds(network(kind, seed))


@cache
def bound(kind, pools, seed=1):
    return grown(Request(network(kind, seed), TASK), "pooled", pools)


@pytest.mark.parametrize("kind", thinned(KINDS))
@pytest.mark.parametrize("pools", [1, 2])
def test_what_is_proven_is_below_the_truth(kind, pools):
    """And is what `verify` finds; in intervals a little more."""
    found, ledger = bound(kind, pools), bound(kind, pools).make_ledger()
    assert max(len(part.queries) for part in ledger.lower) == (blocks.V if pools == 1 else 3)
    least, _ = truth(kind)
    assert found.correct_at_least <= least
    assert verify(ledger, network(kind)).correct_at_least == found.correct_at_least
    if pools == 1:
        assert found.correct_at_least <= verify(ledger, network(kind), intervals=True).correct_at_least <= least


@pytest.mark.parametrize("kind", thinned(KINDS))
def test_hints_from_nowhere_prove_nothing_false(kind):
    ledger, rng = bound(kind, 1).make_ledger(), np.random.default_rng(0)
    heads = network(kind).n_heads + 1

    def changed(leaf):
        return leaf if leaf.relaxation is None else replace(leaf, relaxation=hostile_hints(leaf.relaxation, heads, rng))

    for _ in range(3):
        found = verify(replace(ledger, lower=tuple(part.with_leaves(changed) for part in ledger.lower)), network(kind))
        assert found.correct_at_least <= truth(kind)[0]


@pytest.mark.parametrize("kind", thinned(KINDS))
def test_right_answers_of_a_pool_are_bounded_too(kind):
    """By one output each, with the same hints."""
    ledger = bound(kind, 1).make_ledger()

    def above(leaf):
        if not leaf.terms:
            return Leaf(())
        return Leaf((Spoiler(leaf.terms[0].outputs[0], leaf.terms[0].grid),), (), leaf.relaxation)

    found = verify(replace(ledger, upper=tuple(part.with_leaves(above) for part in ledger.lower)), network(kind))
    assert truth(kind)[1] <= found.correct_at_most
    assert found.correct_at_most < found.total or "heads" not in kind


@pytest.mark.parametrize("kind", ["MLP", "two heads", "two heads, MLP"])
def test_masses_and_margins(kind):
    own = network(kind, 0)
    masses = np.random.default_rng(1).integers(0, 1 << 20, size=(blocks.K, blocks.V))
    margin = np.random.default_rng(2).uniform(0.0, 0.9, size=(blocks.V, blocks.V + 1))
    values = {x: network_oracle.logits(own, x) for x in blocks.SEQUENCES}
    for question in (Question(TASK, masses), Question(TASK, margin=margin)):
        right = 0
        for x, y in values.items():
            tau = 0.0 if question.margin is None else margin[x[-1], max(x)]
            right += question.mass_of(x) * all(y[max(x)] - z > tau for o, z in enumerate(y) if o != max(x))
        found = grown(Request(own, TASK, asked=question), "pooled", 1)
        assert 0.5 * right < found.correct_at_least <= right
        assert verify(found.make_ledger(), own).correct_at_least == found.correct_at_least


def test_the_named_strategy():
    """It merges with others, and its certificate is made through one that looks at every query."""
    own = network("two heads", 0)
    proof = prove(own, "threshold-cubic-pooled")
    assert proof.status == "proven" and proof.correct_at_least > 0.9 * truth("two heads", 0)[0] and proof.flops > 0
    merged = verify(merge([proof.ledger, prove(own, "threshold-quartic").ledger], own), own)
    assert proof.correct_at_least <= merged.correct_at_least <= truth("two heads", 0)[0]
    certificate = certify(proof)
    assert certificate.correct_at_least >= proof.correct_at_least and check(certificate, own).accepted


@pytest.mark.parametrize("kind", ["MLP", "final LN", "two heads, final LN"])
def test_one_head_and_norms_are_better_off_without_pools(kind):
    proof = prove(network(kind), "threshold-cubic-pooled")
    assert proof.status == "infeasible" and "threshold-quartic" in proof.reason


def test_replacements_of_the_paper_are_not_about_blocks():
    proof = prove(network("two heads"), ThresholdCubicPooled("exact", "max_diff_exact"))
    assert proof.status == "infeasible" and "threshold-best" in proof.reason


def test_hints_for_one_query_are_no_hints_for_several():
    own = network("two heads", 0)
    ledger, single = bound("two heads", 1, 0).make_ledger(), prove(own, "threshold-quartic").ledger
    several = max(ledger.lower, key=lambda part: len(part.queries))
    first, *others = [leaf for leaf in several.leaves if leaf is not None]
    assert others
    other = next(leaf for part in single.lower for leaf in part.leaves if leaf is not None and leaf.relaxation is not None)
    mixed = several.with_leaves(lambda leaf: other if leaf is first else leaf)
    with pytest.raises(LedgerError, match="several queries at once need one more"):
        verify(replace(ledger, lower=(mixed,)), own)


MISTAKES = (
    "only the first query",
    "the largest weight below",
    "the base of one query",
    "no weight at the end",
    "another's weight at the end",
)
ATTACKS = [("two heads", 4, 2), ("MLP", 5, 2), *((kind, seed, 1) for kind in ("two heads", "MLP", "final LN") for seed in range(12))]
"""Kinds, seeds and numbers of pools"""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found(mistake, monkeypatch):
    """Each makes some bound of a pool exceed the truth."""
    original = module.pooled

    def mistaken(form, queries, reference, arithmetic):
        found = original(form, queries, reference, arithmetic)
        _, high = found.attention
        match mistake:
            case "only the first query":
                return replace(found, attention=original(form, queries[:1], reference, arithmetic).attention)
            case "the largest weight below":
                return replace(found, attention=(high, high))
            case "the base of one query":
                base = np.concatenate([found.values[:1, :, [int(queries[0])]]] * form.values.shape[2], axis=2)
                return replace(found, values=np.concatenate([base, found.values[1:]]))
            case "no weight at the end":
                for end in found.attention:
                    end[1:, 0, -1] = 0.0
                return found
            case _:
                for end in found.attention:
                    end[:, 0, -1, queries] = np.roll(end[:, 0, -1, queries], 1, axis=1)
                return found

    monkeypatch.setattr("compactproofs.ledger.sources.pooled", mistaken)
    for kind, seed, pools in ATTACKS:
        own = blocks.tiny_block(seed, kind)
        if grown(Request(own, TASK), "pooled", pools).correct_at_least > network_oracle.bounds(own)[1]:
            return
    raise AssertionError(f"nothing was found for: {mistake}")
