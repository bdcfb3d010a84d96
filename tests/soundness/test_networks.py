"""Norms before attention, biases, rotary positions, ALiBi, no positions: exact in the form, so every threshold strategy proves the truth.

The truth comes from `network_oracle`, which shares no code with the package.
"""

import json
from copy import deepcopy
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

import network_oracle
import networks
from compactproofs import accuracy, check, checker, prove, verify
from compactproofs.arrays.interval import Interval
from compactproofs.certificates.checking import network as raw_network
from compactproofs.errors import LedgerError, TaskError, UnsupportedError
from compactproofs.form.embedded import embedded, require_affine
from compactproofs.form.tables import interval_circuits
from compactproofs.ledger.ledger import Leaf, Ledger, Part
from compactproofs.model.kinds import as_network, simplest
from compactproofs.model.network import Network
from compactproofs.model.weights import Weights
from compactproofs.strategies.registry import all_strategies, strategy
from compactproofs.strategies.threshold import Tabled
from compactproofs.tasks import MaxOfK, task_for
from compactproofs.tasks.question import Question
from thinned import thinned
from trees import json_leaves

NAMED = [
    strategy(f"threshold-{name}") for name in ("best", "exact-output", "quartic", "cubic", "cubic-pooled", "blocks", "quadratic-pooled")
]
TABLED = [s for s in all_strategies() if isinstance(s, Tabled)]

MODELS = {
    **dict(networks.affine_networks(seeds=(0, 1), scales=(1.0,))),
    **dict(networks.affine_networks(seeds=(2,), scales=(0.05, 5.0))),
    **{f"{kind}, mostly right": networks.mostly_right_network(0, kind) for kind in networks.MOSTLY_RIGHT},
    "tied outputs, LN": networks.tied_outputs(networks.random_network(3, 1.0, **networks.AFFINE["LNPre, all biases"])),
    "tied outputs, rotary": networks.tied_outputs(networks.random_network(3, 1.0, **networks.AFFINE["rotary"])),
}

EXTREME = dict(networks.affine_networks(seeds=(4,), scales=(1e-30, 1e-12, 1e4, 1e18)))
"""Weights that overflow, underflow or saturate: nothing need be proven, and nothing false may be."""


@cache
def truth(name):
    return network_oracle.count_correct((MODELS | EXTREME)[name])


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_every_named_threshold_strategy_encloses_the_truth(name):
    for chosen in NAMED:
        proof = prove(MODELS[name], chosen, upper=True)
        assert proof.status == "proven", proof.reason
        assert proof.correct_at_least <= truth(name) <= proof.correct_at_most, chosen.label


@pytest.mark.parametrize("name", [name for name in MODELS if "scale 1" in name or "mostly" in name])
def test_threshold_best_is_exact(name):
    """As for models of the first edition: what is left is decided one by one."""
    proof = prove(MODELS[name], upper=True)
    assert proof.correct_at_least == truth(name) == proof.correct_at_most


@pytest.mark.long
@pytest.mark.parametrize("name", [f"{kind}, mostly right" for kind in networks.MOSTLY_RIGHT])
def test_every_combination_of_approximations_is_sound(name):
    for chosen in TABLED:
        assert prove(MODELS[name], chosen).correct_at_least <= truth(name), chosen.label


@pytest.mark.parametrize("name", thinned(EXTREME))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_extreme_weights_prove_nothing_false(name):
    for chosen in NAMED:
        proof = prove(EXTREME[name], chosen, upper=True)
        assert proof.correct_at_least <= truth(name) <= proof.correct_at_most, chosen.label


@pytest.mark.parametrize("name", [name for name in MODELS if "seed 1" in name or "mostly" in name or "tied" in name])
def test_the_checker_accepts_what_is_proven_and_no_more(name):
    for label in ("threshold-best", "threshold-cubic-pooled", "threshold-cubic"):
        proof = prove(MODELS[name], label, upper=label == "threshold-best")
        certificate = proof.certificate
        checked = check(certificate, MODELS[name])
        assert checked.accepted, checked.reason
        assert proof.correct_at_least <= certificate.correct_at_least <= truth(name)
        assert certificate.correct_at_most is None or truth(name) <= certificate.correct_at_most <= proof.correct_at_most


@pytest.mark.parametrize("name", [name for name in MODELS if "seed 0" in name])
def test_verify_in_intervals_agrees_with_the_compiled_functions(name):
    proof = prove(MODELS[name], "threshold-quartic")
    by_arrays = verify(proof.ledger, MODELS[name], intervals=True).correct_at_least
    assert proof.correct_at_least <= by_arrays <= truth(name)


@pytest.mark.parametrize("name", [name for name in MODELS if "scale 5" in name or "seed 0" in name])
def test_interval_tables_contain_the_logits(name):
    """Up to the positive factor of a final norm: then their signs."""
    network = MODELS[name]
    tables, v, k = interval_circuits(network), network.d_vocab, network.n_ctx
    scores = tables.EQKE.reshape(v, -1, v) + tables.EQKP[:, :, None]
    values = tables.EVOU.reshape(-1, v, network.d_vocab_out) + tables.PVOU[:, None, :]
    places = np.arange(k)
    for x in list(product(range(v), repeat=k))[:: 5 if k > 2 else 1]:
        own = scores[x[-1], places, list(x)]
        weights = np.exp(own - own.max(axis=0))
        mixed = (weights[:, None] * values[places, list(x)]).sum(axis=0) / weights.sum(axis=0) + tables.EU[x[-1]]
        exact = network_oracle.logits(network, x)
        for one, other in ((0, 1), (2, 5), (6, 3)):
            difference, true = mixed[[one]] - mixed[[other]], exact[one] - exact[other]
            if network.norm_final is None:
                assert float(true.lower()) <= float(difference.upper[0]) and float(difference.lower[0]) <= float(true.upper())
            else:
                assert not (true > 0 and difference.upper[0] < 0) and not (true < 0 and difference.lower[0] > 0)


def test_a_network_of_the_first_edition_is_a_special_case():
    network = networks.random_network(5)
    weights = simplest(network)
    assert isinstance(weights, Weights) and as_network(weights) == network
    one, other = (prove(model, "threshold-quartic", upper=True) for model in (network, weights))
    assert (one.correct_at_least, one.correct_at_most, one.flops) == (other.correct_at_least, other.correct_at_most, other.flops)


def test_with_biases_the_two_descriptions_prove_the_same():
    network = networks.random_network(5, **networks.BIASES)
    assert truth_of(network) == prove(network).correct_at_least == prove(simplest(network)).correct_at_least


def truth_of(network):
    return network_oracle.count_correct(network)


@pytest.mark.parametrize("kind", networks.BLOCKS)
def test_whole_blocks_are_proven_or_infeasible_with_the_reason(kind):
    network = networks.random_network(0, **networks.BLOCKS[kind])
    with pytest.raises(UnsupportedError, match="one head and an affine readout"):
        require_affine(network)
    proof = prove(network)
    if network.post_norm:
        assert proof.status == "infeasible" and "accuracy" in proof.reason and proof.correct_at_least == 0
    else:
        assert proof.status == "proven" and proof.correct_at_least == network_oracle.count_correct(network)


def test_the_papers_strategies_are_infeasible_for_networks_with_norms():
    network = MODELS["LN before attention, seed 0, scale 1"]
    for name in ("cubic", "subcubic/max_diff_exact/svd/envelope"):
        proof = prove(network, name)
        assert proof.status == "infeasible" and "threshold" in proof.reason


def test_a_norm_that_divides_by_zero_proves_nothing():
    """The same embedding in every coordinate, and no eps: the network is not defined there."""
    network = networks.random_network(0, norm_1=networks.Norm("LN", 0.0), W_pos=None)
    flat = replace(network, W_E=np.ones_like(network.W_E))
    with np.errstate(all="ignore"):
        assert isinstance(embedded_keys(flat), Interval)
        proof = prove(flat, "threshold-quartic", upper=True)
    assert proof.correct_at_least == 0 and proof.correct_at_most == proof.total


def embedded_keys(network):
    from compactproofs.arrays.arithmetic import Rigorous

    return embedded(network, Rigorous()).keys


@pytest.mark.parametrize(("prefix", "suffix"), [((4,), ()), ((), (0,)), ((4,), (1,))])
@pytest.mark.parametrize("kind", ["LNPre, all biases", "rotary", "ALiBi"])
def test_fixed_tokens_stand_at_their_places(kind, prefix, suffix):
    network = networks.random_network(6, **networks.AFFINE[kind])
    task = task_for(network, prefix=prefix, suffix=suffix)
    free = [t for t in range(5) if t not in (*prefix, *suffix)]
    n = 3 - len(prefix) - len(suffix)
    sequences = [(*prefix, *x, *suffix) for x in product(free, repeat=n)]
    true = network_oracle.count_correct(network, sequences, lambda x: max(x[len(prefix) : len(prefix) + n]))
    proof = prove(network, task=task, upper=True)
    assert (proof.correct_at_least, proof.correct_at_most, proof.total) == (true, true, len(sequences))
    assert check(proof.certificate, network).accepted


@pytest.mark.parametrize("bits", [2, 6, 12])
@pytest.mark.parametrize("kind", ["LN before attention", "RMS before attention", "rotary", "rotary and LN", "LNPre, all biases"])
def test_a_checker_that_rounds_coarsely_proves_less_and_nothing_false(kind, bits, monkeypatch):
    """What is rounded is accounted for: with a handful of bits the checker finds less, and never more than the truth."""
    network = networks.random_network(7, 0.7, **networks.AFFINE[kind])
    proof = prove(network, upper=True)
    content = json.loads(proof.certificate.data)
    true = network_oracle.count_correct(network)
    assert checker.proven(content, raw_network(network), checker.NO_LIMIT)[:2] == (true, true)
    monkeypatch.setattr(checker, "NORM_BITS", bits)
    monkeypatch.setattr(checker, "TURN_BITS", bits)
    found = []
    for side in ("lower", "upper"):
        for part in content[side]:
            try:
                one = {**content, "lower": [], "upper": [], side: [_without_lists(part)]}
                least, most, _ = checker.proven(one, raw_network(network), checker.NO_LIMIT)
            except checker.RejectedError:  # an output might win, for all that it knows
                least, most = 0, proof.total
            found.append(least if side == "lower" else proof.total - most)
    lower = sum(found[: len(content["lower"])])
    assert lower <= true <= proof.total - sum(found[len(content["lower"]) :])


def _without_lists(part):
    part = deepcopy(part)
    for leaf in json_leaves(part):
        leaf["listed"] = []
    return part


NOTHING = {
    "W_E": np.ones((2, 2), np.float32),
    "W_pos": None,
    "n_ctx": 1,
    **{f"W_{x}": np.ones((1, 2, 1), np.float32) for x in "QKV"},
    "W_O": np.ones((1, 1, 2), np.float32),
    "W_U": np.zeros((2, 2), np.float32),
    "b_U": np.array([0, 1], np.float32),
}


def test_a_weight_of_zero_does_not_define_a_norm_of_nothing():
    network = Network(**NOTHING, norm_1=networks.Norm("LN", 0.0, np.zeros(2, np.float32)))
    assert network_oracle.bounds(network) == (0, 2)
    proof, measured = prove(network, upper=True), accuracy(network)
    assert (proof.correct_at_least, proof.correct_at_most) == (0, 2) and (measured.correct, measured.undecided) == (0, 2)


def test_verify_asks_whether_the_question_fits_the_network():
    """Kernels would read beyond their arrays."""
    question = Question(MaxOfK(1, 2))
    ledger = Ledger(question, "", tuple(Part(m, tuple(range(m + 1)), Leaf(())) for m in range(2)))
    assert verify(ledger, Network(**NOTHING)).correct_at_least == 1
    with pytest.raises(TaskError, match="n_ctx"):
        verify(ledger, Network(**{**NOTHING, "n_ctx": 2}))
    with pytest.raises(TaskError, match="outputs"):
        verify(ledger, Network(**{**NOTHING, "W_U": np.zeros((2, 1), np.float32), "b_U": None}))
    with pytest.raises(LedgerError, match="margin of shape"):
        verify(replace(ledger, question=Question(MaxOfK(1, 2), margin=np.zeros((2, 1)))), Network(**NOTHING))


@pytest.mark.parametrize("margin", [np.full((2, 2), np.nan), np.zeros((3, 2)), np.zeros(2)])
def test_margins_are_finite_and_have_a_shape(margin):
    with pytest.raises(TaskError, match="margin of shape"):
        Question(MaxOfK(1, 2), margin=margin)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_tables_that_are_not_finite_give_no_directions():
    W_E, W_U = np.array([[1.0, 1.0], [1.0, 2.0]]), np.array([[0.0, 1.0], [2.0, 0.0]])
    network = Network(**{**NOTHING, "b_U": None, "W_E": W_E, "W_U": W_U, "norm_1": networks.Norm("LN", 0.0)})
    assert prove(network, "threshold-cubic").correct_at_least <= network_oracle.bounds(network)[1]


def test_a_true_proof_with_fixed_tokens_is_no_alarm():
    """Scores so far apart that the checker gives up: brute force is the referee, and knows fixed tokens."""
    network = networks.random_network(9, 30.0, **networks.AFFINE["LN before attention"])
    task = task_for(network, prefix=(0,))
    for label in ("threshold-cubic-pooled", "threshold-best"):
        certificate = prove(network, label, task).certificate
        assert check(certificate, network).accepted
