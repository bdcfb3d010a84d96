"""Compact harm tables: whatever the hints, a sequence whose harms add up to less than zero is answered right."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from compactproofs.arrays import FlopCounter
from compactproofs.arrays.arithmetic import Counting, Float64, Rigorous
from compactproofs.bounds.compact import CompactTables, Projected
from compactproofs.bounds.compact_hints import Compact
from compactproofs.errors import StrategyError
from compactproofs.form.embedded import position_centre
from compactproofs.search.compact import Sizes, blank, find_hints
from compactproofs.tasks import task_for
from compactproofs.tasks.margin import question_with_margin
from compactproofs.tasks.question import Question
from models import mostly_right, random_weights

SIZES = [
    Sizes(0, 1, 9, 9, None, None, True),
    Sizes(0, 2, 9, 1, None, None),
    Sizes(0, 9, 1, 1, None, 1),
    Sizes(2, 1, 1, 0, 2, None),
    Sizes(2, 0, 2, 1, 0, 2, True),
    Sizes(1, 1, 0, 0, 1, 1, True),
    Sizes(3, 1, 1, 1, None, 2),
]


def random_sizes(rng, weights):
    v, d = weights.d_vocab, weights.d_model
    ranks = [None if rng.random() < 0.4 else int(rng.integers(0 if x == 0 else 1, d + 1)) for x in range(2)]
    near = int(rng.integers(0, 4))
    by_position = bool(rng.random() < 0.5)
    return Sizes(int(rng.integers(0, v)), int(rng.integers(0, 3)), near, int(rng.integers(0, near + 1)), *ranks, by_position)


def hostile(rng, weights, sizes):
    """Hints from anywhere: directions of any length, centres far away, weights of any size, now and then not numbers."""
    usual, scale = blank(weights, sizes), rng.choice([0.1, 1.0, 3.0])

    def anything(shape):
        x = scale * rng.normal(size=shape)
        if rng.random() < 0.1 and x.size:
            x.flat[rng.integers(x.size)] = rng.choice([np.nan, np.inf])
        return x

    return Compact(
        usual.first_token,
        usual.near_tokens,
        rng.integers(-1, 40, size=usual.output_weights.shape),
        usual.direct_outputs,
        usual.label_by_position,
        *(anything(usual.embedding_centre.shape) for _ in range(2)),
        *(None if basis is None else anything(basis.shape) for basis in (usual.direct_basis, usual.score_basis)),
        *(anything(usual.embedding_centre.shape) for _ in range(2)),
    )


def logits(weights, tokens):
    """Float64, straight from the weights."""
    W = {name: tensor.astype(np.float64) for name, tensor in weights.tensors.items()}
    stream = W["W_E"][list(tokens)] + W["W_pos"]
    scores = (stream @ W["W_K"]) @ (stream[-1] @ W["W_Q"]) / float(weights.score_divisor_squared) ** 0.5
    attention = np.exp(scores - scores.max())
    attention /= attention.sum()
    return ((attention @ stream) @ W["W_V"] @ W["W_O"] + stream[-1]) @ W["W_U"]


def require_sound(weights, hints, margin=None):
    """Every sequence with a negative sum is right; returns how many there are."""
    tables, found = CompactTables(weights, Question(task_for(weights), margin=margin), hints, Rigorous()), 0
    with np.errstate(all="ignore"):
        harms = {m: tables.expanded(tables.harms(m)).upper for m in range(tables.factors.first_token, weights.d_vocab)}
    for x in product(range(weights.d_vocab), repeat=weights.n_ctx):
        label, query = max(x), x[-1]
        if label not in harms or not all(harms[label][query, i, t] < 1e300 for i, t in enumerate(x)):
            continue
        if math.fsum(harms[label][query, i, t] for i, t in enumerate(x)) < 0:
            found += 1
            values = logits(weights, x)
            by = 0.0 if margin is None else margin[query, label]
            assert np.delete(values, label).max(initial=-np.inf) < values[label] - by + 1e-9 * np.abs(values).max(), (x, values)
    return found


def weight(hints, label, output):
    """Of an output, as its label's weights say."""
    c = hints.near_outputs
    if abs(output - label) > c:
        return hints.output_weights[label, 0 if output < label else -1]
    return hints.output_weights[label, output - label + c + (output < label)]


@pytest.mark.parametrize("seed", range(6))
def test_harms_dominate_every_output_at_every_position(seed):
    """Each harm against each output, straight from the weights, times the factor of the query."""
    rng = np.random.default_rng(seed)
    for _ in range(25):
        weights = random_weights(int(rng.integers(1000)), n_ctx=3, d_vocab=6, d_vocab_out=7, d_model=4, d_head=3, scale=0.5)
        sizes = random_sizes(rng, weights)
        hints = (find_hints(weights, sizes) if rng.random() < 0.5 else hostile(rng, weights, sizes)).checked(weights)
        require_dominating(weights, hints)
        require_dominating(weights, hints, float(rng.choice([-5.0, -0.5, 0.25])))


@pytest.mark.parametrize("seed", range(4))
def test_the_label_by_position_takes_the_least_attention_to_positions(seed):
    """Scores of tokens are exact in the directions of the hint, those of positions are not: the label may count on the least only."""
    weights = mostly_right(seed, v=5, k=4, noise=0.3)
    hints = find_hints(weights, Sizes(3, 1, 2, 2, None, 2, True))
    W = {name: tensor.astype(np.float64) for name, tensor in weights.tensors.items()}
    keys = (W["W_E"][3:] - hints.embedding_centre) @ W["W_K"] @ W["W_Q"].T
    require_dominating(weights, replace(hints, score_basis=np.linalg.qr(keys.T)[0].T).checked(weights))


def require_dominating(weights, hints, by=0.0):
    W = {name: tensor.astype(np.float64) for name, tensor in weights.tensors.items()}
    stream, VOU = W["W_E"] + W["W_pos"][-1], W["W_V"] @ W["W_O"] @ W["W_U"]
    with np.errstate(all="ignore"):
        attention = relative_attention(weights, hints, W, stream)
        B = (W["W_pos"] @ VOU)[None, :, None] + (W["W_E"] @ VOU)[None, None] + (stream @ W["W_U"])[:, None, None]
        task = task_for(weights)
        tables = CompactTables(weights, question_with_margin(task, weights.d_vocab_out, by) or Question(task), hints, Float64())
        for m in range(hints.first_token, weights.d_vocab):
            h, itself = tables.expanded(tables.harms(m)), np.arange(m + 1)
            for o in (o for o in range(weights.d_vocab_out) if o != m):
                exact = weight(hints, m, o) * attention * (B[..., o] - B[..., m] + by)
                slack = 1e-9 * (1 + np.abs(exact))
                assert not (h[:, :-1] < (exact - slack)[: m + 1, :-1, : m + 1]).any(), (hints, m, o)
                assert not (h[itself, -1, itself] < (exact - slack)[itself, -1, itself]).any(), (hints, m, o)


def relative_attention(weights, hints, W, stream):
    """(query, position, token): relative to what the proof takes for the last token's at the least attended position before the last."""
    S = W["W_Q"] @ W["W_K"].T / float(weights.score_divisor_squared) ** 0.5
    rows = np.concatenate([W["W_E"] - hints.embedding_centre, W["W_pos"] - position_centre(weights)])
    exact = low = typical = stream @ (rows @ S.T).T
    if hints.score_basis is not None:
        left, right = (projected(x, hints.score_basis, Float64()) for x in (stream, rows @ S.T))
        typical = left.along @ right.along.T
        low = typical - left.rest[:, None] * right.rest
    v = weights.d_vocab
    least = low[:, v:-1].min(axis=1)
    return np.exp(exact[:, None, :v] - typical[:, [v - 1], None] + exact[:, v:, None] - least[:, None, None])


@pytest.mark.parametrize("seed", range(8))
def test_harms_hold_for_hints_from_anywhere(seed):
    rng = np.random.default_rng(seed)
    found = 0
    for _ in range(25):
        k, v = int(rng.integers(1, 4)), int(rng.integers(2, 6))
        if rng.random() < 0.5:
            weights = mostly_right(int(rng.integers(1000)), v=v, k=k, noise=float(rng.choice([0.1, 0.3, 0.6])))
        else:
            scale, out = float(rng.choice([0.1, 0.7, 2.0])), v + int(rng.integers(1, 3))
            weights = random_weights(int(rng.integers(1000)), n_ctx=k, d_vocab=v, d_vocab_out=out, d_model=6, d_head=3, scale=scale)
        sizes = random_sizes(rng, weights)
        for hints in (hostile(rng, weights, sizes), find_hints(weights, sizes)):
            found += require_sound(weights, hints)
    assert found > 10


@pytest.mark.parametrize("sizes", SIZES)
def test_harms_of_working_networks(sizes):
    """Few dimensions and noise of the same size as margins, so that a step that is not a bound is found out."""
    found = 0
    for seed in range(12):
        weights = mostly_right(seed, v=5, k=3, noise=0.5)
        found += require_sound(weights, find_hints(weights, sizes))
        weights = random_weights(seed, n_ctx=3, d_vocab=5, d_vocab_out=6, d_model=3, d_head=2, scale=0.8)
        found += require_sound(weights, find_hints(weights, sizes))
    assert found > (0 if sizes.direct_rank == 0 else 15)


def test_margins_are_kept():
    weights = mostly_right(1, v=4, k=3, noise=0.3)
    margin = np.full((4, 4), 1.5)
    sizes = Sizes(0, 4, 4, 4, None, None)
    with_margin, without = (require_sound(weights, find_hints(weights, sizes), each) for each in (margin, None))
    assert 0 < with_margin < without


def projected(x, B, arithmetic):
    return Projected.of(x, (x * x).sum(axis=1), B, arithmetic)


def test_projections_bound_products_for_any_directions():
    rng = np.random.default_rng(0)
    for _ in range(300):
        d, rank = int(rng.integers(1, 6)), int(rng.integers(0, 4))
        B = rng.normal(size=(rank, d)) * rng.choice([0.1, 0.6, 1.0, 2.0])
        if rng.random() < 0.5 and rank:
            B = np.linalg.qr(B.T)[0].T
        x, y = rng.normal(size=(3, d)), rng.normal(size=(4, d))
        for arithmetic in (Float64(), Rigorous()):
            left, right = (projected(arithmetic.array(each), B, arithmetic) for each in (x, y))
            product_ = 0.0 if left.along is None else left.along @ right.along.T
            off, allowed = abs(arithmetic.array(x @ y.T) - product_), left.rest[:, None] * right.rest
            low = getattr(off, "lower", off), getattr(allowed, "upper", allowed)
            assert (low[0] <= low[1] + 1e-9).all()


def test_orthonormal_directions_leave_only_what_is_outside():
    rng = np.random.default_rng(1)
    B = np.linalg.qr(rng.normal(size=(6, 2)))[0].T
    x = rng.normal(size=(5, 6))
    assert np.allclose(projected(x, B, Float64()).rest, np.linalg.norm(x - x @ B.T @ B, axis=1))


def test_sizes_decide_the_cost_and_hints_do_not():
    weights = random_weights(0, n_ctx=3, d_vocab=7, d_vocab_out=8, d_model=5, d_head=2)
    for sizes in SIZES:
        steps = []
        for hints in (blank(weights, sizes), find_hints(weights, sizes)):
            counter = FlopCounter()
            tables = CompactTables(weights, Question(task_for(weights)), hints, Counting(counter))
            for label in range(sizes.first_token, 7):
                tables.harms(label)
            steps.append(counter.steps)
        assert steps[0] == steps[1]


def test_hints_of_wrong_shapes_are_refused():
    weights = random_weights(0)
    good = vars(blank(weights, Sizes(0, 1, 1, 1, 1, 1)))
    for name, value in (
        ("output_weights", np.ones((5, 3), dtype=np.int64)),
        ("output_weights", np.ones((5, 4))),
        ("embedding_centre", np.zeros(3)),
        ("direct_basis", np.zeros((1, 3))),
        ("score_basis", np.zeros(4)),
    ):
        with pytest.raises(StrategyError, match=name):
            Compact(**{**good, name: value}).checked(weights)
