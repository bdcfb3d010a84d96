"""Answers at other positions than the last, against a causal network that is evaluated at all of them."""

import threading
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import compactproofs as cp
from blocks import tiny_block
from compactproofs.errors import StrategyError, TaskError
from compactproofs.model.kinds import as_network, of_length, shortened, simplest
from compactproofs.positions import CAUSAL, read_at, readings
from compactproofs.strategies.shared import Shared
from compactproofs.tasks import Framed, MaxOfK, SignOfSum, task_for
from models import mostly_right, random_weights
from networks import BIASES, random_network
from tasks import Named


def at_all_positions(model, tokens):
    """(sequence, position, output): logits of a causal network with heads, biases, ALiBi and a ReLU MLP, from its definition."""
    n = as_network(model)
    T = {name: tensor.astype(np.float64) for name, tensor in n.tensors.items()}
    x = T["W_E"][tokens] + (T["W_pos"] if n.W_pos is not None else 0)
    q, k, v = (np.einsum("bid,hde->bhie", x, T[f"W_{X}"]) + T.get(f"b_{X}", np.zeros((n.n_heads, n.d_head)))[:, None] for X in "QKV")
    scores = np.einsum("bhpe,bhie->bhpi", q, k) / float(n.score_divisor_squared) ** 0.5
    places = np.arange(n.n_ctx)
    if n.alibi is not None:
        scores = scores - np.array([2.0**-e for e in n.alibi])[:, None, None] * (places[:, None] - places)
    scores = np.where(places[:, None] >= places, scores, -np.inf)
    attention = np.exp(scores - scores.max(axis=-1, keepdims=True))
    attention /= attention.sum(axis=-1, keepdims=True)
    r = x + np.einsum("bhpi,bhie,hed->bpd", attention, v, T["W_O"]) + T.get("b_O", 0)
    if n.mlp is not None:
        r = r + np.maximum(r @ T["mlp.W_in"] + T.get("mlp.b_in", 0), 0) @ T["mlp.W_out"] + T.get("mlp.b_out", 0)
    return r @ T["W_U"] + T.get("b_U", 0)


def right_at(model, task, position):
    """How many inputs of the whole model are answered right there."""
    allowed = np.ones((task.n_ctx, task.d_vocab), bool) if task.allowed is None else task.allowed
    tokens = np.array(list(product(*(np.flatnonzero(row) for row in allowed))))
    labels = task.of_length(position + 1).automaton.label(tokens[:, : position + 1])
    return int((at_all_positions(model, tokens)[:, position].argmax(axis=1) == labels).sum())


MODELS = {
    "plain": lambda: random_weights(1, n_ctx=4, d_vocab=4),
    "mostly right": lambda: mostly_right(2),
    "MLP": lambda: tiny_block(0, "MLP"),
    "two heads, MLP": lambda: tiny_block(3, "two heads, MLP"),
    "two heads": lambda: tiny_block(4, "two heads"),
    "ALiBi, no positions": lambda: random_network(5, W_pos=None, alibi=(1,), **BIASES),
}


@pytest.mark.parametrize("spec", ["max", "sign-of-sum", "sign-of-sum:1.5"])
@pytest.mark.parametrize("name", MODELS)
def test_every_position_against_the_whole_network(name, spec):
    model = replace(MODELS[name](), causal=True)
    task = task_for(model, spec)
    proofs = cp.prove(model, "brute-force", task, position="every", upper=True)
    best = cp.prove(model, task=task, position="every", upper=True, seconds=4)
    assert [proof.position for proof in proofs] == [proof.position for proof in best] == list(range(model.n_ctx))
    for p, (exact, found) in enumerate(zip(proofs, best, strict=True)):
        true = right_at(model, task, p)
        assert exact.correct_at_least == exact.correct_at_most == true and exact.total == found.total == task.total
        assert found.status == "proven" and found.correct_at_least <= true <= found.correct_at_most
        short = cp.accuracy(of_length(model, p + 1), task_for(of_length(model, p + 1), spec))
        assert true == short.correct * model.d_vocab ** (model.n_ctx - p - 1)


def test_a_prefix():
    model = replace(tiny_block(0, "MLP"), causal=True)
    task = task_for(model, prefix=[4])
    proofs = cp.prove(model, "brute-force", task, position="every", upper=True)
    assert [proof.position for proof in proofs] == [1, 2] and {proof.total for proof in proofs} == {16}
    assert [proof.correct_at_least for proof in proofs] == [right_at(model, task, p) for p in (1, 2)]
    assert "after the fixed token 4" in proofs[0].theorem and "for the first 2 tokens" in proofs[0].theorem
    with pytest.raises(TaskError, match="within the prefix"):
        cp.prove(model, "brute-force", task, position=0)


def test_a_suffix_can_be_read_at_its_end_only():
    model = mostly_right(1)
    task = task_for(model, suffix=[4])
    assert cp.prove(model, "brute-force", task, position=2).correct_at_least == cp.accuracy(model, task).correct
    for position in (0, "every"):
        with pytest.raises(TaskError, match="only the last position"):
            cp.prove(model, "brute-force", task, position=position)


def test_the_last_position_is_as_ever():
    model = mostly_right(1)
    plain, last, asked = (cp.prove(model, "cubic", **given) for given in ({}, {"position": "last"}, {"position": 2}))
    assert plain.position is last.position is None and asked.position == 2
    assert plain.theorem == last.theorem and "position" not in plain.theorem and "position" not in plain.as_json()
    assert (asked.correct_at_least, asked.total) == (plain.correct_at_least, plain.total)
    assert asked.as_json()["position"] == 2 and asked.assumptions == ()
    assert read_at(model, MaxOfK(3, 5), "last").network is model


def test_the_theorem_is_about_the_whole_model():
    model = mostly_right(1)
    proof = cp.prove(model, "cubic", position=1, upper=True)
    assert proof.weights_sha256 == model.sha256 and f"SHA-256 {model.sha256[:16]}" in proof.theorem
    assert "the answer read at position 1 (the first is 0), which depends on the tokens up to it" in proof.theorem
    assert f"at least {proof.correct_at_least} and at most {proof.correct_at_most} of the 5^3 = 125 sequences of 3 tokens" in proof.theorem
    assert "give the right output for the first 2 tokens, the largest token," in proof.theorem
    assert "right output for the first token," in cp.prove(model, "cubic", position=0).theorem
    assert proof.correct_at_least % 5 == 0 and proof.origin.weights == of_length(model, 2) and proof.origin.question.total == 25
    unsound = cp.prove(model, cp.Subcubic("max_diff", "svd", "mean_query+diff", repaired=False), position=1)
    assert unsound.theorem.startswith("No theorem:") and "of the 5^3 = 125 input sequences at position 1." in unsound.theorem


def test_what_is_infeasible_has_trivial_bounds_over_all_inputs():
    network = tiny_block(0, "MLP")
    proof = cp.prove(network, "cubic", position=0, upper=True)
    assert (proof.status, proof.correct_at_least, proof.correct_at_most, proof.total) == ("infeasible", 0, 125, 125)


@pytest.mark.parametrize("position", [-1, 3, True, "first", 1.0, None])
def test_what_no_position_can_be(position):
    with pytest.raises(TaskError, match="expected 'last', 'every' or a number from 0 to 2"):
        cp.prove(mostly_right(1), "cubic", position=position)


def test_causality():
    model = mostly_right(1)
    assert model.causal is None
    first, _, last = cp.prove(model, "cubic", position="every")
    assert first.assumptions == (CAUSAL,) and last.assumptions == ()
    assert first.theorem.endswith("Assumed about the model: attention is causal: a position sees the tokens up to it.")
    assert cp.prove(replace(model, causal=True), "cubic", position=0).assumptions == ()
    both = replace(model, causal=False)
    for position in (0, "every"):
        with pytest.raises(TaskError, match="attention is not causal: .* Only its last position, 2, can be read"):
            cp.prove(both, "cubic", position=position)
    assert cp.prove(both, "cubic", position=2).correct_at_least == cp.prove(both, "cubic").correct_at_least == last.correct_at_least


@pytest.mark.parametrize("causal", [True, False, None])
def test_whether_attention_is_causal_is_kept_and_not_hashed(causal, tmp_path):
    for model in (mostly_right(1), random_network(0, **BIASES), tiny_block(0, "MLP")):
        said = replace(model, causal=causal)
        assert said == model and said.sha256 == model.sha256 and repr(said) == repr(model)
        network = as_network(said)
        assert {network.causal, simplest(network).causal, shortened(network, 2).causal, of_length(said, 1).causal} == {causal}
        cp.save(said, tmp_path / "model.safetensors")
        assert cp.load(tmp_path / "model.safetensors").causal is causal


def test_what_a_task_of_ones_own_must_say():
    model = mostly_right(1)
    with pytest.raises(TaskError, match=r"does not say what the right output is for the first 1 of 3 tokens.*Named a method of_length"):
        cp.prove(model, "brute-force", Named("minimum", 3, 5), position="every")
    assert cp.prove(model, "brute-force", Named("minimum", 3, 5), position=2).status == "proven"

    @dataclass(frozen=True)
    class Minimum(Named):
        def of_length(self, n_ctx):
            return replace(self, n_ctx=n_ctx)

    task = Minimum("minimum", 3, 5)
    assert cp.prove(model, "brute-force", task, position=1).correct_at_least == right_at(model, task, 1)

    @dataclass(frozen=True)
    class Longer(Named):
        def of_length(self, n_ctx):
            return replace(self, n_ctx=n_ctx + 1)

    with pytest.raises(TaskError, match="the task has n_ctx=2"):
        cp.prove(model, "brute-force", Longer("minimum", 3, 5), position=0)

    @dataclass(frozen=True)
    class Otherwise(Named):
        def of_length(self, n_ctx):
            return Framed(MaxOfK(n_ctx - 1, 5), (4,))

    with pytest.raises(TaskError, match="Otherwise.of_length.2. allows other tokens"):
        cp.prove(model, "brute-force", Otherwise("minimum", 3, 5), position=1)


def test_ways_and_readings():
    model = mostly_right(1)
    found = readings(model, MaxOfK(3, 5), "every")
    assert [(each.position, each.ways) for each in found] == [(0, 25), (1, 5), (2, 1)]
    assert [each.task.n_ctx for each in found] == [each.network.n_ctx for each in found] == [1, 2, 3]
    framed = readings(model, Framed(SignOfSum(2, 5), (0,)), "every")
    assert [(each.position, each.ways) for each in framed] == [(1, 4), (2, 1)]


def test_a_memory_belongs_to_one_position():
    model = mostly_right(1)
    shared = Shared(of_length(model, 2), MaxOfK(2, 5))
    assert cp.prove(model, "brute-force", position=1, shared=shared).status == "proven"
    with pytest.raises(StrategyError, match="this memory"):
        cp.prove(model, "brute-force", position=0, shared=shared)


def test_time_is_shared_by_the_positions_that_are_left(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("compactproofs.budget.time.perf_counter", lambda: clock[0])
    seen = []

    class Taking(cp.Cubic):
        def bound(self, request):
            seen.append(request.seconds)
            clock[0] += (2.0, 8.0, 0.0)[len(seen) - 1]
            return super().bound(request)

    proofs = cp.prove(mostly_right(1), Taking(), position="every", seconds=30.0)
    assert seen == [10.0, 14.0, 20.0] and [proof.seconds for proof in proofs] == [2.0, 8.0, 0.0]
    seen.clear()
    cp.prove(mostly_right(1), Taking(), position="every", seconds=None)
    assert seen == [None] * 3
    seen.clear()
    cp.prove(mostly_right(1), Taking(), position=1, seconds=30.0)
    assert seen == [30.0]


def test_stopped_it_returns_what_it_has_come_to():
    stop = threading.Event()

    class Stopping(cp.Cubic):
        def bound(self, request):
            if request.weights.n_ctx == 2:
                stop.set()
            return super().bound(request)

    assert [proof.position for proof in cp.prove(mostly_right(1), Stopping(), position="every", stop=stop)] == [0, 1]


def test_many_strategies_at_every_position():
    model = mostly_right(1)
    strategies, seen = [cp.Cubic(), cp.ThresholdQuartic()], []
    assert [proof.strategy for proof in cp.prove_many(model, ["cubic", cp.ThresholdQuartic()])] == ["cubic", "threshold-quartic"]
    found = list(cp.prove_many(model, strategies, position="every", progress=lambda done, total: seen.append((done, total))))
    assert [(proof.label, proof.position) for proof in found] == [(s.label, p) for s in strategies for p in range(3)]
    assert seen == [(n, 6) for n in range(1, 7)]
    assert [p.correct_at_least for p in found[:3]] == [p.correct_at_least for p in cp.prove(model, "cubic", position="every")]


def right_everywhere(model, task):
    """How many inputs of the whole model are answered right at every position."""
    tokens = np.array(list(product(range(task.d_vocab), repeat=task.n_ctx)))
    answers = at_all_positions(model, tokens).argmax(axis=2)
    labels = np.stack([task.of_length(p + 1).automaton.label(tokens[:, : p + 1]) for p in range(task.n_ctx)], axis=1)
    return int((answers == labels).all(axis=1).sum())


@pytest.mark.parametrize("strategy", ["brute-force", "threshold-quartic"])
@pytest.mark.parametrize("name", ["mostly right", "two heads, MLP", "plain"])
def test_over_positions(name, strategy):
    model = replace(MODELS[name](), causal=True)
    task = task_for(model, "max")
    proofs = cp.prove(model, strategy, task, position="every", upper=True)
    found = cp.over_positions(proofs)
    right = [right_at(model, task, p) for p in range(task.n_ctx)]
    assert found.positions == task.n_ctx
    assert found.average_lower <= Fraction(sum(right), task.n_ctx * task.total) <= found.average_upper
    assert found.all_right_lower <= Fraction(right_everywhere(model, task), task.total) <= found.all_right_upper
    if strategy == "brute-force":
        assert found.average_lower == found.average_upper == Fraction(sum(right), task.n_ctx * task.total)
        assert found.all_right_upper == Fraction(min(right), task.total)
        assert found.all_right_lower == max(0, 1 - sum(1 - Fraction(count, task.total) for count in right))


def test_over_positions_of_what_is_infeasible():
    model = replace(tiny_block(0, "MLP"), causal=True)
    first, *others = cp.prove(model, "brute-force", task_for(model, "max"), position="every", upper=True)
    nothing = replace(first, status="infeasible", correct_at_least=first.correct_at_least, reason="took too long")
    found = cp.over_positions([nothing, *others])
    assert found.all_right_lower == 0 and found.average_lower < cp.over_positions([first, *others]).average_lower
    assert found.all_right_upper == min(Fraction(proof.correct_at_most, proof.total) for proof in others)


def test_over_positions_of_different_questions():
    model = replace(tiny_block(0, "MLP"), causal=True)
    every = cp.prove(model, "brute-force", task_for(model, "max"), position="every")
    other = cp.prove(model, "brute-force", task_for(model, "sign-of-sum"), position="every")
    last = cp.prove(model, "brute-force", task_for(model, "max"))
    for wrong in (
        [every[0], other[1]],
        [every[0], every[0]],
        [*every, last],
        [replace(every[0], origin=None), every[1]],
        [replace(every[0], sound=False), every[1]],
        [],
    ):
        with pytest.raises(TaskError, match="expected .*proofs"):
            cp.over_positions(wrong)
    weighed = task_for(model, "max", distribution="product:2,1,1,1,0")
    mixed = cp.prove(model, "brute-force", weighed, position="every")
    assert mixed[0].total == every[0].total
    with pytest.raises(TaskError, match="different tasks or distributions"):
        cp.over_positions([mixed[0], every[1]])
