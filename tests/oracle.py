"""The referee: exact answers for tiny models, straight from the weights, with python-flint's balls. Shares no code with the package."""

from itertools import product

from flint import arb, ctx

PRECISION = 600


def logits(weights, tokens):
    """Logits at the last position as balls of 600 bits."""
    previous, ctx.prec = ctx.prec, PRECISION
    try:
        W = {name: [[arb(float(x)) for x in row] for row in tensor] for name, tensor in weights.tensors.items()}
        residual = [[e + p for e, p in zip(W["W_E"][t], W["W_pos"][i], strict=True)] for i, t in enumerate(tokens)]
        query = _times(residual[-1], W["W_Q"])
        divisor = (arb(weights.score_divisor_squared.numerator) / weights.score_divisor_squared.denominator).sqrt()
        scores = [_dot(query, _times(h, W["W_K"])) / divisor for h in residual]
        top = max(scores, key=lambda s: float(s.mid()))
        unnormalised = [(s - top).exp() for s in scores]
        mass = sum(unnormalised, arb(0))
        mixed = [sum((w * h[j] for w, h in zip(unnormalised, residual, strict=True)), arb(0)) / mass for j in range(len(residual[0]))]
        final = [a + b for a, b in zip(_times(_times(mixed, W["W_V"]), W["W_O"]), residual[-1], strict=True)]
        return _times(final, W["W_U"])
    finally:
        ctx.prec = previous


def is_correct(weights, tokens, label, margin=0.0):
    """True if the label's logit is certainly larger than every other by more than the margin; at 600 bits, what is not certain is taken for
    a tie, hence wrong."""
    values = logits(weights, tokens)
    previous, ctx.prec = ctx.prec, PRECISION
    try:
        return all(values[o] + arb(margin) < values[label] for o in range(len(values)) if o != label)
    finally:
        ctx.prec = previous


def cross_entropy(weights, tokens, label):
    """In nats, as a ball of 600 bits."""
    values = logits(weights, tokens)
    previous, ctx.prec = ctx.prec, PRECISION
    try:
        return sum(((x - values[label]).exp() for x in values), arb(0)).log()
    finally:
        ctx.prec = previous


def count_correct(weights, label_of=max):
    """How many of all sequences the network answers correctly; those without a label (-1) do not count."""
    return mass_correct(weights, label_of, lambda tokens: 1)


def mass_correct(weights, label_of, mass_of, margin=0.0):
    """The mass of the sequences that the network answers correctly, by the margin; those without a label (-1) do not count."""
    sequences = [(tokens, label_of(tokens)) for tokens in product(range(weights.d_vocab), repeat=weights.n_ctx)]
    asked = [(tokens, label) for tokens, label in sequences if label >= 0 and mass_of(tokens)]
    return sum(mass_of(tokens) for tokens, label in asked if is_correct(weights, tokens, label, margin))


def _dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), arb(0))


def _times(row, matrix):
    return [_dot(row, column) for column in zip(*matrix, strict=True)]
