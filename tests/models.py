"""Tiny models that break wrong proofs."""

from fractions import Fraction

import numpy as np

from compactproofs import Weights


def random_weights(seed, *, n_ctx=3, d_vocab=5, d_vocab_out=None, d_model=4, d_head=2, scale=1.5, **options):
    """Independent normal weights; by default all dimensions differ and the weights are large."""
    rng = np.random.default_rng(seed)
    d_vocab_out = d_vocab if d_vocab_out is None else d_vocab_out
    v, k, d, h = d_vocab, n_ctx, d_model, d_head
    shapes = {"W_E": (v, d), "W_pos": (k, d), "W_Q": (d, h), "W_K": (d, h), "W_V": (d, h), "W_O": (h, d), "W_U": (d, d_vocab_out)}
    return Weights(**{name: (scale * rng.normal(size=shape)).astype(np.float32) for name, shape in shapes.items()}, **options)


def with_tensors(weights, **changes):
    """The same network with some tensors replaced."""
    tensors = {**weights.tensors, **{name: np.asarray(value, dtype=np.float32) for name, value in changes.items()}}
    return Weights(**tensors, score_divisor_squared=weights.score_divisor_squared)


def weights_from_tables(EQKE, EQKP, EVOU, PVOU, EU):
    """A network with exactly these path tables (before centring positions): one-hot residual streams, scores divided by 1."""
    EQKE, EQKP, EVOU, PVOU, EU = (np.asarray(t, dtype=np.float32) for t in (EQKE, EQKP, EVOU, PVOU, EU))
    v, k, out = len(EQKE), EQKP.shape[1], EU.shape[1]
    n = v + k
    eye, zeros = np.eye(n, dtype=np.float32), np.zeros
    return Weights(
        W_E=np.hstack([eye[:v], EU]),
        W_pos=np.hstack([eye[v:], zeros((k, out), np.float32)]),
        W_Q=np.vstack([np.hstack([EQKE, EQKP]), zeros((k + out, n), np.float32)]),
        W_K=np.vstack([eye, zeros((out, n), np.float32)]),
        W_V=np.vstack([eye, zeros((out, n), np.float32)]),
        W_O=np.hstack([zeros((n, n), np.float32), np.vstack([EVOU, PVOU])]),
        W_U=np.vstack([zeros((n, out), np.float32), np.eye(out, dtype=np.float32)]),
        score_divisor_squared=Fraction(1),
    )


def mostly_right(seed, v=5, k=3, noise=0.35):
    """A network that mostly finds the maximum: attention grows with the token, values copy it, and noise spoils some sequences."""
    rng = np.random.default_rng(seed)
    return weights_from_tables(
        EQKE=1.1 * np.arange(v)[None] + noise * rng.normal(size=(v, v)),
        EQKP=noise * rng.normal(size=(v, k)),
        EVOU=4 * np.eye(v) + noise * rng.normal(size=(v, v)),
        PVOU=noise * rng.normal(size=(k, v)),
        EU=2 * noise * rng.normal(size=(v, v)),
    )


def underflowing_weights():
    """Attention so small that a term times the weight of its output, margin included, is below every float64 number."""
    v, k, d, h, out = 2, 3, 8, 4, 3
    shapes = {"W_E": (v, d), "W_pos": (k, d), "W_Q": (d, h), "W_K": (d, h), "W_V": (d, h), "W_O": (h, d), "W_U": (d, out)}
    W = {name: np.zeros(shape, dtype=np.float32) for name, shape in shapes.items()}
    W["W_E"][0, 0] = W["W_E"][1, 1] = 1
    W["W_pos"][0, 2] = W["W_pos"][1, 3] = W["W_pos"][2, 4] = 1
    W["W_Q"][4, 0] = 2
    least = -1074 * np.log(2) + 100 * np.log(10)
    W["W_K"][0, 0], W["W_K"][3, 0] = least + np.log(0.45), least + np.log(0.55)
    W["W_V"][[0, 1, 3], :3] = (1, 0, -1), (-1, 0, 1), (0, 0, -2)
    for j in range(out):
        W["W_O"][j, 5 + j] = W["W_U"][5 + j, j] = 1
    return Weights(**W)


def adversarial_models():
    """Named networks with ties, saturation, constant rows and dominant directions."""
    return list(_adversarial_models())


def _adversarial_models():
    base = random_weights(7)
    W_U = np.array(base.W_U)
    W_U[:, 1] = W_U[:, 0]
    yield "tied outputs", with_tensors(base, W_U=W_U)
    yield "all zero", with_tensors(base, **{name: np.zeros_like(t) for name, t in base.tensors.items()})
    yield "saturated attention", with_tensors(base, W_Q=1000 * base.W_Q)
    yield "attention beyond float64's exponent", with_tensors(base, W_Q=1e6 * base.W_Q, W_K=1e6 * base.W_K)
    yield "constant embedding", with_tensors(base, W_E=np.ones_like(base.W_E))
    yield "uniform attention", with_tensors(base, W_Q=np.zeros_like(base.W_Q))
    yield "one dominant direction", with_tensors(base, W_E=np.array(base.W_E) + 50 * np.outer(np.arange(5), np.ones(4)))
    yield "dominant positions", with_tensors(base, W_pos=30 * base.W_pos)
    yield (
        "subnormal attention",
        weights_from_tables(
            EQKE=[[-743, -743.5, 0], [0, 0, 0], [0, 0, 0]],
            EQKP=np.zeros((3, 2)),
            EVOU=[[0.62, 0, -9], [-1, 0, -9], [0, 0, 1]],
            PVOU=np.zeros((2, 3)),
            EU=np.zeros((3, 3)),
        ),
    )
    yield "weights of outputs that underflow", underflowing_weights()
    yield "tiny weights", with_tensors(base, **{name: 1e-30 * t for name, t in base.tensors.items()})
    yield "huge weights", with_tensors(base, **{name: 1e30 * t for name, t in base.tensors.items()})
