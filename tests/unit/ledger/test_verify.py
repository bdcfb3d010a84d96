"""What a ledger proves is true, whoever wrote it; what a strategy claims is what its ledger proves."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import compactproofs as cp
import oracle
from compactproofs.counting.grid import Grid
from compactproofs.errors import LedgerError
from compactproofs.ledger.ledger import Apart, Both, Factored, Joint, Leaf, Ledger, Part, Split, Spoiler, Spoilers
from compactproofs.ledger.verify import verify
from compactproofs.tasks import MaxOfK, task_for
from compactproofs.tasks.question import Question
from models import adversarial_models, mostly_right, random_weights
from random_ledgers import random_ledger
from tasks import KINDS, Named


def right_mass(weights, question):
    """The mass of the sequences that are answered right, one by one, in exact arithmetic."""
    task = question.task
    automaton = task.automaton
    total = 0
    for x in product(range(task.d_vocab), repeat=task.n_ctx):
        label = int(automaton.label(np.array([x]))[0])
        total += question.mass_of(x) if oracle.is_correct(weights, x, label) else 0
    return total


def questions(seed):
    rng = np.random.default_rng(seed)
    k, v = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    kind = [None, *KINDS][seed % (len(KINDS) + 1)]
    task = MaxOfK(k, v) if kind is None else Named(kind, k, v)
    masses = rng.integers(0, 4, size=(k, v)) + (np.arange(v) == 0) if seed % 2 else None
    out = int(task.automaton.labels.max()) + 1 + int(rng.integers(0, 2))
    weights = random_weights(seed, n_ctx=k, d_vocab=v, d_vocab_out=out, scale=float(rng.choice([0.3, 1.0, 3.0])))
    return weights, Question(task, masses)


@pytest.mark.parametrize("block", range(8))
def test_anybodys_ledger_proves_only_what_is_true(block):
    for seed in range(20 * block, 20 * block + 20):
        weights, question = questions(seed)
        truth = right_mass(weights, question)
        for number in range(6):
            ledger = random_ledger(weights, question, 100 * seed + number, factored=number >= 4, upper=number < 4)
            found = verify(ledger, weights)
            assert 0 <= found.correct_at_least <= truth, (seed, number)
            assert found.correct_at_most is None or truth <= found.correct_at_most <= question.total, (seed, number)


@pytest.mark.parametrize("name", [name for name, _ in adversarial_models()])
def test_anybodys_ledger_about_adversarial_models(name):
    weights = dict(adversarial_models())[name]
    question = Question(task_for(weights))
    truth = right_mass(weights, question)
    for seed in range(12):
        found = verify(random_ledger(weights, question, seed, factored=seed >= 8, upper=seed < 8), weights)
        assert found.correct_at_least <= truth
        assert found.correct_at_most is None or truth <= found.correct_at_most


@pytest.mark.parametrize("seed", range(6))
def test_intervals_prove_what_is_true_and_compiled_functions_hardly_less(seed):
    """The array code in interval arithmetic is slow; the compiled functions stand in for it."""
    weights, question = questions(7 * seed)
    truth = right_mass(weights, question)
    for number in range(3):
        ledger = random_ledger(weights, question, number)
        slow, fast = verify(ledger, weights, intervals=True), verify(ledger, weights)
        assert fast.correct_at_least <= slow.correct_at_least <= truth <= slow.correct_at_most <= fast.correct_at_most
    proof = cp.prove(weights, "threshold-best", question.task, upper=True)
    slow = verify(proof.ledger, weights, intervals=True)
    assert proof.correct_at_least <= slow.correct_at_least and slow.correct_at_most <= proof.correct_at_most


NAMES = ("best", "exact-output", "quartic", "cubic", "cubic-pooled", "blocks", "quadratic-pooled")


@pytest.mark.parametrize("name", [f"threshold-{name}" for name in NAMES] + ["threshold-cubic-pooled/max_diff/svd"])
@pytest.mark.parametrize("seed", [2, 3, 11])
def test_a_strategy_claims_what_its_ledger_proves(name, seed):
    weights = mostly_right(seed, v=6, k=4)
    for task in (MaxOfK(4, 6), Named("minimum", 4, 6)):
        proof = cp.prove(weights, name, task, upper="own")
        found = cp.verify(proof.ledger, weights)
        assert (found.correct_at_least, found.correct_at_most) == (proof.correct_at_least, proof.correct_at_most), task.title
        assert found.total == proof.total and found.operations <= proof.integer_ops


@pytest.mark.parametrize("name", ["brute-force", "cubic", "subcubic"])
def test_the_papers_strategies_have_no_ledger(name):
    assert cp.prove(random_weights(0), name).ledger is None


def test_a_ledger_may_be_checked_against_another_network():
    """It proves little there, but nothing false: a ledger is only a list of hints."""
    ledger = cp.prove(mostly_right(1), "threshold-best", upper=True).ledger
    for seed in range(5):
        weights = random_weights(seed, d_vocab=5, d_vocab_out=5)
        found, truth = cp.verify(ledger, weights), oracle.count_correct(weights)
        assert found.correct_at_least <= truth <= found.correct_at_most


GRID = Grid(1, -4, 100, (0, 0, 0))
ONE = Joint((0,), (1,), GRID)
OTHER = Joint((1,), (1,), GRID)


def alone(tree, label=2, queries=(1,)):
    return Ledger(Question(MaxOfK(3, 5)), "", (Part(label, queries, tree),))


BAD = {
    "two parts": replace(alone(Leaf(())), lower=(Part(2, (1,), Leaf(())),) * 2),
    "which no sequence carries": alone(Leaf(()), label=7),
    "does not occur with it": alone(Leaf(()), queries=(4,)),
    "needs queries": alone(Leaf(()), queries=()),
    "the tokens [4] does not occur with it": alone(Split(4, 1, Leaf(()), Leaf(()))),
    "a split by 0 copies": alone(Split(0, 0, Leaf(()), Leaf(()))),
    "a split by 4 copies": alone(Split(0, 1, Split(1, 4, None, None), Leaf(()))),
    "cannot be: Joint(outputs=(2,)": alone(Leaf((Joint((2,), (1,), GRID),))),
    "cannot be: Joint(outputs=(0, 1), weights=(1,)": alone(Leaf((Joint((0, 1), (1,), GRID),))),
    "cannot be: Joint(outputs=(0,), weights=(0,)": alone(Leaf((Joint((0,), (0,), GRID),))),
    "cannot be: Joint(outputs=(9,)": alone(Leaf((Joint((9,), (1,), GRID),))),
    "cannot be: Apart": alone(Leaf((Joint((0,), (1,), GRID), Apart(1, 0, -1, 1, GRID)))),
    "cannot be: Both": alone(Leaf((Both(ONE, Spoiler(0, GRID), 9),))),
    "cannot be: Joint(outputs=(9, 9)": alone(Leaf((Both(ONE, Joint((9, 9), (1, 1), GRID), 9),))),
    "kept within 0": alone(Leaf((Both(ONE, ONE, 0),))),
    "kept within 1025": alone(Leaf((Both(ONE, ONE, 1025),))),
    "output 1 spoils, but no earlier": alone(Leaf((Both(ONE, Apart(0, 1, 1, 1, GRID), 9),))),
    "no earlier term covers": alone(Leaf((Apart(1, 0, 1, 1, GRID),))),
    "cannot be: Factored": alone(Leaf((Factored(GRID),))),
    "a spoiler stands in a lower": alone(Leaf((Spoiler(0, GRID),))),
    "out of range": alone(Leaf((Joint((0,), (1,), GRID._replace(offsets=(0, 0, 256))),))),
    "a step, depth": alone(Leaf((Joint((0,), (1,), GRID._replace(mantissa=0)),))),
    "listed twice": alone(Leaf((), ((0, 2, 1), (0, 2, 1)))),
    "too short": alone(Leaf((), ((2, 1),))),
}


@pytest.mark.parametrize("message", BAD)
def test_a_malformed_ledger_is_refused_by_name(message):
    with pytest.raises(LedgerError) as error:
        verify(BAD[message], random_weights(0))
    assert message in str(error.value)


def test_an_upper_bound_takes_spoilers_only():
    weights = random_weights(0)
    part = Part(2, (1,), Leaf((Joint((0,), (1,), GRID),)))
    with pytest.raises(LedgerError, match="a term that bounds failures"):
        verify(Ledger(Question(MaxOfK(3, 5)), "", (), (part,)), weights)


SPOILERS = Spoiler(0, GRID), Spoiler(1, GRID)
OVERLAP = Both(OTHER, ONE, 9)
SEVERAL = [
    ("one spoiler to a leaf", Leaf(SPOILERS)),
    ("all before it", Leaf((*SPOILERS, Both(ONE, OTHER, 9)))),
    ("all before it", Leaf((*SPOILERS, Both(OTHER, Apart(0, 1, 1, 1, GRID), 9)))),
    ("all before it", Leaf((*SPOILERS, Both(Joint((0, 1), (1, 1), GRID), ONE, 9)))),
    ("all before it", Leaf((*SPOILERS, Spoiler(3, GRID), OVERLAP, Both(Joint((3,), (1,), GRID), ONE, 9)))),
    ("different ones", Leaf((SPOILERS[0], SPOILERS[0], Both(ONE, ONE, 9)))),
    ("different ones", Leaf((SPOILERS[0], Spoilers(1, 3, 1, 1, GRID), OVERLAP))),
    ("not after its spoilers", Leaf((SPOILERS[0], OVERLAP, SPOILERS[1]))),
    ("no listed", Leaf((*SPOILERS, OVERLAP), ((0, 2, 1),))),
]


@pytest.mark.parametrize(("message", "leaf"), SEVERAL)
def test_several_spoilers_say_what_each_spoils_with_those_before_it(message, leaf):
    with pytest.raises(LedgerError) as error:
        verify(Ledger(Question(MaxOfK(3, 5)), "", (), (Part(2, (1,), leaf),)), random_weights(0))
    assert message in str(error.value)


def test_what_is_given_up_counts_as_failing_and_as_right():
    weights, question = mostly_right(1), Question(MaxOfK(3, 5))
    nothing = verify(Ledger(question, "", (), ()), weights)
    assert (nothing.correct_at_least, nothing.correct_at_most) == (0, 125)
    part = Part(4, (4,), None)
    given_up = verify(Ledger(question, "", (part,), (part,)), weights)
    assert (given_up.correct_at_least, given_up.correct_at_most) == (0, 125)
    assert given_up.failing == given_up.right == (25,)


def test_uncovered_outputs_prove_nothing():
    """A term for one output only, where another one may win."""
    weights = random_weights(3, d_vocab_out=6)
    ledger = cp.prove(weights, "threshold-quartic").ledger
    poorer = []
    for part in ledger.lower:
        poorer.append(part.with_leaves(lambda leaf: replace(leaf, terms=tuple(_without_an_output(term) for term in leaf.terms))))
    assert verify(replace(ledger, lower=tuple(poorer)), weights).correct_at_least <= verify(ledger, weights).correct_at_least


def test_two_terms_at_once_cover_what_both_cover():
    weights = mostly_right(1)
    label, grid = 4, Grid(1, -8, 1 << 20, (0, 0, 0))
    first, rest, everything = (Joint(o, (1,) * len(o), grid) for o in ((0,), (1, 2, 3), (0, 1, 2, 3)))

    def failing(*terms):
        (found,) = verify(Ledger(Question(MaxOfK(3, 5)), "", (Part(label, (label,), Leaf(terms)),)), weights).failing
        return found

    assert failing(Both(first, rest, 1000)) == 25 > failing(everything)
    assert failing(first, Both(rest, everything, 1000)) <= failing(first, rest) < 25


def _without_an_output(term):
    return replace(term, outputs=term.outputs[:1], weights=term.weights[:1])


def test_weights_that_float64_knows_nothing_about_prove_nothing():
    weights = random_weights(1, scale=1e9)
    ledger = random_ledger(weights, Question(MaxOfK(3, 5)), 0)
    found = verify(ledger, weights)
    assert (found.correct_at_least, found.correct_at_most) == (0, 125)


def test_listed_sequences_make_a_bound_exact():
    weights = mostly_right(3, v=6, k=4, noise=0.6)
    proof = cp.prove(weights, "threshold-best", upper=True)
    listed = [x for part in proof.ledger.lower for leaf in part.leaves for x in leaf.listed]
    assert proof.correct_at_least == proof.correct_at_most == oracle.count_correct(weights) and listed
    assert all(oracle.is_correct(weights, x, max(x)) for x in listed)
    without = [part.with_leaves(lambda leaf: replace(leaf, listed=())) for part in proof.ledger.lower]
    assert verify(replace(proof.ledger, lower=tuple(without)), weights).correct_at_least == proof.correct_at_least - len(listed)
