"""The referee for networks of any kind: exact answers for tiny ones, in python-flint's balls. Shares no code with the package."""

from itertools import product

from flint import arb, ctx

PRECISION = 1000


def logits(network, tokens):
    """Logits at the last position as balls, straight from the definition in `model.network`; None if a norm divides by what may be zero."""
    previous, ctx.prec = ctx.prec, PRECISION
    try:
        return _logits(network, tokens)
    except ZeroDivisionError:
        return None
    finally:
        ctx.prec = previous


def is_correct(network, tokens, label, margin=0.0):
    """Three answers: True, False, or None where even these balls cannot tell: an exact tie, or a norm of nothing."""
    values = logits(network, tokens)
    if values is None or not all(x.is_finite() for x in values):
        return None
    previous, ctx.prec = ctx.prec, PRECISION
    try:
        others = [x + arb(margin) for o, x in enumerate(values) if o != label]
    finally:
        ctx.prec = previous
    if all(x < values[label] for x in others):
        return True
    return False if any(x > values[label] for x in others) else None


def bounds(network, label_of=max, sequences=None):
    """The least and the largest number of correct sequences."""
    sequences = product(range(network.d_vocab), repeat=network.n_ctx) if sequences is None else sequences
    answers = [is_correct(network, tokens, label_of(tokens)) for tokens in sequences]
    return answers.count(True), answers.count(True) + answers.count(None)


def count_correct(network, sequences=None, label_of=max):
    """How many of all (or these) sequences the network answers correctly; ties are wrong."""
    return bounds(network, label_of, sequences)[0]


def _logits(network, tokens):
    T = {name: _balls(tensor.tolist()) for name, tensor in network.tensors.items()}
    k, last = len(tokens), len(tokens) - 1
    x = [list(T["W_E"][t]) for t in tokens]
    if "W_pos" in T:
        x = [_plus(row, T["W_pos"][i]) for i, row in enumerate(x)]
    n = [_normed(row, network.norm_1, T, "norm_1") for row in x]
    divisor = (arb(network.score_divisor_squared.numerator) / network.score_divisor_squared.denominator).sqrt()
    r = _plus(x[last], T.get("b_O"))
    for head in range(len(T["W_Q"])):
        Q, K, V = ([_plus(_times(row, T[f"W_{X}"][head]), T[f"b_{X}"][head] if f"b_{X}" in T else None) for row in n] for X in "QKV")
        query = _turned(Q[last], last, network.rotary)
        scores = [_dot(query, _turned(K[i], i, network.rotary)) / divisor for i in range(k)]
        if network.alibi is not None:
            scores = [s - arb(last - i) / 2 ** network.alibi[head] for i, s in enumerate(scores)]
        top = max(scores, key=lambda s: float(s.mid()))
        weights = [(s - top).exp() for s in scores]
        mass = sum(weights, arb(0))
        mixed = [sum((w * value[j] for w, value in zip(weights, V, strict=True)), arb(0)) / mass for j in range(len(V[0]))]
        r = _plus(r, _times(mixed, T["W_O"][head]))
    if network.post_norm:
        r = _normed(r, network.norm_2, T, "norm_2")
    if network.mlp is not None:
        y = r if network.post_norm else _normed(r, network.norm_2, T, "norm_2")
        y = [_activated(str(network.mlp.act), z) for z in _plus(_times(y, T["mlp.W_in"]), T.get("mlp.b_in"))]
        r = _plus(_plus(r, _times(y, T["mlp.W_out"])), T.get("mlp.b_out"))
    r = _normed(r, network.norm_final, T, "norm_final")
    return _plus(_times(r, T["W_U"]), T.get("b_U"))


def _balls(values):
    return [_balls(x) if isinstance(x, list) else arb(float(x)) for x in values]


def _normed(x, norm, T, name):
    if norm is None:
        return x
    if str(norm.kind) == "LN":
        mean = sum(x, arb(0)) / len(x)
        x = [y - mean for y in x]
    size = (sum((y * y for y in x), arb(0)) / len(x) + arb(norm.eps)).sqrt()
    if not size > 0:
        raise ZeroDivisionError
    x = [y / size for y in x]
    weight, bias = T.get(f"{name}.weight"), T.get(f"{name}.bias")
    return _plus(x if weight is None else [a * b for a, b in zip(x, weight, strict=True)], bias)


def _turned(x, i, rotary):
    if rotary is None:
        return x
    half, out = rotary.dim // 2, list(x)
    for j in range(half):
        a, b = (2 * j, 2 * j + 1) if rotary.adjacent else (j, j + half)
        angle = arb(i) / arb(rotary.base) ** (arb(j) / half)
        out[a], out[b] = x[a] * angle.cos() - x[b] * angle.sin(), x[b] * angle.cos() + x[a] * angle.sin()
    return out


def _activated(act, y):
    match act:
        case "relu":
            return (y + abs(y)) / 2
        case "gelu":
            return y * (1 + (y / arb(2).sqrt()).erf()) / 2
        case "gelu_new":
            return y * (1 + ((2 / arb.pi()).sqrt() * (y + arb("0.044715") * y * y * y)).tanh()) / 2
        case "silu":
            return y / (1 + (-y).exp())


def _plus(a, b):
    return a if b is None else [x + y for x, y in zip(a, b, strict=True)]


def _dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), arb(0))


def _times(row, matrix):
    return [_dot(row, column) for column in zip(*matrix, strict=True)]
