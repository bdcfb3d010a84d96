"""Markov chains: copies of tokens have the masses of the chain, and bounds hold, against exact truth."""

import json
import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

import compactproofs as cp
import network_oracle
import oracle
from compactproofs.errors import CertificateError, InfeasibleError, TaskError
from compactproofs.markov import MarkovQuestion, markov_accuracy, prove_markov
from compactproofs.mixtures import MixedQuestion, mixture_accuracy, prove_mixture
from compactproofs.model.kinds import of_length
from compactproofs.strategies.registry import strategy
from compactproofs.tasks import NO_LABEL, Chain, MaxOfK, Product, Region, Where, chains
from compactproofs.tasks.chains import Chained, Copies
from compactproofs.tasks.distribution_files import distribution_of
from models import random_weights
from random_networks import random_network

STRATEGIES = ["threshold-best", "threshold-quartic", "threshold-exact-output", "threshold-cubic", "threshold-cubic-pooled", "brute-force"]


def random_chain(seed, v):
    """Rational weights, zeros among them; with some seeds rows are the same, or a token does not occur."""
    rng = np.random.default_rng(seed)
    rows = [[Fraction(int(n), int(d)) for n, d in zip(rng.integers(0, 4, v), rng.integers(1, 4, v), strict=True)] for _ in range(v + 1)]
    for row in rows:
        row[int(rng.integers(v))] += 1
    if seed % 3 == 1:
        rows[2] = rows[1]
    if seed % 3 == 2:
        for row in rows:
            row[1] = Fraction(0)
            row[0] += 1
        rows[2] = [Fraction(0)] * v  # the row of token 1, which does not occur
    return Chain(tuple(rows[0]), tuple(map(tuple, rows[1:])))


def probability(chain, x):
    """From the definition."""
    found = chain.initial[x[0]] / sum(chain.initial)
    for s, t in pairwise(x):
        if not found:
            return Fraction(0)
        found *= chain.transition[s][t] / sum(chain.transition[s])
    return found


def truth(weights, chain, label_of, n_ctx, place=tuple):
    """The share of the mass answered right, of what has a label; `place` puts tokens between fixed ones."""
    inside = right = Fraction(0)
    for x in product(range(weights.d_vocab), repeat=n_ctx):
        if (mass := probability(chain, x)) and (label := label_of(x)) != NO_LABEL:
            inside += mass
            right += mass if oracle.is_correct(weights, place(x), label) else 0
    return right / inside


@pytest.mark.parametrize("seed", range(12))
def test_copies_of_sequences_have_the_masses_and_labels_of_the_chain(seed):
    """All sequences of copies, one by one; the automata of single labels too."""
    v, n_ctx = 3, 1 + seed % 3
    chain = random_chain(seed, v)
    for inner in (MaxOfK(n_ctx, v), Where(MaxOfK(n_ctx, v), Region("copies-of-max=1"))):
        task = Chained(inner, chain)
        tokens, masses = task.copies.tokens, task.masses
        found = {}
        for copies in product(range(task.d_vocab), repeat=n_ctx):
            label = int(task.automaton.label([copies])[0])
            mass = math.prod(int(masses[i, c]) for i, c in enumerate(copies))
            if label != NO_LABEL and mass:
                x = tuple(int(tokens[c]) for c in copies)
                assert label == inner.automaton.label([x])[0]
                found[x] = found.get(x, 0) + mass
        total = chain.mass_everywhere(n_ctx)
        for x in product(range(v), repeat=n_ctx):
            labelled = inner.automaton.label([x])[0] != NO_LABEL
            assert Fraction(found.get(x, 0), total) == (probability(chain, x) if labelled else 0)
            assert Fraction(int(chain.weigh(np.array([x]))[0]), total) == probability(chain, x)
        assert task.total == sum(found.values())
        for label in task.labels:
            a = task.label_automaton(label)
            by_last = sum(np.array(cp.tasks.question.Question(task).totals_by_last(label), dtype=object))
            assert by_last == sum(mass for x, mass in found.items() if inner.automaton.label([x])[0] == label)
            assert len(a.tokens) <= task.d_vocab


def test_copies_are_few():
    """A column needs as many as it has different weights, or binary digits."""
    one = Fraction(1)
    sticky = Chain((one,) * 8, tuple(tuple(Fraction(7) if s == t else one for t in range(8)) for s in range(8)))
    assert Copies.of(sticky).masses.tolist() == [1] * 8 + [6] * 8
    assert Chained(MaxOfK(3, 8), sticky).labels == list(range(8))
    independent = Chain((one,) * 3, ((one, one, one),) * 3)
    assert Copies.of(independent).masses.tolist() == [1, 1, 1]
    task = Chained(MaxOfK(3, 3), independent)
    assert not task.partial and task.uniform and task.automaton.n_states <= 5
    many = Chain((one,) * 4, tuple((Fraction(n), Fraction(8 - n), Fraction(0), Fraction(1)) for n in (1, 3, 5, 7)))
    assert sorted(Copies.of(many).masses.tolist()) == [0, 1, 1, 1, 2, 2, 4, 4]


@pytest.mark.parametrize("seed", range(9))
def test_bounds_hold_and_brute_force_is_the_truth(seed):
    """Every strategy, from both sides, on random models; ties too, where the weights are 0."""
    weights = random_weights(
        seed, n_ctx=2 + seed % 2, d_vocab=3 + seed % 2, d_vocab_out=6, d_model=7, scale=(1.5, 0.01, 30.0, 0.0)[seed % 4]
    )
    chain = random_chain(seed, weights.d_vocab)
    asked = MarkovQuestion.of(weights, chain, where=[None, "min<=1", None][seed % 3])
    label_of = (lambda x: max(x) if min(x) <= 1 else NO_LABEL) if seed % 3 == 1 else max
    true = truth(weights, chain, label_of, weights.n_ctx)
    exact = markov_accuracy(weights, asked)
    assert Fraction(exact.correct, exact.total) == true and exact.total == asked.total
    for proof in prove_markov(weights, list(map(strategy, STRATEGIES)), asked, upper=True, seconds=20):
        assert proof.status == "proven", proof.reason
        assert Fraction(proof.correct_at_least, proof.total) <= true <= Fraction(proof.correct_at_most, proof.total)
        assert proof.weights_sha256 == weights.sha256 and f"SHA-256 {weights.sha256[:16]}" in proof.theorem
        assert f"weighted by the Markov chain of SHA-256 {chain.title[11:27]}" in proof.theorem
        assert f"tokens from 0 to {weights.d_vocab - 1}" in proof.theorem
        if proof.strategy == "brute-force":
            assert Fraction(proof.correct_at_least, proof.total) == true


@pytest.mark.parametrize("seed", range(3))
def test_whole_blocks(seed):
    network = random_network(seed, post_norm=False)
    chain = random_chain(seed, network.d_vocab)
    asked = MarkovQuestion.of(network, chain)
    answers = {x: network_oracle.is_correct(network, x, max(x)) for x in product(range(network.d_vocab), repeat=network.n_ctx)}
    assert None not in answers.values()
    true = sum(probability(chain, x) for x, right in answers.items() if right)
    exact = markov_accuracy(network, asked)
    assert Fraction(exact.correct, exact.total) == true
    (proof,) = prove_markov(network, [strategy("threshold-best")], asked, upper=True, seconds=1)
    assert proof.status == "proven" and Fraction(proof.correct_at_least, proof.total) <= true
    assert true <= Fraction(proof.correct_at_most, proof.total)


def test_fixed_tokens_stand_around_the_chain():
    weights = random_weights(5, n_ctx=4, d_vocab=4)
    zero, one = Fraction(0), Fraction(1)
    chain = Chain((one, one, zero, zero), ((one, 3 * one, zero, zero), (one, one, zero, zero), (zero,) * 4, (zero,) * 4))
    asked = MarkovQuestion.of(weights, chain, prefix=(3,), suffix=(2,))
    true = truth(weights, chain, max, 2, lambda x: (3, *x, 2))
    exact = markov_accuracy(weights, asked)
    assert Fraction(exact.correct, exact.total) == true and asked.total == asked.mass_everywhere == 8
    (proof,) = prove_markov(weights, [strategy("threshold-best")], asked, upper=True)
    assert Fraction(proof.correct_at_least, proof.total) <= true <= Fraction(proof.correct_at_most, proof.total)
    assert "after the fixed token 3 and before the fixed token 2, weighted by the Markov chain" in proof.theorem
    sampled = markov_accuracy(weights, asked, samples=2000, confidence=0.9999)
    assert sampled.interval[0] <= true <= sampled.interval[1]
    with pytest.raises(TaskError, match="the distribution gives one of them a weight"):
        MarkovQuestion.of(weights, chain, prefix=(0,))


def test_positions_and_margins():
    """The first tokens of a chain are a chain; the later steps weigh the same for all."""
    weights = random_weights(4, n_ctx=3, d_vocab=3, causal=True)
    chain = random_chain(3, 3)
    asked = MarkovQuestion.of(weights, chain)
    proofs = list(prove_markov(weights, [strategy("threshold-best"), strategy("brute-force")], asked, position="every", upper=True))
    assert [(p.strategy, p.position) for p in proofs] == [(name, i) for name in ("threshold-best", "brute-force") for i in range(3)]
    for proof in proofs:
        length = proof.position + 1
        true = truth(of_length(weights, length), chain, max, length)
        assert Fraction(proof.correct_at_least, proof.total) <= true <= Fraction(proof.correct_at_most, proof.total)
        assert proof.total == asked.total and f"read at position {proof.position}" in proof.theorem
    region = MarkovQuestion.of(weights, chain, where="max>=1")
    with pytest.raises(TaskError, match=r"[Oo]nly the last position"):
        list(prove_markov(weights, [strategy("threshold-best")], region, position=1))
    for margin in (0.5, -0.5):
        exact = markov_accuracy(weights, asked, margin=margin)
        right = Fraction(0)
        for x in product(range(3), repeat=3):
            values = oracle.logits(weights, x)
            wins = all(values[max(x)] - values[o] > margin for o in range(3) if o != max(x))
            right += probability(chain, x) if wins else 0
        assert Fraction(exact.correct, exact.total) == right
        (proof,) = prove_markov(weights, [strategy("threshold-best")], asked, upper=True, margin=margin)
        assert Fraction(proof.correct_at_least, proof.total) <= right <= Fraction(proof.correct_at_most, proof.total)


def test_samples_are_drawn_from_the_chain():
    weights = random_weights(1, n_ctx=3, d_vocab=3)
    chain = random_chain(4, 3)
    asked = MarkovQuestion.of(weights, chain)
    rows = asked.drawn(np.random.default_rng(0), 40_000)
    for x in product(range(3), repeat=3):
        p, seen = float(probability(chain, x)), int((rows == x).all(axis=1).sum())
        assert abs(seen - 40_000 * p) <= 5 * math.sqrt(40_000 * p * (1 - p))
    exact, sampled = markov_accuracy(weights, asked), markov_accuracy(weights, asked, samples=5000, confidence=0.9999)
    assert sampled.interval[0] <= exact.accuracy <= sampled.interval[1] and sampled.method == "sampling"
    one = Fraction(1)
    rare = Chain((one,) * 3, ((one, 2000 * one, one),) * 3)
    with pytest.raises(InfeasibleError, match="only one sequence in"):
        markov_accuracy(weights, MarkovQuestion.of(weights, rare, where="max<=0"), samples=10)


def test_what_there_is_not():
    """No certificates, no proofs of the paper; no chain where a task is asked for."""
    weights = random_weights(1, n_ctx=3, d_vocab=4)
    asked = MarkovQuestion.of(weights, random_chain(0, 4))
    for proof in prove_markov(weights, list(map(strategy, ("cubic", "threshold-near", "threshold-low-rank"))), asked, upper=True):
        assert proof.status == "infeasible" and "equally likely" in proof.reason and "Markov chain" in proof.reason
        assert proof.correct_at_least == 0 and proof.correct_at_most == proof.total
    (proof,) = prove_markov(weights, [strategy("threshold-best")], asked)
    assert proof.ledger is None
    with pytest.raises(CertificateError):
        proof.certify()
    with pytest.raises(TaskError, match="a Markov chain of 3 tokens; expected 4"):
        MarkovQuestion.of(weights, random_chain(0, 3))
    with pytest.raises(TaskError, match="has a distribution or fixed tokens"):
        Chained(cp.task_for(weights, distribution=Product(((Fraction(1),) * 3 + (Fraction(2),),))), random_chain(0, 4))


def write(path, content):
    path.write_text(json.dumps(content))
    return str(path)


CHAIN = {"initial": [1, "1/2", 0.25], "transition": [[1, 2, 0], ["1/3", 0, "2/3"], [0, 0, 1]]}


def test_files_are_read_exactly(tmp_path):
    for text in (
        f"markov:{write(tmp_path / 'a.json', CHAIN)}",
        write(tmp_path / "b.json", {"markov": CHAIN}),
        f"markov:{tmp_path / 'b.json'}",
    ):
        chain = distribution_of(text)
        assert chain.starts == (4, 2, 1) and chain.moves == ((1, 2, 0), (1, 0, 2), (0, 0, 3)) and chain.step == 3
        assert chain.title.startswith(("a.json (SHA-256 ", "b.json (SHA-256 "))
    with pytest.raises(TaskError, match="is a Markov chain, which is no task of its own"):
        cp.task_for(random_weights(0, d_vocab=3), distribution=text)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([1], 'expected {"initial"'),
        ({"initial": [1]}, 'expected {"initial"'),
        ({"product": [1]}, 'expected {"initial"'),
        ({"initial": 1, "transition": [[1]]}, 'expected {"initial"'),
        ({"initial": [1, 1], "transition": [[1, 1]]}, "2 initial weights and 1 rows of 2 weights"),
        ({"initial": [1, 1], "transition": [[1, 1], [1]]}, "2 rows of 1, 2 weights"),
        ({"initial": [0, 0], "transition": [[1, 1], [1, 1]]}, "an initial one that is positive"),
        ({"initial": [1, 0], "transition": [[1, 1], [0, 0]]}, "token 1 occurs and nothing can follow it"),
        ({"initial": [1, -1], "transition": [[1, 1], [1, 1]]}, "is no weight"),
        ({"initial": [1, 1], "transition": [[1, 10**7], [1, 10**7 + 2]]}, "more than 2^40"),
    ],
)
def test_files_that_are_no_chains(content, words, tmp_path):
    with pytest.raises(TaskError) as error:
        distribution_of(f"markov:{write(tmp_path / 'c.json', content)}")
    assert words in str(error.value)


def test_what_would_be_too_large_is_refused(monkeypatch):
    chain = random_chain(0, 4)
    monkeypatch.setattr(chains, "_MOST_MOVES", 100)
    with pytest.raises(TaskError, match="moves, more than 100; expected a smaller vocabulary"):
        Chained(MaxOfK(3, 4), chain)
    monkeypatch.setattr(chains, "_MOST_COPIES", 5)
    with pytest.raises(TaskError, match="copies of its 4 tokens, more than 5"):
        Copies.of(chain)


@pytest.mark.parametrize("where", [None, "max>=2"])
def test_a_chain_as_a_part_of_a_mixture(where, tmp_path):
    parts = [{"share": "1/4", "markov": CHAIN}, {"share": 1, "product": [1, 2, 3]}]
    mixture = distribution_of(write(tmp_path / "mix.json", {"mixture": parts}))
    (_, chain), (_, independent) = mixture.parts
    weights = random_weights(2, n_ctx=3, d_vocab=3)
    asked = MixedQuestion.of(weights, mixture, where=where)
    inside = right = Fraction(0)
    for x in product(range(3), repeat=3):
        each = Fraction(1, 5) * probability(chain, x) + Fraction(4, 5) * math.prod(independent.weights[0][t] / 6 for t in x)
        if where is None or max(x) >= 2:
            inside += each
            right += each if oracle.is_correct(weights, x, max(x)) else 0
    exact = mixture_accuracy(weights, asked)
    assert Fraction(exact.correct, exact.total) == right / inside
    (proof,) = prove_mixture(weights, [strategy("threshold-best")], asked, upper=True)
    assert Fraction(proof.correct_at_least, proof.total) <= right / inside <= Fraction(proof.correct_at_most, proof.total)
