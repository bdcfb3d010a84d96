"""Tiny networks of every kind, all dimensions different, and the ones that break wrong proofs."""

from dataclasses import replace

import numpy as np

from compactproofs.model.network import Activation, Mlp, Network, Norm, NormKind, Rotary

ACTS = (None, *Activation)


def random_network(seed, *, scale=1.0, eps=1e-5, sizes=None, **fixed):
    """A network whose parts are drawn too, but for those that `fixed` names: norm_1 (a kind or None), act, biases, ..."""
    rng = np.random.default_rng(seed)
    v, k, d, e, heads, m, out = sizes or (4, 3, 5, 2 + 2 * int(rng.integers(2)), int(rng.integers(1, 4)), 7, 6)

    def some(name, options):
        drawn = options[int(rng.integers(len(options)))]
        return fixed.get(name, drawn)

    def draw(*shape):
        return (scale * rng.normal(size=shape)).astype(np.float32)

    biases = some("biases", (True, False))

    def bias(*shape):
        return draw(*shape) if biases else None

    def norm(name):
        kind = some(name, (None, NormKind.LN, NormKind.RMS))
        return None if kind is None else Norm(kind, eps, draw(d) if biases else None, bias(d))

    act, positions = some("act", ACTS), some("positions", (True, False))
    rotary = some("rotary", (None, Rotary(2), Rotary(2, 500.0, True)))
    alibi = some("alibi", (None, tuple(range(1, heads + 1))))
    post_norm = some("post_norm", (False, True))
    norms = {name: norm(name) for name in ("norm_1", "norm_2", "norm_final")}
    if act is None and not post_norm:
        norms["norm_2"] = None
    return Network(
        W_E=draw(v, d),
        W_pos=draw(k, d) if positions else None,
        n_ctx=k,
        **{f"W_{x}": draw(heads, d, e) for x in "QKV"},
        W_O=draw(heads, e, d),
        W_U=draw(d, out),
        b_O=bias(d),
        b_U=bias(out),
        **{f"b_{x}": bias(heads, e) for x in "QKV"},
        **norms,
        mlp=None if act is None else Mlp(draw(d, m), draw(m, d), act, bias(m), bias(d)),
        rotary=rotary,
        alibi=alibi,
        post_norm=post_norm,
    )


def scaled(network, factors):
    """The network with some tensors multiplied, by name: W_Q=1e6 and the like."""
    return replace(network, **{name: (getattr(network, name).astype(np.float64) * f).astype(np.float32) for name, f in factors.items()})


def awkward_networks():
    """Named networks with ties, tiny and huge weights, norms without eps, saturated attention."""
    return list(_awkward_networks())


def _awkward_networks():
    everything = {
        "norm_1": NormKind.LN,
        "norm_2": NormKind.LN,
        "norm_final": NormKind.LN,
        "act": Activation.GELU,
        "biases": True,
        "post_norm": False,
    }
    plain = {"norm_1": None, "norm_2": None, "norm_final": None, "act": None, "biases": True, "post_norm": False}
    block, heads = random_network(1, **everything), random_network(2, sizes=(4, 3, 5, 2, 3, 7, 6), **plain)
    W_U, b_U = np.array(block.W_U), np.array(block.b_U)
    W_U[:, 1], b_U[1] = W_U[:, 3], b_U[3]
    yield "tied outputs", replace(block, W_U=W_U, b_U=b_U)
    W_U = np.array(heads.W_U)
    W_U[:, 2] = W_U[:, 0]
    yield "outputs that differ in their bias only", replace(heads, W_U=W_U)
    b_U = np.array(heads.b_U)
    b_U[2] = np.nextafter(b_U[0], np.float32(9))
    yield "outputs that differ in a bias's last digit", replace(heads, W_U=W_U, b_U=b_U)
    for name, network in (("block", block), ("heads", heads)):
        yield f"{name}: saturated attention", scaled(network, {"W_Q": 1e3})
        yield f"{name}: attention beyond float64's exponent", scaled(network, {"W_Q": 1e12, "W_K": 1e12})
        yield f"{name}: attention that float64 does not know", scaled(network, {"W_Q": 1e8, "W_K": 1e8})
        yield f"{name}: large unembedding", scaled(network, {"W_U": 1e30})
    for act in Activation:
        for scale in (1e-30, 1e-9, 1e4):
            yield f"{act}, weights of {scale}", random_network(3, scale=scale, act=act, norm_2=None, norm_final=None, biases=False)
            yield f"{act}, norms, weights of {scale}", random_network(4, scale=scale, act=act, norm_2=NormKind.LN, eps=0.0)
    yield "attention only, weights of 1e-30", random_network(5, scale=1e-30, **plain)
    yield "attention only, weights of 1e30", random_network(5, scale=1e30, **plain)
    yield "block, weights of 1e30", random_network(6, scale=1e30, **everything)
    for kind in NormKind:
        yield f"{kind} without eps", random_network(7, eps=0.0, norm_1=kind, norm_2=kind, norm_final=kind, act=Activation.RELU)
        yield (
            f"{kind} of tiny streams without eps",
            random_network(8, scale=1e-20, eps=0.0, norm_1=kind, norm_final=kind, act=Activation.SILU),
        )


def mirrored_network(seed, *, act=None, norm=None, score=1.0, value=1.0, mlp=1.0, inner=0.0, post_norm=False, d=6):
    """Outputs 0 and 1 tie on every sequence over the reals, but float64 adds up the two in different orders.

    Coordinates 0 and 1 of the stream are equal: two heads, and two halves of the neurons, do the same with them exchanged and all inside
    permuted. `score` is the size of a constant in all scores, `value` of one that b_O takes from the stream again: both leave errors
    behind that are far larger than the rounding of what comes after. So does `inner`, a part of the values that W_O takes out again. `mlp`
    is the size of its weights.
    """
    rng = np.random.default_rng(seed)
    v, k, e, m = 3, 3, 5, 7
    order, mirror = rng.permutation(e), [1, 0, *range(2, d)]

    def draw(*shape):
        return rng.normal(size=shape).astype(np.float32)

    W_E, W_pos, weight = draw(v, d), draw(k, d), draw(d)
    for tensor in (W_E, W_pos, weight[None]):
        tensor[:, 1] = tensor[:, 0]
    W_Q, W_K, W_V, W_O = draw(d, e), draw(d, e), draw(d, e), draw(e, d)
    b_Q, b_K, b_V = draw(e), draw(e) * np.float32(score), draw(e) * np.float32(value)
    W_O[:, 1:] = 0
    if inner:
        W_V[:, 0] *= np.float32(inner)
        W_V[:, 1], b_V[1], W_O[1, 0] = W_V[:, 0], b_V[0], -W_O[0, 0]
    b_O = np.zeros(d, np.float32)
    b_O[:2] = -(b_V.astype(np.float64) @ W_O[:, 0])
    W_in, W_out, own = draw(d, m) * np.float32(mlp), draw(m, d) * np.float32(mlp), rng.permutation(m)
    U = draw(d)
    hidden = None if act is None else Mlp(np.hstack([W_in, W_in[mirror][:, own]]), np.vstack([W_out, W_out[own][:, mirror]]), act)
    final = None if norm is None else Norm(norm, 1e-5, weight)
    return Network(
        W_E=W_E,
        W_pos=W_pos,
        n_ctx=k,
        **{f"W_{x}": np.stack([W, W[mirror][:, order]]) for x, W in (("Q", W_Q), ("K", W_K), ("V", W_V))},
        **{f"b_{x}": np.stack([b, b[order]]) for x, b in (("Q", b_Q), ("K", b_K), ("V", b_V))},
        W_O=np.stack([W_O, W_O[order][:, mirror]]),
        b_O=b_O,
        W_U=np.stack([U, U[mirror], -U], axis=1),
        mlp=hidden,
        norm_2=None if norm is None or (act is None and not post_norm) else Norm(norm, 1e-5, weight),
        norm_final=final,
        post_norm=post_norm,
    )
