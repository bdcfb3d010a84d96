"""What the network really answers, in float64: for comparison, proves nothing."""

from __future__ import annotations

import numpy as np

from compactproofs.arrays.arithmetic import Float64
from compactproofs.form.block import block_numbers, readout
from compactproofs.model.kinds import of_length
from compactproofs.model.network import Network
from compactproofs_experiments.sorted_list.lists import Lists

BATCH = 4096


def right(network: Network, lists: Lists, output: int, orders: np.ndarray) -> np.ndarray:
    """(list,): whether the lists (list, length) are answered right at an output."""
    found = logits(network, lists, output, orders)
    labels = np.sort(orders, axis=1)[:, output]
    own = np.take_along_axis(found, labels[:, None], axis=1)
    return np.asarray((found >= own).sum(axis=1) == 1)


def logits(network: Network, lists: Lists, output: int, orders: np.ndarray) -> np.ndarray:
    """(list, output)"""
    network = of_length(network, lists.length + output + 1)
    k, n = network.n_ctx, network.d_vocab
    numbers = block_numbers(network, np.tile(np.arange(n), (k, 1)), Float64())
    tokens, found = lists.tokens(orders, output), []
    for start in range(0, len(tokens), BATCH):
        x = tokens[start : start + BATCH]
        r = numbers.base[x[:, -1]]
        places = np.arange(k) * n + x
        for scores, values in zip(numbers.scores, numbers.values, strict=True):
            s = scores[x[:, -1:], places]
            a = np.exp(s - s.max(axis=1, keepdims=True))
            r = r + np.einsum("ni,nid->nd", a / a.sum(axis=1, keepdims=True), values[places])
        found.append(readout(network, r, Float64()))
    return np.concatenate(found)


def sampled(network: Network, lists: Lists, output: int, samples: int) -> float:
    """The portion of random lists that is answered right."""
    draws = np.random.default_rng(0).random((samples, lists.n_values))
    return float(right(network, lists, output, np.argsort(draws, axis=1)[:, : lists.length]).mean())
