"""The accuracy of whole blocks is that of the referee, on networks of every kind."""

from dataclasses import dataclass, replace
from itertools import product
from threading import Event

import numpy as np
import pytest
from flint import arb, ctx

import compactproofs as cp
import network_oracle
from compactproofs.counting import block_kernels, block_truth, exact_block
from compactproofs.counting.brute_force import brute_force
from compactproofs.counting.kernels import CORRECT, UNCERTAIN, WRONG
from compactproofs.counting.sampling import sample
from compactproofs.errors import InfeasibleError
from compactproofs.form.block_evaluation import _ACTIVATIONS, prepare_block
from compactproofs.model.forward import forward
from compactproofs.model.kinds import as_network
from compactproofs.model.network import Activation, Mlp, Norm, NormKind
from compactproofs.tasks import MaxOfK, task_for
from models import weights_from_tables
from random_networks import awkward_networks, mirrored_network, random_network
from tasks import KINDS, Named


def all_sequences(network):
    return np.array(list(product(range(network.d_vocab), repeat=network.n_ctx)))


def decided_in_float64(network):
    """Verdicts of the compiled kernel alone, one for each sequence, and the labels."""
    everything = all_sequences(network)
    labels = task_for(network).automaton.label(everything)
    verdicts = np.empty(len(everything), dtype=np.int64)
    block_kernels.decide_block(prepare_block(network, exact_block.tied_labels(network)), everything, labels, verdicts)
    return verdicts, labels


@pytest.mark.parametrize("seed", range(40))
def test_brute_force_counts_what_the_referee_counts(seed):
    network = random_network(seed, scale=(0.3, 1.0, 3.0)[seed % 3])
    count = brute_force(network, task_for(network))
    assert (count.correct, count.correct + count.undecided) == network_oracle.bounds(network)
    assert (count.total, count.undecided) == (64, 0)
    assert count.decided_exactly == 0 or seed % 3 == 2  # attention scores of a thousand and more


@pytest.mark.parametrize(("name", "network"), awkward_networks(), ids=lambda x: x if isinstance(x, str) else "")
def test_awkward_networks_too_and_no_verdict_of_the_kernel_is_ever_wrong(name, network):
    verdicts, labels = decided_in_float64(network)
    pairs = zip(all_sequences(network).tolist(), labels.tolist(), strict=True)
    truths = [network_oracle.is_correct(network, row, label) for row, label in pairs]
    fits = {True: (CORRECT, UNCERTAIN), False: (WRONG, UNCERTAIN), None: (WRONG, UNCERTAIN)}
    assert all(verdict in fits[truth] for verdict, truth in zip(verdicts.tolist(), truths, strict=True))
    count = brute_force(network, task_for(network))
    assert count.correct == truths.count(True)  # ties and norms of nothing are never counted as right
    assert count.undecided <= truths.count(None)


@pytest.mark.parametrize("seed", range(40, 60))
def test_the_forward_pass_agrees_where_the_kernel_decides(seed):
    network = random_network(seed)
    verdicts, labels = decided_in_float64(network)
    assert (verdicts != UNCERTAIN).all()
    assert ((forward(network, all_sequences(network)).argmax(axis=1) == labels) == (verdicts == CORRECT)).all()


def evaluated(network, sequences):
    """Logits of the kernel and their errors."""
    logits, errors = np.empty((len(sequences), network.d_vocab_out)), np.empty(len(sequences))
    block_kernels.evaluate_block(prepare_block(network, exact_block.tied_labels(network)), sequences, logits, errors)
    return logits, errors


NETWORKS = [(f"seed {seed}", random_network(seed, scale=(0.1, 0.4, 1.0)[seed % 3])) for seed in range(60, 90)] + awkward_networks()


@pytest.mark.parametrize(("name", "network"), NETWORKS, ids=lambda x: x if isinstance(x, str) else "")
def test_logits_are_within_their_error(name, network):
    sequences = np.random.default_rng(0).integers(0, network.d_vocab, size=(6, network.n_ctx))
    logits, errors = evaluated(network, sequences)
    for row, values, error in zip(sequences.tolist(), logits.tolist(), errors.tolist(), strict=True):
        if error < np.inf:
            assert all(
                abs(arb(value) - truth) <= arb(error) for value, truth in zip(values, network_oracle.logits(network, row), strict=True)
            )
    if name.startswith("seed"):
        assert (errors < 1e-6).all()


def test_every_rounding_counts():
    """Sums that cancel: what is left of the logits is nothing but errors, and the bound must be larger still."""
    for seed in range(30):
        network = random_network(seed, sizes=(4, 3, 9, 2, 2, 11, 4), norm_1=None, norm_2=None, norm_final=None, biases=False)
        W_U = np.tile(np.array([1, -1, 2, -2, 4, -4, 0, 0, 0], dtype=np.float32)[:, None] * np.float32(1e6), (1, 4))
        W_U += np.array(network.W_U[:, :4]) * np.float32(1e-9)
        W_E = np.repeat(np.array(network.W_E[:, :5]), 2, axis=1)[:, :9]
        network = replace(network, W_E=W_E, W_U=W_U.astype(np.float32))
        sequences = all_sequences(network)[:12]
        logits, errors = evaluated(network, sequences)
        for row, values, error in zip(sequences.tolist(), logits.tolist(), errors.tolist(), strict=True):
            assert all(
                abs(arb(value) - truth) <= arb(error) for value, truth in zip(values, network_oracle.logits(network, row), strict=True)
            )


@pytest.mark.parametrize("sizes", [{}, {"score": 1e6}, {"value": 1e6}, {"mlp": 1e3}, {"value": 1e6, "mlp": 1e2}, {"inner": 1e9}], ids=str)
@pytest.mark.parametrize("norm", [None, *NormKind])
@pytest.mark.parametrize("act", [None, *Activation])
def test_exact_ties_that_float64_computes_in_two_ways(act, norm, sizes):
    """The two computed logits differ by errors alone: never by more than the bound allows, and never taken for a decision."""
    noisy = 0
    for seed in range(6):
        network = mirrored_network(seed, act=act, norm=norm, post_norm=seed % 2 == 1, **sizes)
        logits, errors = evaluated(network, all_sequences(network))
        difference = np.abs(logits[:, 0] - logits[:, 1])
        assert (difference <= 2 * errors).all()
        noisy += int((difference > 0).sum())
        verdicts, labels = decided_in_float64(network)
        assert (verdicts[labels < 2] != CORRECT).all()
    assert noisy > 0


def test_a_norm_of_nothing_but_rounding_decides_nothing():
    """The stream is constant, the norm undefined, and its bias would decide everything."""
    for seed in range(4):
        network = mirrored_network(seed, norm=NormKind.LN, value=1e6, d=2)
        weight, bias = np.full(2, 1e-9, np.float32), np.array([100, -100], np.float32)
        network = replace(network, norm_final=Norm(NormKind.LN, 0.0, weight, bias), W_U=np.array([[3, 2, 1], [0, 0, 0]], np.float32))
        verdicts, _ = decided_in_float64(network)
        assert (verdicts == UNCERTAIN).all()
        assert network_oracle.is_correct(network, (0, 0, 0), 0) is None


def test_weights_of_attention_that_are_subnormal_decide_nothing():
    tables = {
        "EQKE": [[-1343, -1343.5, 0], [0, 0, 0], [0, 0, 0]],
        "EQKP": np.zeros((3, 2)),
        "EVOU": [[0.62, 0, -9], [-1, 0, -9], [0, 0, 1]],
        "PVOU": np.zeros((2, 3)),
        "EU": np.zeros((3, 3)),
    }
    network = as_network(weights_from_tables(**tables))
    assert brute_force(network, task_for(network)).correct == network_oracle.bounds(network)[0]
    verdicts, labels = decided_in_float64(network)
    for row, label, verdict in zip(all_sequences(network).tolist(), labels.tolist(), verdicts.tolist(), strict=True):
        assert verdict == UNCERTAIN or (verdict == CORRECT) == bool(network_oracle.is_correct(network, row, label))


@pytest.mark.parametrize("act", list(Activation))
def test_neurons_are_as_precise_as_claimed(act):
    rng = np.random.default_rng(0)
    y = np.concatenate(
        [rng.normal(size=300) * 3, rng.uniform(-60, 60, 100), 10.0 ** rng.uniform(-300, 300, 100), -(10.0 ** rng.uniform(-300, 3, 100))]
    )
    previous, ctx.prec = ctx.prec, 3000
    for value in y.tolist():
        found = block_kernels.activate(_ACTIVATIONS[act], value)
        truth = network_oracle._activated(str(act), arb(value))
        assert abs(arb(found) - truth) <= arb(2) ** -43 * abs(arb(value)) + arb(2) ** -1000 * (1 + abs(arb(value)))
    ctx.prec = previous


def test_large_weights_are_undecided_in_float64_and_decided_in_integers():
    network = dict(awkward_networks())["block, weights of 1e30"]
    verdicts, _ = decided_in_float64(network)
    assert (verdicts == UNCERTAIN).all()
    count = brute_force(network, task_for(network))
    assert (count.decided_exactly, count.undecided) == (64, 0)


def test_tied_outputs_are_wrong_without_any_arithmetic():
    network = dict(awkward_networks())["tied outputs"]
    assert np.flatnonzero(exact_block.tied_labels(network)).tolist() == [1, 3]
    verdicts, labels = decided_in_float64(network)
    assert (verdicts[np.isin(labels, [1, 3])] == WRONG).all()


def test_the_last_word_is_right_and_has_limits():
    network = random_network(11, norm_1="LN", norm_final="LN", eps=0.0, positions=False)
    W_E = np.array(network.W_E)
    W_E[2] = 1.0  # a norm of nothing
    network = replace(network, W_E=W_E)
    for row in all_sequences(network).tolist():
        answer = exact_block.is_correct(network, row, max(row))
        assert answer == network_oracle.is_correct(network, row, max(row))
        assert answer is not None or 2 in row
    count = brute_force(network, task_for(network))
    assert count.undecided == 64 - 27


def test_exact_ties_stay_undecided():
    network = random_network(12, norm_1=None, norm_2=None, norm_final="RMS", act="relu", biases=False, eps=1e-5)
    W_U, W_E = np.zeros_like(network.W_U), np.array(network.W_E)
    W_U[:3] = np.array([-1, -1, 1, 2, 3, 4])  # if the sum of three coordinates is negative, outputs 0 and 1 lead together
    W_U[3, 0], W_U[4, 1], W_E[:, 3:] = 1, 1, 0
    W_out, W_O = np.array(network.mlp.W_out), np.array(network.W_O)
    W_out[:, 3:], W_O[:, :, 3:] = 0, 0  # the stream never has what tells them apart
    network = replace(network, W_U=W_U, W_E=W_E, W_O=W_O, W_pos=None, mlp=Mlp(network.mlp.W_in, W_out, "relu"))
    count = brute_force(network, task_for(network))
    sequences = [row for row in product(range(4), repeat=3) if max(row) < 2]
    tied = [row for row in sequences if network_oracle.is_correct(network, row, max(row)) is None]
    assert tied and count.undecided == len(tied)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("act", [None, Activation.RELU])
def test_every_task(kind, act):
    network = random_network(13, act=act, sizes=(3, 4, 5, 2, 2, 7, 6), norm_final=None, norm_2=None)
    task = Named(kind, 4, 3)
    count = brute_force(network, task)
    assert (count.correct, count.undecided) == (network_oracle.bounds(network, lambda x: task.label_of(list(x)))[0], 0)


@pytest.mark.parametrize("sizes", [(6, 1, 3, 2, 2, 4, 7), (6, 2, 3, 4, 2, 5, 8), (2, 6, 3, 2, 2, 4, 5), (1, 3, 2, 4, 1, 5, 2)])
def test_every_length(sizes):
    for act in (None, Activation.GELU_TANH):
        network = random_network(14, sizes=sizes, act=act)
        count = brute_force(network, task_for(network))
        assert (count.correct, count.undecided) == (network_oracle.bounds(network)[0], 0)


def test_a_vocabulary_that_does_not_fit_into_one_batch():
    network = random_network(15, sizes=(150, 2, 3, 2, 2, 4, 150), act=Activation.RELU, norm_final="LN")
    everything = all_sequences(network)
    expected = int((forward(network, everything).argmax(axis=1) == everything.max(axis=1)).sum())
    assert brute_force(network, task_for(network)).correct == expected


@dataclass(frozen=True)
class Restricted(MaxOfK):
    """Max-of-K over the tokens that are allowed at each place."""

    rows: tuple = ()

    @property
    def allowed(self):
        table = np.zeros((self.n_ctx, self.d_vocab), dtype=bool)
        for row, tokens in zip(table, self.rows, strict=True):
            row[list(tokens)] = True
        return table

    @property
    def total(self):
        return int(np.prod([len(row) for row in self.rows]))


@pytest.mark.parametrize("act", [None, Activation.SILU])
@pytest.mark.parametrize(
    "rows",
    [
        ((3,), (0, 1, 2), (0, 1, 2), (4,)),
        ((0, 2), (1, 3), (4,), (0, 3)),
        ((1,), (2,), (0,), (3,)),
        ((0, 1, 2), (4,), (3,), (1, 2)),
        ((0,),) * 4,
    ],
)
def test_tokens_that_are_not_allowed_do_not_count(rows, act):
    network = random_network(16, sizes=(5, 4, 3, 2, 2, 7, 6), act=act)
    task = Restricted(4, 5, rows)
    count = brute_force(network, task)
    assert (count.correct, count.undecided) == (network_oracle.bounds(network, sequences=product(*rows))[0], 0)
    assert count.total == task.total
    few = sample(network, task, 300)
    assert abs(few.correct / 300 - count.correct / count.total) < 0.2
    if count.total == 1:
        assert few.correct == 300 * count.correct


def test_samples_do_not_depend_on_threads_and_agree_with_brute_force(monkeypatch):
    monkeypatch.setattr(block_truth, "_BATCH", 128)
    network = random_network(17)
    task = task_for(network)
    one, two = (sample(network, task, 1000, seed=3, threads=n) for n in (1, 2))
    assert one == two and one.total == 1000
    assert abs(one.correct / 1000 - brute_force(network, task).correct / 64) < 0.08


def test_calls_may_begin_anywhere(monkeypatch):
    network = random_network(18, sizes=(3, 5, 4, 2, 2, 7, 6), act=Activation.RELU)
    task = task_for(network)
    whole = brute_force(network, task)
    monkeypatch.setattr(block_truth, "_WORK_PER_CALL", 1)
    seen = []
    assert brute_force(network, task, progress=lambda done, total: seen.append((done, total))) == whole
    assert seen[-1] == (243, 243) and len(seen) == 3 * 27


def test_a_flood_of_near_ties_is_reported_as_undecided_not_guessed(monkeypatch):
    monkeypatch.setattr(block_truth, "MAX_EXACT_DECISIONS", 10)
    network = dict(awkward_networks())["block, weights of 1e30"]
    count = brute_force(network, task_for(network))
    assert (count.decided_exactly, count.undecided) == (10, 54)


def test_it_refuses_what_takes_too_long_and_ends_when_asked():
    network = random_network(19, sizes=(40, 9, 4, 2, 2, 7, 40))
    with pytest.raises(InfeasibleError, match="would take about"):
        brute_force(network, task_for(network), seconds=1.0)
    stop = Event()
    stop.set()
    with pytest.raises(InfeasibleError, match="was interrupted"):
        brute_force(network, task_for(network), stop=stop)
    with pytest.raises(InfeasibleError, match="sampling"):
        sample(network, task_for(network), 10**12, seconds=0.01)


def test_accuracy_of_a_network():
    network = random_network(20)
    result = cp.accuracy(network)
    assert result.method == "brute-force" and result.correct == network_oracle.bounds(network)[0]
    assert cp.accuracy(network, samples=100).total == 100
