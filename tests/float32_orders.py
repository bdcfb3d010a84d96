"""Float32 forward passes in many orders of summation, with torch: what the float32 claim is about."""

from itertools import product

import numpy as np
import torch


def sequential(a, b, order=None):
    total = None
    for j in range(a.shape[-1]) if order is None else order:
        term = a[..., j] * b[..., j]
        total = term if total is None else total + term
    return total


def backwards(a, b):
    return sequential(a, b, range(a.shape[-1])[::-1])


def shuffled(a, b):
    return sequential(a, b, np.random.default_rng(a.shape[-1]).permutation(a.shape[-1]))


def blocked(a, b, lanes=4):
    partial = torch.stack([sequential(a[..., i::lanes], b[..., i::lanes]) for i in range(min(lanes, a.shape[-1]))], -1)
    return sequential(partial, torch.ones(partial.shape[-1]))


def fused(a, b):
    total = torch.zeros(torch.broadcast_shapes(a.shape, b.shape)[:-1])
    for j in range(a.shape[-1]):  # the product exact, the sum in float64, then rounded once more
        total = (a[..., j].double() * b[..., j].double() + total.double()).float()
    return total


def large_first(a, b):
    terms = torch.sort(a * b, dim=-1, descending=True).values
    return sequential(terms, torch.ones(terms.shape[-1]))


def library(a, b):
    return (a * b).sum(-1)


DOTS = (sequential, backwards, shuffled, blocked, fused, large_first, library)


def passes(weights):
    """Functions from tokens (batch, n_ctx) to float32 logits."""
    W = {name: torch.tensor(np.array(tensor)) for name, tensor in weights.tensors.items()}
    root = torch.tensor(float(weights.score_divisor_squared) ** 0.5)
    yield lambda tokens: _matmul(W, root, tokens)
    for dot, scaling, inverse in product(DOTS, ("score", "query", "both"), (False, True)):
        yield lambda tokens, dot=dot, scaling=scaling, inverse=inverse: _pass(W, root, tokens, dot, scaling, inverse)


def _matmul(W, root, tokens):
    h = W["W_E"][torch.tensor(tokens)] + W["W_pos"]
    scores = (h[:, -1:] @ W["W_Q"]) @ (h @ W["W_K"]).transpose(1, 2) / root
    return ((torch.softmax(scores, -1) @ (h @ W["W_V"]) @ W["W_O"] + h[:, -1:]) @ W["W_U"])[:, 0].numpy()


def _pass(W, root, tokens, dot, scaling, inverse):
    def times(x, matrix):
        return dot(x[..., None, :], matrix.T)

    h = W["W_E"][torch.tensor(tokens)] + W["W_pos"]
    queries, keys = times(h[:, -1], W["W_Q"]), times(h, W["W_K"])
    if scaling == "query":
        queries = queries * (1 / root)
    if scaling == "both":
        queries, keys = queries / root.sqrt(), keys / root.sqrt()
    scores = dot(queries[:, None, :], keys)
    if scaling == "score":
        scores = scores / root
    e = torch.exp(scores - scores.max(1, keepdim=True).values)
    total = dot(e, torch.ones(e.shape[1]))[:, None]
    p = e * (1 / total) if inverse else e / total
    z = dot(p[:, None, :], times(h, W["W_V"]).transpose(1, 2))
    logits = times(times(z, W["W_O"]) + h[:, -1], W["W_U"])
    assert logits.dtype == torch.float32
    return logits.numpy()
