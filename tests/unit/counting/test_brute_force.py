from itertools import product

import numpy as np
import pytest

import oracle
from compactproofs.counting import plain_truth as module
from compactproofs.counting.brute_force import brute_force
from compactproofs.counting.outcome import ExactCount
from compactproofs.counting.plain_truth import PlainTruth
from compactproofs.counting.sampling import sample
from compactproofs.errors import InfeasibleError
from compactproofs.form.evaluation import prepare
from compactproofs.tasks import LabellingAutomaton, task_for
from compactproofs.tasks.automaton import AbstractTask
from models import adversarial_models, random_weights, weights_from_tables

SIZES = [
    {"n_ctx": 1, "d_vocab": 6, "d_vocab_out": 7, "d_model": 3, "d_head": 2},
    {"n_ctx": 2, "d_vocab": 6, "d_vocab_out": 8, "d_model": 3, "d_head": 4},
    {"n_ctx": 3, "d_vocab": 5, "d_vocab_out": 5, "d_model": 4, "d_head": 2},
    {"n_ctx": 4, "d_vocab": 3, "d_vocab_out": 4, "d_model": 2, "d_head": 5},
    {"n_ctx": 3, "d_vocab": 1, "d_vocab_out": 1, "d_model": 2, "d_head": 3},
    {"n_ctx": 5, "d_vocab": 2, "d_vocab_out": 3, "d_model": 4, "d_head": 1},
]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0, 300.0])
def test_brute_force_counts_what_the_oracle_counts(sizes, scale):
    weights = random_weights(11, scale=scale, **sizes)
    count = brute_force(weights, task_for(weights))
    assert (count.correct, count.undecided) == (oracle.count_correct(weights), 0)
    assert count.total == sizes["d_vocab"] ** sizes["n_ctx"]


@pytest.mark.parametrize(("name", "weights"), adversarial_models(), ids=lambda x: x if isinstance(x, str) else "")
def test_brute_force_is_exact_on_adversarial_models(name, weights):
    count = brute_force(weights, task_for(weights))
    assert (count.correct, count.undecided) == (oracle.count_correct(weights), 0)


@pytest.mark.parametrize(("name", "weights"), adversarial_models(), ids=lambda x: x if isinstance(x, str) else "")
def test_decide_is_exact_on_adversarial_models(name, weights):
    everything = np.array(list(product(range(weights.d_vocab), repeat=weights.n_ctx)))
    count = PlainTruth(weights).decide(task_for(weights), everything)
    assert (count.correct, count.undecided) == (oracle.count_correct(weights), 0)


def test_attention_that_underflows_altogether_is_decided_exactly():
    tables = {"EQKP": np.zeros((3, 1)), "PVOU": np.zeros((1, 3)), "EU": np.zeros((3, 3)), "EVOU": [[0, 1, 2], [1, 0, 2], [0, 0, -1]]}
    for scale in (1e4, 1e30):
        weights = weights_from_tables(EQKE=scale * np.array([[0, 1, 2], [2, 0, 1], [1, 2, 0]]), **tables)
        assert brute_force(weights, task_for(weights)).correct == oracle.count_correct(weights)


def test_near_ties_go_to_exact_arithmetic():
    tied = dict(adversarial_models())["tied outputs"]
    assert brute_force(tied, task_for(tied)).decided_exactly > 0
    ordinary = random_weights(2)
    assert brute_force(ordinary, task_for(ordinary)).decided_exactly == 0


def test_a_flood_of_ties_is_reported_as_undecided_not_guessed(monkeypatch):
    monkeypatch.setattr(module, "MAX_EXACT_DECISIONS", 10)
    zero = dict(adversarial_models())["all zero"]
    count = brute_force(zero, task_for(zero))
    assert count == ExactCount(correct=0, total=125, undecided=115, decided_exactly=10)


def test_more_ties_than_the_first_buffer_holds():
    zero = random_weights(0, n_ctx=4, d_vocab=7, scale=0.0)
    assert brute_force(zero, task_for(zero)) == ExactCount(correct=0, total=2401, undecided=0, decided_exactly=2401)


class Parity(AbstractTask):
    """Sum of the tokens modulo 2: a task whose label is not among the tokens' order."""

    n_ctx, d_vocab, spec, title = 4, 3, "parity", "the parity of the sum"
    automaton = LabellingAutomaton(transitions=np.array([[0, 1, 0], [1, 0, 1]]), labels=np.array([0, 1]), start=0)


class First(AbstractTask):
    """The first token: order matters, so positions may not be confused."""

    n_ctx, d_vocab, spec, title = 4, 3, "first", "the first token"
    automaton = LabellingAutomaton(
        transitions=np.array([[0, 0, 0], [1, 1, 1], [2, 2, 2], [0, 1, 2]]), labels=np.array([0, 1, 2, 0]), start=3
    )


@pytest.mark.parametrize(("task", "label_of"), [(Parity(), lambda x: sum(x) % 2), (First(), lambda x: x[0])])
@pytest.mark.parametrize("seed", range(3))
def test_brute_force_works_for_any_automaton(task, label_of, seed):
    weights = random_weights(seed, n_ctx=4, d_vocab=3, d_vocab_out=5, d_model=6, d_head=2)
    assert brute_force(weights, task).correct == oracle.count_correct(weights, label_of)


def test_calls_split_the_prefixes_without_gap_or_overlap(monkeypatch):
    weights = random_weights(4, n_ctx=5, d_vocab=3, d_vocab_out=4)
    whole = brute_force(weights, task_for(weights))
    monkeypatch.setattr(module, "_COMPARISONS_PER_CALL", 60)
    seen = []
    assert brute_force(weights, task_for(weights), progress=lambda done, total: seen.append((done, total))) == whole
    assert seen[-1] == (243, 243) and len(seen) > 10
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_does_not_matter(threads):
    weights = random_weights(4, n_ctx=4, d_vocab=6)
    assert brute_force(weights, task_for(weights), threads=threads) == brute_force(weights, task_for(weights))


def test_the_infeasible_is_refused_with_an_estimate():
    weights = random_weights(0, n_ctx=20, d_vocab=64)
    with pytest.raises(InfeasibleError, match=r"64\^20 = 1329227995784915872903807060280344576 sequences would take about .* years"):
        brute_force(weights, task_for(weights), seconds=10.0)


def test_contexts_beyond_every_float_are_refused_too():
    weights = random_weights(0, n_ctx=300, d_vocab=64)
    with pytest.raises(InfeasibleError, match=r"64\^300 sequences would take about more than 1e300 years"):
        brute_force(weights, task_for(weights), seconds=10.0)
    assert sample(weights, task_for(weights), 100).total == 100


def test_decide_agrees_with_brute_force_on_all_sequences():
    weights = random_weights(8, n_ctx=4, d_vocab=5, scale=0.7)
    task = task_for(weights)
    everything = np.array(list(product(range(5), repeat=4)))
    assert PlainTruth(weights).decide(task, everything).correct == brute_force(weights, task).correct


def test_sampling_is_reproducible_and_independent_of_threads():
    weights = random_weights(8, n_ctx=4, d_vocab=5, scale=0.7)
    task = task_for(weights)
    first = sample(weights, task, 150_000, seed=3, threads=1)
    assert first == sample(weights, task, 150_000, seed=3, threads=4)
    assert first != sample(weights, task, 150_000, seed=4)
    truth = brute_force(weights, task)
    assert abs(first.correct / first.total - truth.correct / truth.total) < 0.01


def test_prepare_gives_up_on_float64_when_scores_are_astronomic():
    weights = dict(adversarial_models())["huge weights"]
    assert prepare(weights).tolerance == np.inf


@pytest.mark.parametrize("seed", range(4))
def test_the_tolerance_covers_the_true_rounding_error(seed):
    """The theorem of `evaluation`: the float64 comparison value is within tolerance of the exact one."""
    weights = random_weights(seed, n_ctx=3, d_vocab=4, scale=1.0)
    e = prepare(weights)
    for tokens in product(range(4), repeat=3):
        query = tokens[-1]
        mass = sum(e.attention[query, i, t] for i, t in enumerate(tokens))
        sums = sum(e.attention[query, i, t] * (e.EVOU[0, t] + e.PVOU[i] + e.EU[query]) for i, t in enumerate(tokens))
        exact = oracle.logits(weights, tokens)
        for o in range(4):
            true_difference = float((exact[o] - exact[0]).mid())
            assert abs((sums[o] - sums[0]) / mass - true_difference) <= e.tolerance
    assert e.tolerance < 1e-9
