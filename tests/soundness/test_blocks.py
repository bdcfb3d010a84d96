"""Whole blocks: several heads, MLPs, norms after attention. What is proven encloses the truth, which comes from `network_oracle`."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import blocks
import network_oracle
from block_certificates import KNOWN
from compactproofs import accuracy, check, prove, verify
from compactproofs.counting.grid import Grid
from compactproofs.errors import LedgerError, UnsupportedError
from compactproofs.form.whole_block import require_pre_norm
from compactproofs.ledger.ledger import Apart, Factored, Joint, Leaf, Ledger, Part
from compactproofs.strategies.base import Request
from compactproofs.strategies.registry import strategy
from compactproofs.tasks import MaxOfK, task_for
from compactproofs.tasks.question import Question
from hostile import hostile_hints
from networks import Norm, random_network
from random_networks import awkward_networks
from tasks import KINDS as TASKS
from tasks import Named
from thinned import thinned

SOME = ("MLP", "GELU", "final LN", "LN, MLP", "two heads", "two heads, MLP")
MODELS = {
    **{f"{kind}, seed {seed}": blocks.tiny_block(seed, kind, harder=seed == 1) for kind in blocks.KINDS for seed in (0, 1)},
    **{f"{kind}, large": blocks.tiny_block(2, kind, scale=3.0) for kind in SOME},
    **{f"{kind}, small": blocks.tiny_block(3, kind, scale=0.1) for kind in SOME},
}
LONGER = ("two heads", "two heads, MLP", "LN, MLP", "two heads, LN, MLP", "two heads, final LN", "three heads, GELU")
ONE_EACH = [name for name in MODELS if "seed 0" not in name]
EXTREME = {f"{kind}, {scale:g}": blocks.tiny_block(4, kind, scale=scale) for kind in SOME[:5] for scale in (1e-30, 1e5)}
AWKWARD = {name: network for name, network in awkward_networks() if not network.post_norm}


@cache
def truth(name):
    return network_oracle.bounds((MODELS | EXTREME | AWKWARD)[name])


@cache
def proven(name, strategy="threshold-quartic"):
    """A proof of one of `MODELS`, for all tests that need it."""
    return prove(MODELS[name], strategy, upper=True)


def proofs(network, task=None):
    return [prove(network, name, task, upper=True) for name in ("threshold-quartic", "threshold-best")]


@pytest.mark.parametrize("name", thinned(ONE_EACH))
def test_what_is_proven_encloses_the_truth(name):
    """And is exact with the portfolio, which decides what is left one by one. Ledgers prove what is claimed, in intervals too."""
    network, (least, most) = MODELS[name], truth(name)
    quartic, best = proven(name), proven(name, "threshold-best")
    assert quartic.status == best.status == "proven" and quartic.correct_at_least <= least
    assert best.correct_at_least == least == most == best.correct_at_most == quartic.correct_at_most
    found = verify(best.ledger, network)
    assert (found.correct_at_least, found.correct_at_most) == (least, most)
    assert verify(quartic.ledger, network).correct_at_least == quartic.correct_at_least


@pytest.mark.parametrize("kind", thinned(LONGER, one_in=6))
def test_terms_apart_of_longer_sequences_prove_nothing_false(kind):
    """Six tokens, where nothing is decided one by one and leaves have terms apart. Certificates have them too."""
    apart = 0
    for seed in (0, 1):
        network = blocks.tiny_block(seed, kind, harder=seed == 1, k=6)
        right = accuracy(network).correct
        quartic = prove(network, "threshold-quartic")
        best = prove(network, "threshold-best", upper=True, seconds=2)
        assert max(quartic.correct_at_least, best.correct_at_least) <= right <= best.correct_at_most
        for proof in (quartic, best):
            assert verify(proof.ledger, network).correct_at_least == proof.correct_at_least
        rng = np.random.default_rng(seed)
        lower = tuple(
            part.with_leaves(lambda leaf: replace(leaf, relaxation=hostile_hints(leaf.relaxation, network.n_heads, rng)))  # noqa: B023
            for part in quartic.ledger.lower
        )
        assert verify(replace(quartic.ledger, lower=lower), network).correct_at_least <= right
        if kind in KNOWN:
            assert check(quartic.certificate, network).accepted
        apart += sum(
            isinstance(term, Apart) for part in quartic.ledger.lower for leaf in part.leaves if leaf is not None for term in leaf.terms
        )
    assert apart > 0


@pytest.mark.long
@pytest.mark.parametrize("name", [f"{kind}, seed 1" for kind in blocks.KINDS])
def test_verify_in_intervals_agrees_with_arrays_with_one_error(name):
    """Two arithmetics for one text: intervals are the tighter, and enclose the truth too."""
    network, (least, _) = MODELS[name], truth(name)
    quartic = proven(name)
    by_intervals = verify(quartic.ledger, network, intervals=True)
    assert quartic.correct_at_least <= by_intervals.correct_at_least <= least


MODERATE = [name for name in AWKWARD if name.endswith("weights of 1e-09")]
"""Between weights of 1e-30 and of 1e4, which also run: for `make test-slow`."""


@pytest.mark.parametrize(
    "name", thinned([pytest.param(name, marks=[pytest.mark.slow] * (name in MODERATE)) for name in [*EXTREME, *AWKWARD]])
)
def test_extreme_and_awkward_weights_prove_nothing_false(name):
    """Weights that overflow, underflow or saturate, ties, norms without eps."""
    network, (least, most) = (EXTREME | AWKWARD)[name], truth(name)
    for proof in proofs(network):
        assert proof.correct_at_least <= most and least <= proof.correct_at_most
        if proof.status == "proven":
            assert verify(proof.ledger, network).correct_at_least == proof.correct_at_least


@pytest.mark.parametrize("kind", thinned(blocks.KINDS))
def test_hints_from_nowhere_prove_nothing_false(kind):
    name = f"{kind}, seed 1"
    network, (least, most) = MODELS[name], truth(name)
    ledger, upper = proven(name).ledger, proven(name, "threshold-best").ledger.upper
    rng = np.random.default_rng(0)

    def changed(leaf):
        return leaf if leaf.relaxation is None else replace(leaf, relaxation=hostile_hints(leaf.relaxation, network.n_heads, rng))

    for _ in range(2):
        lower = tuple(part.with_leaves(changed) for part in ledger.lower)
        found = verify(replace(ledger, lower=lower, upper=tuple(part.with_leaves(changed) for part in upper)), network)
        assert found.correct_at_least <= least and most <= found.correct_at_most


@pytest.mark.parametrize("kind", ["LN, MLP", "two heads, LN, MLP", "three heads, GELU"])
def test_a_ledger_may_be_about_another_network(kind):
    ledger = proven(f"{kind}, seed 0", "threshold-best").ledger
    for seed in range(3):
        network = blocks.tiny_block(10 + seed, kind)
        found, true = verify(ledger, network), network_oracle.count_correct(network)
        assert found.correct_at_least <= true <= found.correct_at_most


@pytest.mark.long
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", ["MLP", "two heads, LN, MLP", "three heads"])
def test_every_task(kind, task):
    network, asked = MODELS[f"{kind}, seed 1"], Named(task, blocks.K, blocks.V)
    true = network_oracle.count_correct(network, label_of=asked.label_of)
    quartic, best = proofs(network, asked)
    assert quartic.correct_at_least <= true == best.correct_at_least == best.correct_at_most


@pytest.mark.parametrize("kind", ["MLP", "final LN", "two heads"])
def test_masses_and_margins(kind):
    network, task = MODELS[f"{kind}, seed 0"], MaxOfK(blocks.K, blocks.V)
    rng = np.random.default_rng(1)
    masses = rng.integers(0, 1 << 20, size=(blocks.K, blocks.V))
    values = {x: network_oracle.logits(network, x) for x in blocks.SEQUENCES}
    for question in (Question(task, masses), Question(task, margin=np.full((blocks.V, blocks.V + 1), 0.7))):
        tau = 0.0 if question.margin is None else 0.7
        right = sum(question.mass_of(x) for x, y in values.items() if all(y[max(x)] - z > tau for o, z in enumerate(y) if o != max(x)))
        for name in ("threshold-quartic", "threshold-best"):
            bound = strategy(name).bound(Request(network, task, upper=True, asked=question))
            assert bound.correct_at_least <= right <= (bound.correct_at_most or question.total)
            assert bound.correct_at_least > 0.5 * right
            found = verify(bound.make_ledger(), network)
            assert found.correct_at_least == bound.correct_at_least


@pytest.mark.parametrize("kind", ["MLP", "LN, MLP", "two heads, LN, MLP"])
@pytest.mark.parametrize(("prefix", "suffix"), [((4,), ()), ((), (0,))])
def test_fixed_tokens(kind, prefix, suffix):
    network = MODELS[f"{kind}, seed 0"]
    proof = prove(network, task=task_for(network, prefix=prefix, suffix=suffix), upper=True)
    inner = [x for x in blocks.SEQUENCES if x[: len(prefix)] == prefix and x[len(x) - len(suffix) :] == suffix]
    free = slice(len(prefix), blocks.K - len(suffix))
    inner = [x for x in inner if not set(x[free]) & {*prefix, *suffix}]
    true = network_oracle.count_correct(network, inner, lambda x: max(x[free]))
    assert (proof.correct_at_least, proof.correct_at_most, proof.total) == (true, true, len(inner))


GRID = Grid(1, 0, 1, (0,) * blocks.K)


def test_leaves_without_hints_prove_nothing():
    network = MODELS["two heads, seed 0"]
    question = Question(MaxOfK(blocks.K, blocks.V))
    others = tuple(o for o in range(blocks.V + 1) if o != 2)
    for leaf in (Leaf(()), Leaf((Joint(others, (1,) * len(others), GRID),))):
        found = verify(Ledger(question, network.sha256, (Part(2, (1,), leaf),)), network)
        assert found.correct_at_least == 0


def test_factored_terms_are_refused():
    network = MODELS["two heads, seed 0"]
    ledger = prove(network, "threshold-quartic").ledger
    part = ledger.lower[0].with_leaves(lambda leaf: replace(leaf, terms=(Factored(GRID),)))
    with pytest.raises(LedgerError, match="cannot be: Factored"):
        verify(replace(ledger, lower=(part,)), network)


def test_places_beyond_the_sequences_are_refused():
    network = MODELS["two heads, seed 0"]
    ledger = prove(network, "threshold-quartic").ledger

    def broken(leaf):
        typical = replace(leaf.relaxation.typical, positions=leaf.relaxation.typical.positions + blocks.K)
        return replace(leaf, relaxation=replace(leaf.relaxation, typical=typical))

    with pytest.raises(LedgerError, match="a typical place"):
        verify(replace(ledger, lower=(ledger.lower[-1].with_leaves(broken),)), network)


def test_post_norm_is_infeasible_with_the_reason():
    network = random_network(0, norm_2=Norm("LN", 1e-5), post_norm=True)
    with pytest.raises(UnsupportedError, match="post-norm"):
        require_pre_norm(network)
    proof = prove(network)
    assert proof.status == "infeasible" and "post-norm" in proof.reason and proof.correct_at_least == 0


@pytest.mark.parametrize("name", ["threshold-cubic", "threshold-quadratic-pooled", "threshold-exact-output", "threshold-blocks"])
def test_strategies_of_one_head_say_which_are_about_blocks(name):
    proof = prove(MODELS["two heads, MLP, seed 0"], name)
    assert proof.status == "infeasible" and "threshold-best" in proof.reason and "2 heads and an MLP" in proof.reason


def test_the_same_bounds_on_any_number_of_threads(monkeypatch):
    network = MODELS["two heads, LN, MLP, seed 1"]
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("COMPACTPROOFS_THREADS", threads)
        proof = prove(network, "threshold-quartic")
        found.append((proof.correct_at_least, proof.flops))
    assert found[0] == found[1]
