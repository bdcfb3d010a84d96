"""Right by more than a margin, of either sign: every strategy, curves, losses and counterexamples against exact truth.

The truth comes from `oracle` and `network_oracle`, which share no code with the package.
"""

from functools import cache
from itertools import product

import numpy as np
import pytest

import compactproofs as cp
import network_oracle
import networks
import oracle
from compactproofs import margin_curves
from compactproofs.counting.gaps import evaluate_gaps, right_by_margin
from compactproofs.form.embedded import is_affine
from compactproofs.ledger.verify import verify
from compactproofs.margin_curves import gap_range, margin_curve
from compactproofs.tasks import NO_LABEL, Framed, MaxOfK, task_for
from compactproofs.tasks.margin import question_with_margin
from compactproofs.tasks.question import Question
from models import adversarial_models, mostly_right, random_weights, weights_from_tables, with_tensors
from random_ledgers import random_ledger
from random_networks import random_network
from tasks import Random, mass_of
from thinned import thinned

GENERAL = ["best", "quartic", "exact-output", "cubic", "cubic-pooled", "blocks", "quadratic-pooled"]
"""About every task and distribution."""
VARIANTS = [
    "cubic-pooled/max_diff/svd",
    "cubic/mean_query+max_diff/max_diff",
    "quadratic-pooled/svd_query+max_diff/mean_recursive+max_diff_subproduct_recursive",
    "blocks/max_diff/max_diff_exact",
]
COMPACT = ["near", "near-blocks", "low-rank"]


def integer_model(k=2):
    """Uniform attention to one, two or four tokens and whole numbers: gaps are dyadic, so that margins can be equal to them."""
    rng = np.random.default_rng(k)
    EVOU, PVOU, EU = (rng.integers(-4, 5, shape) for shape in ((4, 5), (k, 5), (4, 5)))
    EVOU[np.arange(4), np.arange(4)] += 8
    return weights_from_tables(np.zeros((4, 4)), np.zeros((4, k)), EVOU, PVOU, EU)


ADVERSARIAL = dict(adversarial_models())
MODELS = {
    "random": random_weights(2, n_ctx=3, d_vocab=4, d_vocab_out=6, d_model=5, d_head=2, scale=0.7),
    "large": random_weights(3, n_ctx=2, d_vocab=5, d_vocab_out=7, d_model=3, d_head=4, scale=3.0),
    "whole numbers": integer_model(),
    "whole numbers, one position": integer_model(1),
    "mostly right": mostly_right(1, v=4, k=3),
    "tiny": with_tensors(random_weights(5), **{name: 0.05 * t for name, t in random_weights(5).tensors.items()}),
    **{name: ADVERSARIAL[name] for name in ("tied outputs", "saturated attention", "subnormal attention", "tiny weights", "huge weights")},
    "underflow": ADVERSARIAL["weights of outputs that underflow"],
    "one output": random_weights(1, n_ctx=2, d_vocab=1, d_vocab_out=1),
}


def sequences_of(task):
    """Every sequence with mass, its label, and its mass."""
    rows = [(x, int(task.automaton.label(np.array([x]))[0]), mass_of(task, x)) for x in product(range(task.d_vocab), repeat=task.n_ctx)]
    return [row for row in rows if row[1] != NO_LABEL and row[2]]


def gap(values, label):
    """As a ball."""
    return min((values[label] - x for o, x in enumerate(values) if o != label), key=lambda ball: float(ball.mid()))


@cache
def gaps_of(name):
    """The gaps of all sequences of a model of the table, in ascending order, as floats."""
    weights = MODELS[name]
    return sorted(float(gap(oracle.logits(weights, x), max(x)).mid()) for x in product(range(weights.d_vocab), repeat=weights.n_ctx))


def margins_for(gaps):
    """Amid the gaps and at gaps themselves, below and above all of them, of both signs."""
    places = [gaps[len(gaps) // 5], gaps[len(gaps) // 2], gaps[-1 - len(gaps) // 5]]
    size = max(abs(gaps[0]), abs(gaps[-1]), 1e-30)
    found = [*places, -places[1], gaps[0], 0.3 * size, -0.3 * size, -2.0 * size]
    return [margin for margin in dict.fromkeys(found) if 0 < abs(margin) < 2.0**100]


@pytest.mark.parametrize("name", thinned([name for name in MODELS if name != "one output"], 2))
def test_bounds_by_a_margin_enclose_the_truth(name):
    weights = MODELS[name]
    task = task_for(weights)
    for number, margin in enumerate(margins_for(gaps_of(name))):
        right = oracle.mass_correct(weights, max, lambda x: 1, margin)
        exact = cp.prove(weights, "brute-force", task, upper=True, margin=margin)
        assert exact.correct_at_least <= right <= exact.correct_at_most
        if name != "huge weights":
            assert exact.correct_at_least == right == exact.correct_at_most
        for label in ["best", *[*GENERAL[1:], *COMPACT, *VARIANTS][number % 2 :: 2]]:
            proof = cp.prove(weights, f"threshold-{label}", task, upper=True, seconds=5, margin=margin)
            assert proof.status == "proven", (label, proof.reason)
            assert proof.correct_at_least <= right <= proof.correct_at_most, (label, margin)


def test_a_margin_of_a_gap_is_not_exceeded_by_it():
    """Ties are decided exactly: the gap of some sequences is the margin itself."""
    for name in ("whole numbers", "whole numbers, one position"):
        weights, gaps = MODELS[name], gaps_of(name)
        for margin in sorted(set(gaps)):
            beyond = sum(g > margin for g in gaps)
            assert right_by_margin(weights, task_for(weights), margin).correct == beyond < sum(g >= margin for g in gaps)
            best = cp.prove(weights, upper=True, margin=margin)
            assert best.correct_at_least <= beyond <= best.correct_at_most
        assert gaps[0] < 0 < gaps[-1]


@pytest.mark.parametrize("name", ["cubic", "subcubic/max_diff_exact/svd/envelope"])
def test_the_papers_strategies_refuse_margins(name):
    proof = cp.prove(MODELS["random"], name, margin=0.5)
    assert proof.status == "infeasible" and "not by how much" in proof.reason and proof.correct_at_least == 0


@pytest.mark.parametrize("seed", thinned(range(8)))
def test_margins_with_random_automata_and_masses(seed):
    scale = (0.7, 0.01, 4.0, 1.5)[seed % 4]
    weights = random_weights(seed, n_ctx=2 + seed % 2, d_vocab=4, d_vocab_out=5, d_model=6, d_head=2, scale=scale)
    task = Random(seed, weights.n_ctx, 4, 5)
    rows = sequences_of(task)
    gaps = sorted(float(gap(oracle.logits(weights, x), label).mid()) for x, label, _ in rows)
    for margin in margins_for(gaps)[seed % 3 :: 3]:
        right = sum(mass for x, label, mass in rows if oracle.is_correct(weights, x, label, margin))
        for name in ("brute-force", *(f"threshold-{each}" for each in GENERAL)):
            proof = cp.prove(weights, name, task, upper=True, seconds=5, margin=margin)
            assert proof.status == "proven", proof.reason
            assert proof.correct_at_least <= right <= proof.correct_at_most and proof.total == sum(row[2] for row in rows), (name, margin)
            assert name != "brute-force" or proof.correct_at_least == right == proof.correct_at_most
    sampled = cp.accuracy(weights, task, margin=0.0 if not gaps else gaps[0] - 1.0, samples=50)
    assert sampled.correct == 50


@pytest.mark.parametrize("seed", thinned(range(3)))
def test_anybodys_ledger_about_a_negative_margin(seed):
    weights = mostly_right(seed, v=4, k=3)
    for margin in (-1.0, 0.75):
        question = question_with_margin(MaxOfK(3, 4), 4, margin)
        right = oracle.mass_correct(weights, max, lambda x: 1, margin)
        for number in range(4):
            ledger = random_ledger(weights, question, number, factored=number == 3, upper=number < 3)
            for intervals in (False, True):
                found = verify(ledger, weights, intervals=intervals)
                assert found.correct_at_least <= right and (found.correct_at_most is None or right <= found.correct_at_most)


NETWORKS = {
    **{name: networks.random_network(0, 0.6, **networks.AFFINE[name]) for name in networks.AFFINE if "eps" not in name},
    **{name: networks.random_network(1, 0.6, **networks.BLOCKS[name]) for name in networks.BLOCKS if name != "post-norm"},
    **{f"block {seed}": random_network(seed, scale=0.8, post_norm=False) for seed in range(4)},
}


SLOW = ["two heads", "MLP", "block 0", "block 1", "block 2", "block 3"]


@pytest.mark.parametrize(
    "name", [*thinned([n for n in NETWORKS if n not in SLOW], 3), *(pytest.param(n, marks=pytest.mark.long) for n in SLOW)]
)
def test_margins_of_networks_of_every_kind(name):
    """A final norm divides by a number that matters here, though it does not where the margin is 0."""
    network = NETWORKS[name]
    k, v = network.n_ctx, network.d_vocab
    exact = {x: network_oracle.logits(network, x) for x in product(range(v), repeat=k)}
    gaps = sorted(float(gap(values, max(x)).mid()) for x, values in exact.items())
    affine = is_affine(network)
    for margin in (gaps[len(gaps) // 3], -abs(gaps[0]) / 2, gaps[-5]):
        answers = [network_oracle.is_correct(network, x, max(x), margin) for x in exact]
        least, most = answers.count(True), answers.count(True) + answers.count(None)
        for label in GENERAL if affine else ["best", "quartic", "cubic-pooled"]:
            proof = cp.prove(network, f"threshold-{label}", upper=True, seconds=20.0 if label == "quartic" else 0.5, margin=margin)
            assert proof.correct_at_least <= most and proof.correct_at_most >= least, (label, margin)
            if label in ("best", "quartic"):
                assert proof.status == "proven", proof.reason
                for intervals in (False, True) if label == "quartic" else (False,):
                    found = verify(proof.ledger, network, intervals=intervals)
                    assert found.correct_at_least <= most and (found.correct_at_most is None or least <= found.correct_at_most)
    assert cp.prove(network, "brute-force", margin=gaps[0]).status == "infeasible"


LOSSES = [name for name in MODELS if name not in ("huge weights", "one output")]


@cache
def exact_loss(name):
    weights = MODELS[name]
    rows = list(product(range(weights.d_vocab), repeat=weights.n_ctx))
    return sum((oracle.cross_entropy(weights, x, max(x)) for x in rows), oracle.arb(0)) / len(rows)


@pytest.mark.parametrize("name", thinned(LOSSES, 2))
@pytest.mark.parametrize("enumerated", [True, False])
def test_curves_and_losses_enclose_the_truth(name, enumerated, monkeypatch):
    weights, gaps = MODELS[name], gaps_of(name)
    margins = sorted({*margins_for(gaps), 0.0, *np.linspace(-12.0, 12.0, 9 if enumerated else 5).tolist()})
    if not enumerated:
        monkeypatch.setattr(margin_curves, "ENUMERABLE", 0)
    curve = margin_curve(weights, margins, seconds=None if enumerated else 1.5, log_loss=True)
    assert (curve.method == "enumeration") == enumerated and [point.margin for point in curve.points] == margins
    for point in curve.points:
        right = oracle.mass_correct(weights, max, lambda x: 1, point.margin)
        assert point.at_least <= right <= point.at_most
        assert not enumerated or point.at_least == point.at_most
    least, most = curve.loss
    assert least >= 0.0 and not exact_loss(name) < oracle.arb(least) and not exact_loss(name) > oracle.arb(most)
    if enumerated and name not in ("saturated attention", "subnormal attention", "large"):
        assert most - least < 1e-9 * (1 + most)
    smallest, greatest = gap_range(weights, Question(task_for(weights)))
    assert smallest <= gaps[0] and gaps[-1] <= greatest


@pytest.mark.parametrize("seed", range(4))
def test_losses_with_masses_and_missing_labels(seed):
    """Of seed 2 all masses together are beyond 64 bits: counts are then in units."""
    weights = random_weights(seed, n_ctx=3 + seed // 2, d_vocab=4, d_vocab_out=5, d_model=6, d_head=2, scale=(0.7, 0.3, 1.5, 0.01)[seed])
    task = Random(seed, weights.n_ctx, 4, 5)
    rows = sequences_of(task)
    exact = sum((mass * oracle.cross_entropy(weights, x, label) for x, label, mass in rows), oracle.arb(0)) / task.total
    curve = margin_curve(weights, [-8, -4, -2, -1, -0.5, 0, 0.5, 1, 2, 4, 8], task, seconds=4, log_loss=True)
    assert curve.method == "threshold-best"
    least, most = curve.loss
    assert oracle.arb(least) < exact < oracle.arb(most) and most < 100


def test_every_position_but_one_may_be_fixed():
    """No token before the query has a choice, or none at all: then there are few sequences, and all of them are evaluated."""
    weights = MODELS["random"]
    task = Framed(MaxOfK(1, 4), prefix=(2, 3))
    rows = sequences_of(task)
    assert len(rows) == task.total <= 4
    found = evaluate_gaps(weights, task, (-1.0, 0.0, 0.5), losses=True)
    for margin, least, most in zip(found.margins, found.at_least, found.at_most, strict=True):
        assert least == most == sum(oracle.is_correct(weights, x, label, margin) for x, label, _ in rows)
    exact = sum((oracle.cross_entropy(weights, x, label) for x, label, _ in rows), oracle.arb(0)) / len(rows)
    assert oracle.arb(found.loss[0]) <= exact <= oracle.arb(found.loss[1])
    assert found.smallest_lower <= min(float(gap(oracle.logits(weights, x), label).mid()) for x, label, _ in rows)


def test_one_output_always_wins():
    curve = margin_curve(MODELS["one output"], [-1.0, 0.0, 5.0], log_loss=True)
    assert [point.at_least for point in curve.points] == [1, 1, 1] and curve.loss[0] == 0.0 and curve.loss[1] < 1e-10


ASKED = {
    "mostly right": (mostly_right(3, v=4, k=3), {}),
    "always right": (mostly_right(1, v=4, k=3, noise=0.0), {}),
    "tied outputs": (ADVERSARIAL["tied outputs"], {}),
    "region": (mostly_right(3, v=4, k=3), {"where": "lacks:1"}),
    "masses of 0": (mostly_right(3, v=4, k=3), {"distribution": "product:1,0,2,1;0,1,1,3;1,1,0,2"}),
    "after": (mostly_right(4, v=4, k=3), {"spec": "after:2"}),
    "two heads": (networks.random_network(1, 0.6, **networks.BLOCKS["two heads"]), {}),
    "subnormal attention": (ADVERSARIAL["subnormal attention"], {}),
    "huge weights": (ADVERSARIAL["huge weights"], {}),
}


@pytest.mark.parametrize("name", ASKED)
def test_counterexamples_fail_and_no_means_none(name):
    weights, asked = ASKED[name]
    task = task_for(weights, **asked)
    rows = sequences_of(task)
    found = cp.counterexamples(weights, task, seconds=2 if name == "two heads" else 10)
    assert [each.label for each in found.labels] == sorted({label for _, label, _ in rows})
    referee = network_oracle if name == "two heads" else oracle
    for each in found.labels:
        own = {x: mass for x, label, mass in rows if label == each.label}
        failing = {x: mass for x, mass in own.items() if referee.is_correct(weights, x, each.label) is not True}
        assert each.total == sum(own.values()) and sum(failing.values()) <= each.failing_at_most
        if each.any_fails == "yes":
            assert each.example in failing
        elif each.any_fails == "no":
            assert not failing and each.failing_at_most == 0 and each.example is None
        else:
            assert name == "two heads", each
        for token, mass in each.queries:
            assert sum(m for x, m in failing.items() if x[-1] == token) <= mass
    inside = {x: found.region.automaton.label(np.array([x]))[0] == 1 for x, _, _ in rows}
    assert all(inside[x] for x, label, _ in rows if referee.is_correct(weights, x, label) is not True)
    assert found.region.mass == sum(mass for x, _, mass in rows if inside[x]) >= found.failing_at_most
    kinds = {each.any_fails for each in found.labels}
    assert ("yes" in kinds) == (name != "always right"), kinds
