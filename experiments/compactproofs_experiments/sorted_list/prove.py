"""How many lists are certainly answered right: `python -m compactproofs_experiments.sorted_list.prove MODEL`."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np

from compactproofs.model.files import load
from compactproofs.model.kinds import as_network
from compactproofs.model.network import Network
from compactproofs_experiments.sorted_list.kernels import Effort, grown
from compactproofs_experiments.sorted_list.lists import Lists
from compactproofs_experiments.sorted_list.problem import problem_of
from compactproofs_experiments.sorted_list.reading import read
from compactproofs_experiments.sorted_list.truth import sampled

EFFORT = Effort(bins=400, portion=0.01, few=2000, nodes=20000)


@dataclass(frozen=True)
class Outcome:
    """A theorem about one output: at most `failing` of the `sets` sets of numbers have an order that is answered wrong."""

    output: int
    failing: int
    sets: int
    nodes: int

    @property
    def accuracy(self) -> Fraction:
        """At most the portion of lists that are answered right."""
        return 1 - Fraction(self.failing, self.sets)


def prove_output(network: Network, lists: Lists, output: int, effort: Effort = EFFORT) -> Outcome:
    """Bound the accuracy at one output.

    Guarantee: Theorem V of README.md, for the network over real numbers.
    Assumes: attention is causal.
    Cost: O(pairs nodes outputs n_values length bins), pairs being those of query and label.
    """
    reading = read(network, lists, output)
    binomial = binomials(lists.n_values)
    failing = sets = nodes = 0
    for pair in lists.pairs(output):
        size = lists.size(pair)
        found, looked_at = grown(problem_of(reading, pair), lists.n_values, binomial, effort)
        failing, sets, nodes = failing + min(int(found), size), sets + size, nodes + int(looked_at)
    if sets != lists.sets:
        raise AssertionError(f"the pairs have {sets} sets, and there are {lists.sets}")
    return Outcome(output, failing, sets, nodes)


def binomials(n: int) -> np.ndarray:
    """(n + 1, n + 1): binomial coefficients."""
    return np.array([[comb(i, k) for k in range(n + 1)] for i in range(n + 1)], dtype=np.int64)


def main() -> None:
    """One line for each output."""
    parser = argparse.ArgumentParser(description="Certified accuracy of a sorted-list model, output by output.")
    parser.add_argument("model")
    parser.add_argument("--portion", type=float, default=EFFORT.portion, help="nodes of which at most this portion may fail are not split")
    parser.add_argument("--few", type=int, default=EFFORT.few, help="nor are those of which at most so many sets may fail")
    parser.add_argument("--bins", type=int, default=EFFORT.bins)
    parser.add_argument("--outputs", type=int, nargs="*")
    parser.add_argument("--samples", type=int, default=0, help="lists to sample, for comparison")
    told = parser.parse_args()
    network = as_network(load(told.model))
    lists = Lists(network.d_vocab - 1, (network.n_ctx - 1) // 2)
    effort = EFFORT._replace(portion=told.portion, few=told.few, bins=told.bins)
    wrong = Fraction(0)
    for output in range(lists.length) if told.outputs is None else told.outputs:
        start = time.perf_counter()
        found = prove_output(network, lists, output, effort)
        wrong += 1 - found.accuracy
        line = f"output {output}: at least {float(found.accuracy):.6f}, {found.nodes} nodes, {time.perf_counter() - start:.1f} s"
        line += f"; sampled {sampled(network, lists, output, told.samples):.5f}" if told.samples else ""
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    sys.stdout.write(f"right at all of these outputs: at least {float(1 - wrong):.6f}\n")


if __name__ == "__main__":
    main()
