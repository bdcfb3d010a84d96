"""Tiny networks of every kind that breaks wrong proofs: all dimensions differ, weights are large or tiny, outputs are tied."""

import numpy as np

from compactproofs.model import network as parts_of
from compactproofs.model.network import Activation, Mlp, Network, NormKind, Rotary


def Norm(kind, eps, weight=None, bias=None):
    """A norm whose kind is given as a word."""
    return parts_of.Norm(NormKind(kind), eps, weight, bias)


def random_network(seed, scale=1.0, **parts):
    """Independent normal weights; `parts` are functions of a drawing function, or values."""
    rng = np.random.default_rng(seed)
    v, k, d, h, out, n = 5, 3, 4, 6, 7, 1

    def draw(*shape):
        return (scale * rng.normal(size=shape)).astype(np.float32)

    tensors = {"W_E": (v, d), "W_pos": (k, d), **{f"W_{x}": (n, d, h) for x in "QKV"}, "W_O": (n, h, d), "W_U": (d, out)}
    given = {name: draw(*shape) for name, shape in tensors.items()}
    return Network(**{"n_ctx": k, **given, **{name: part(draw) if callable(part) else part for name, part in parts.items()}})


BIASES = {
    **{f"b_{x}": lambda draw: draw(1, 6) for x in "QKV"},
    "b_O": lambda draw: draw(4),
    "b_U": lambda draw: draw(7),
}

AFFINE = {
    "plain": {},
    "biases": BIASES,
    "LN before attention": {"norm_1": lambda draw: Norm("LN", 1e-5, draw(4), draw(4)), "b_V": BIASES["b_V"]},
    "LNPre, all biases": {"norm_1": Norm("LN", 1e-5), **BIASES},
    "RMS before attention": {"norm_1": lambda draw: Norm("RMS", 0.125, draw(4))},
    "norm without eps": {"norm_1": Norm("LN", 0.0)},
    "no positions": {"W_pos": None, **BIASES},
    "no positions, LN": {"W_pos": None, "norm_1": Norm("LN", 1e-5)},
    "rotary": {"W_pos": None, "rotary": Rotary(6)},
    "rotary in part, adjacent, biases": {"W_pos": None, "rotary": Rotary(4, 50.0, adjacent=True), **BIASES},
    "rotary and LN": {"rotary": Rotary(2, 3.0), "norm_1": Norm("LN", 1e-5), "b_K": BIASES["b_K"]},
    "ALiBi": {"alibi": (1,)},
    "ALiBi, no positions, LN": {"W_pos": None, "alibi": (0,), "norm_1": lambda draw: Norm("LN", 1e-5, None, draw(4))},
    "final LN": {"norm_final": lambda draw: Norm("LN", 1e-5, draw(4)), "b_O": BIASES["b_O"]},
    "final RMS, constant b_U": {"norm_final": Norm("RMS", 1e-5), "b_U": np.full(7, 0.5, np.float32)},
    "LN before and after": {"norm_1": lambda draw: Norm("LN", 1e-5, draw(4), draw(4)), "norm_final": Norm("LN", 1e-5)},
}
"""One head and an affine readout: what is exact in the form."""

HEADS = {**{f"W_{x}": lambda draw: draw(2, 4, 6) for x in "QKV"}, "W_O": lambda draw: draw(2, 6, 4)}

BLOCKS = {
    "two heads": HEADS,
    "MLP": {"mlp": lambda draw: Mlp(draw(4, 3), draw(3, 4), Activation.RELU, draw(3), draw(4))},
    "final LN with a bias": {"norm_final": lambda draw: Norm("LN", 1e-5, draw(4), draw(4))},
    "post-norm": {"norm_2": Norm("LN", 1e-5), "post_norm": True},
}
"""Whole blocks; no bound is about the last."""


def affine_networks(seeds=(0,), scales=(1.0,)):
    """(name, network) for every kind, seed and scale."""
    for scale in scales:
        for seed in seeds:
            for name, parts in AFFINE.items():
                yield f"{name}, seed {seed}, scale {scale:g}", random_network(seed, scale, **parts)


def mostly_right_network(seed, kind, noise=0.1):
    """A network of some kind that mostly finds the maximum: one-hot embeddings, attention grows with the token, values copy."""
    rng = np.random.default_rng(seed)
    v, k = 5, 3
    eye = np.eye(v, dtype=np.float32)

    def around(x):
        return (np.asarray(x) + noise * rng.normal(size=np.shape(x))).astype(np.float32)

    parts = {
        "LN": {"norm_1": Norm("LN", 1e-5, around(np.ones(v)), around(np.zeros(v)))},
        "RMS and final LN": {"norm_1": Norm("RMS", 1e-5), "norm_final": Norm("LN", 1e-5, around(np.ones(v)))},
        "rotary": {"rotary": Rotary(2, 100.0), "W_pos": None, "b_K": around(np.zeros((1, v)))},
        "ALiBi and biases": {"alibi": (2,), "b_V": around(np.zeros((1, v))), "b_U": around(np.zeros(v))},
    }[kind]
    return Network(
        **{
            "W_E": around(eye),
            "W_pos": around(np.zeros((k, v))),
            "n_ctx": k,
            "W_Q": around(np.ones((1, v, v)) / v),
            "W_K": around(np.diag(1.5 * np.arange(v))[None]),
            "W_V": around(4 * eye[None]),
            "W_O": around(eye[None]),
            "W_U": around(2 * eye),
            **parts,
        }
    )


MOSTLY_RIGHT = ("LN", "RMS and final LN", "rotary", "ALiBi and biases")


def tied_outputs(network):
    """The same network with two equal outputs."""
    from dataclasses import replace

    W_U = np.array(network.W_U)
    W_U[:, 1] = W_U[:, 0]
    b_U = None if network.b_U is None else np.where(np.arange(len(network.b_U)) == 1, network.b_U[0], network.b_U)
    return replace(network, W_U=W_U, b_U=b_U)
