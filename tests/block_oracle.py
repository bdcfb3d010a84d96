"""The referee for whole blocks: logits from the weights with python-flint's balls. Shares no code with the package."""

from itertools import product

from flint import arb, ctx

PRECISION = 2500


def logits(network, tokens):
    """Logits at the last position as balls, or None if a norm divides by what may be zero."""
    previous, ctx.prec = ctx.prec, PRECISION
    try:
        return _logits(network, tokens)
    except ZeroDivisionError:
        return None
    finally:
        ctx.prec = previous


def is_correct(network, tokens, label):
    """Three answers: True, False, or None where even these balls cannot tell: an exact tie, or a norm of nothing."""
    values = logits(network, tokens)
    if values is None or not all(x.is_finite() for x in values):
        return None
    others = [x for o, x in enumerate(values) if o != label]
    if all(x < values[label] for x in others):
        return True
    return False if any(x > values[label] for x in others) else None


def bounds(network, label_of=max, sequences=None):
    """The least and the largest number of correct sequences."""
    sequences = product(range(network.d_vocab), repeat=network.n_ctx) if sequences is None else sequences
    answers = [is_correct(network, tokens, label_of(tokens)) for tokens in sequences]
    return answers.count(True), answers.count(True) + answers.count(None)


def _logits(network, tokens):
    k, last = network.n_ctx, network.n_ctx - 1
    x = [[arb(float(e)) for e in network.W_E[t]] for t in tokens]
    if network.W_pos is not None:
        x = [[a + arb(float(p)) for a, p in zip(row, network.W_pos[i], strict=True)] for i, row in enumerate(x)]
    n = [_norm(network.norm_1, row) for row in x]
    r = x[last] if network.b_O is None else _plus(x[last], network.b_O)
    divisor = (arb(network.score_divisor_squared.numerator) / network.score_divisor_squared.denominator).sqrt()
    for h in range(network.n_heads):
        q = _turn(network, last, _project(network, "Q", h, n[last]))
        scores = []
        for i in range(k):
            score = _dot(q, _turn(network, i, _project(network, "K", h, n[i]))) / divisor
            scores.append(score if network.alibi is None else score - arb(last - i) / arb(2) ** network.alibi[h])
        top = max(scores, key=lambda s: float(s.mid()))
        weights = [(s - top).exp() for s in scores]
        mass = sum(weights, arb(0))
        for w, row in zip(weights, n, strict=True):
            r = [a + w / mass * b for a, b in zip(r, _times(_project(network, "V", h, row), network.W_O[h]), strict=True)]
    if network.post_norm:
        r = _norm(network.norm_2, r)
    if network.mlp is not None:
        y = _plus(_times(r if network.post_norm else _norm(network.norm_2, r), network.mlp.W_in), network.mlp.b_in)
        out = _plus(_times([_act(str(network.mlp.act), a) for a in y], network.mlp.W_out), network.mlp.b_out)
        r = [a + b for a, b in zip(r, out, strict=True)]
    return _plus(_times(_norm(network.norm_final, r), network.W_U), network.b_U)


def _norm(norm, x):
    if norm is None:
        return x
    d = len(x)
    if str(norm.kind) == "LN":
        mean = sum(x, arb(0)) / d
        x = [a - mean for a in x]
    sigma = (sum((a * a for a in x), arb(0)) / d + arb(norm.eps)).sqrt()
    if not sigma > 0:
        raise ZeroDivisionError
    x = [a / sigma for a in x]
    x = x if norm.weight is None else [a * arb(float(w)) for a, w in zip(x, norm.weight, strict=True)]
    return _plus(x, norm.bias)


def _act(act, y):
    if act == "relu":
        return (y + abs(y)) / 2
    if act == "gelu":
        return y * (1 + (y / arb(2).sqrt()).erf()) / 2
    if act == "gelu_new":
        return y * (1 + ((2 / arb.pi()).sqrt() * (y + arb(44715) / 1000000 * y**3)).tanh()) / 2
    assert act == "silu"
    return y / (1 + (-y).exp())


def _turn(network, position, x):
    if network.rotary is None:
        return x
    half, out = network.rotary.dim // 2, list(x)
    for j in range(half):
        a, b = (2 * j, 2 * j + 1) if network.rotary.adjacent else (j, j + half)
        angle = position / (arb(network.rotary.base).log() * j / half).exp()
        out[a], out[b] = x[a] * angle.cos() - x[b] * angle.sin(), x[b] * angle.cos() + x[a] * angle.sin()
    return out


def _project(network, letter, head, row):
    bias = getattr(network, f"b_{letter}")
    return _plus(_times(row, getattr(network, f"W_{letter}")[head]), None if bias is None else bias[head])


def _plus(x, bias):
    return x if bias is None else [a + arb(float(b)) for a, b in zip(x, bias, strict=True)]


def _dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), arb(0))


def _times(row, matrix):
    return [sum((x * arb(float(w)) for x, w in zip(row, column, strict=True)), arb(0)) for column in matrix.T]
