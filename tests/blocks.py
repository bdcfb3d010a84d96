"""Tiny whole blocks, right on a good part of their inputs, and what is true of each of their sequences."""

from itertools import product

import numpy as np

from compactproofs.model.network import Activation, Mlp, Network
from networks import Norm

V, K, D, J = 5, 3, 6, 7
"""Tokens, positions, d_model, neurons; heads have 4 dimensions, and there is one output more than tokens."""

KINDS = {
    "MLP": {"act": "relu"},
    "GELU": {"act": "gelu"},
    "GELU by tanh": {"act": "gelu_new"},
    "SiLU": {"act": "silu"},
    "final LN": {"final": "LN"},
    "final RMS": {"final": "RMS"},
    "LN, MLP": {"act": "relu", "norm_2": "LN", "final": "LN"},
    "LN without a final norm, MLP": {"act": "relu", "norm_2": "LN"},
    "RMS, MLP": {"act": "relu", "norm_2": "RMS", "final": "RMS"},
    "MLP, final LN": {"act": "relu", "final": "LN"},
    "GELU, final LN": {"act": "gelu", "final": "LN"},
    "LN, GELU": {"act": "gelu", "norm_2": "LN", "final": "LN"},
    "RMS, SiLU": {"act": "silu", "norm_2": "RMS"},
    "two heads": {"heads": 2},
    "three heads": {"heads": 3},
    "two heads, final LN": {"heads": 2, "final": "LN"},
    "two heads, MLP": {"heads": 2, "act": "relu"},
    "three heads, GELU": {"heads": 3, "act": "gelu"},
    "two heads, LN, MLP": {"heads": 2, "act": "relu", "norm_2": "LN", "final": "LN"},
    "three heads, LN, MLP": {"heads": 3, "act": "relu", "norm_2": "LN", "final": "LN"},
    "two heads, RMS, GELU": {"heads": 2, "act": "gelu", "norm_2": "RMS", "final": "RMS"},
}


def tiny_block(seed, kind, scale=1.0, harder=False, k=K):
    """A network that mostly finds the maximum, with noise in every part. `harder`: large biases behind norms and of neurons."""
    return block_of(seed, scale=scale, harder=harder, k=k, **KINDS[kind])


def block_of(seed, heads=1, act=None, norm_2=None, final=None, scale=1.0, harder=False, eps=1e-5, k=K):
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return rng.normal(size=shape)

    def norm(kind, factor):
        return None if kind is None else Norm(kind, eps, single(1 + 0.2 * draw(D)), single(0.2 * factor * draw(D)))

    def single(x):
        return np.asarray(scale * x, dtype=np.float32)

    W_E = 0.8 * draw(V, D)
    W_E[:, 0] = np.linspace(-2, 2, V) * rng.uniform(0.5, 1.5)
    b_Q = 0.3 * draw(heads, 4)
    b_Q[:, 0] = rng.uniform(2, 8, heads)
    copy = np.eye(D, 4)[None] + 0.1 * draw(heads, D, 4)
    W_U = np.concatenate([W_E.T * rng.uniform(0.5, 2), draw(D, 1)], axis=1) + 0.1 * draw(D, V + 1)
    mlp = None
    if act is not None:
        W_in, W_out = 0.4 * draw(D, J), 0.4 * rng.uniform(0.2, 1) * (2 if harder else 1) * draw(J, D)
        b_in, b_out = 0.3 * (6 if harder else 1) * draw(J), 0.1 * draw(D)
        mlp = Mlp(single(W_in), single(W_out), Activation(act), single(b_in), single(b_out))
    return Network(
        W_E=single(W_E),
        W_pos=single(0.3 * draw(k, D)),
        n_ctx=k,
        W_Q=single(0.2 * draw(heads, D, 4)),
        W_K=single(copy),
        W_V=single((np.eye(D, 4)[None] + 0.2 * draw(heads, D, 4)) * rng.uniform(0.5, 2)),
        W_O=single(np.eye(4, D)[None] + 0.2 * draw(heads, 4, D)),
        W_U=single(W_U),
        b_Q=single(b_Q),
        b_K=single(0.1 * draw(heads, 4)),
        b_V=single(0.1 * draw(heads, 4)),
        b_O=single(0.1 * draw(D)),
        b_U=single(0.3 * draw(V + 1)),
        norm_1=norm(None if norm_2 is None and final is None else "LN", 1),
        norm_2=None if mlp is None else norm(norm_2, 4 if harder else 1),
        norm_final=norm(final, 3 if harder else 1),
        mlp=mlp,
    )


SEQUENCES = list(product(range(V), repeat=K))


def straddling_block(seed):
    """One neuron, uniform attention, values that cancel: the norm divides by much less than its bound, with the neuron's zero between."""
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return rng.normal(size=shape).astype(np.float32)

    return Network(
        W_E=draw(V, 3),
        W_pos=0 * draw(K, 3),
        n_ctx=K,
        W_Q=0 * draw(1, 3, 2),
        W_K=draw(1, 3, 2),
        W_V=5 * draw(1, 3, 2),
        W_O=draw(1, 2, 3),
        W_U=draw(3, V + 1),
        b_V=draw(1, 2),
        b_U=draw(V + 1),
        norm_2=Norm("RMS", 1e-5),
        mlp=Mlp(draw(3, 1), 10 * draw(1, 3), Activation.RELU, 2 * draw(1), draw(3)),
    )


STRADDLING = (2658, 2906, 3767, 3887)
"""Seeds for which tangents that differ between the two ends of s give a bound below the truth."""
