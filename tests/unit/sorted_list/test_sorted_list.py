"""Bounds of sorted-list models against every list of tiny ones, in all orders.

Kernels are run as plain Python, from their source: so a mistake can be put into it, and nothing has to be compiled.
"""

from collections import Counter
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

import network_oracle
from compactproofs.arrays.arithmetic import Float64
from compactproofs.form.block import normed
from compactproofs.model.kinds import of_length
from compactproofs.model.network import NormKind
from compactproofs_experiments import sorted_list
from compactproofs_experiments.sorted_list import kernels as compiled
from compactproofs_experiments.sorted_list import prove, truth
from compactproofs_experiments.sorted_list.lists import Lists, Pair
from random_networks import random_network

FOLDER = Path(sorted_list.__file__).parent
NAMES = ("reading", "problem", "kernels")
PLAIN = ("from numba import njit", "njit = lambda **options: lambda function: function")
CLOSE = 1e-9
"""Room for the rounding of the float64 truth."""


def module(name, *changes):
    """A module of the experiment with its source changed, each change in one place."""
    source = (FOLDER / f"{name}.py").read_text()
    for old, new in changes:
        assert source.count(old) == 1, f"{old!r} occurs {source.count(old)} times in {name}.py"
        source = source.replace(old, new)
    made = ModuleType(f"{sorted_list.__name__}.{name}")  # dataclasses look for the name among modules
    exec(compile(source, f"changed {name}.py", "exec"), made.__dict__)
    return made


def modules(where=None, *changes):
    """The three modules that make bounds, kernels uncompiled, one of them changed."""
    plain = {"kernels": (PLAIN,)}
    return SimpleNamespace(**{name: module(name, *plain.get(name, ()), *(changes if name == where else ())) for name in NAMES})


RIGHT = modules()


class Kind(NamedTuple):
    """A tiny network of the same kind as the public one."""

    seed: int
    lists: Lists
    scale: float
    """Large weights make attention pick, small ones spread it."""
    spread: float
    """How far positions of the list differ, relative to all others."""
    final: NormKind | None = NormKind.LN

    @property
    def network(self):
        k, v = 2 * self.lists.length + 1, self.lists.n_values + 1
        parts = {"norm_1": NormKind.LN, "norm_2": None, "norm_final": self.final, "act": None, "biases": True, "positions": True}
        sizes = (v, k, 8, 4, 2, 7, v)
        made = random_network(self.seed, scale=self.scale, sizes=sizes, rotary=None, alibi=None, post_norm=False, **parts)
        W_pos = np.array(made.W_pos)
        W_pos[: self.lists.length] *= np.float32(self.spread)
        final = made.norm_final
        if final is not None and self.spread < 1.0:  # a bias that hardly tells outputs apart, as in the public model
            final = replace(final, bias=final.bias * np.float32(0.005))
        return replace(made, W_pos=W_pos, norm_final=final, b_U=made.b_U * np.float32(0.005))


SMALL, LONGER = Lists(6, 3), Lists(6, 4)
KINDS = [Kind(seed, LONGER, scale, spread) for seed in range(2) for scale in (0.3, 1.0) for spread in (0.02, 1.0)]
KINDS += [Kind(5, SMALL, 0.5, 0.02, None), Kind(6, SMALL, 0.5, 0.1, NormKind.RMS), Kind(7, SMALL, 3.0, 1.0)]


def taught(network, lists, output):
    """The network with a readout that makes many of its answers right."""
    orders = np.concatenate([orders_of(members) for members in combinations(range(lists.n_values), lists.length)])
    read = normed(network.norm_final, streams(network, lists, output, orders), Float64())
    wanted = np.eye(network.d_vocab)[np.sort(orders, axis=1)[:, output]]
    squares = read.T @ read
    W_U = np.linalg.solve(squares + 1e-3 * np.eye(len(squares)) * squares.trace() / len(squares), read.T @ (wanted - wanted.mean(axis=0)))
    return replace(network, W_U=W_U.astype(np.float32))


def orders_of(members):
    return np.array(list(permutations(members)))


class Truth:
    """All differences of logits of a tiny network at one output, times what the final norm divides by."""

    def __init__(self, network, lists, output):
        self.network, self.lists, self.output = network, lists, output
        self.worst = {}
        """By set, (output,): the greatest sigma (logit_o - logit_m) over all orders, without the label"""
        for members in combinations(range(lists.n_values), lists.length):
            found = truth.logits(network, lists, output, orders_of(members)) * self._sigma(members)[:, None]
            label = members[output]
            self.worst[members] = np.delete(found - found[:, label : label + 1], label, axis=1).max(axis=0)

    def _sigma(self, members):
        """(order,): the divisor, by the same network with a readout that does not divide"""
        if self.network.norm_final is None:
            return np.ones(len(orders_of(members)))
        r = streams(self.network, self.lists, self.output, orders_of(members))
        r = r - r.mean(axis=1, keepdims=True) if self.network.norm_final.kind is NormKind.LN else r
        return np.sqrt((r * r).mean(axis=1) + self.network.norm_final.eps)

    def failing(self, pair):
        """How many sets of a pair have an order that is answered wrong."""
        return sum(bool((self.worst[members] >= 0).any()) for members in self.lists.sets_of(pair))


def streams(network, lists, output, orders):
    """(order, d_model): the stream after attention; `truth.logits` without the readout."""
    kept = truth.readout
    truth.readout = lambda network, r, arithmetic: r
    try:
        return truth.logits(network, lists, output, orders)
    finally:
        truth.readout = kept


def cases(kinds=KINDS):
    for kind in kinds:
        for output in range(kind.lists.length):
            network = taught(kind.network, kind.lists, output)
            yield network, kind.lists, output, Truth(network, kind.lists, output)


def random_status(rng, lists, pair):
    """A node of a pair, and the sets in it: nothing known, or anything of one set and another."""
    sets = list(lists.sets_of(pair))
    one = sets[int(rng.integers(len(sets)))]
    status = np.zeros(lists.n_values, np.int8)
    for v in range(lists.n_values):
        if rng.random() < 0.4:
            status[v] = compiled.IN if v in one else compiled.OUT
    own = {pair.label, pair.query}
    status[[v for v in own if v < lists.n_values]] = compiled.FREE
    known = [v for v in range(lists.n_values) if status[v] != compiled.FREE]
    return status, [s for s in sets if all((v in s) == (status[v] == compiled.IN) for v in known)]


def bounds_of(made, problem, status, output):
    """fixed_part and harms of a node, for any shift of the centre."""
    low, high = made.totals(problem, status, False), made.totals(problem, status, True)
    shift = made.typical_shift(problem, status, output)
    fixed = made.fixed_part(problem, status, output, shift, (low[0][:, -1, 0], high[0][:, -1, 0]))
    sides = (problem.below, problem.above)
    return fixed, [made.harms(side, status, output, shift, (low[i], high[i])) for i, side in enumerate(sides)]


def total(tables, problem, members, pair):
    """The harms of a set, added up."""
    found = 0.0
    smaller = [v for v in members if v < pair.label and v != pair.query]
    greater = [v for v in members if v > pair.label]
    for side, table, own in ((problem.below, tables[0], smaller), (problem.above, tables[1], greater)):
        for rank, v in enumerate(own):
            found += table[min(rank, len(table) - 1), v - side.first]
    return found


def check_harms(made):
    """The harms of every node are at least the exact differences, set by set, in the worst order."""
    rng = np.random.default_rng(0)
    for network, lists, output, exact in cases():
        reading = made.reading.read(network, lists, output)
        for pair in lists.pairs(output):
            problem = made.problem.problem_of(reading, pair)
            for empty in (True, False):
                status, sets = random_status(rng, lists, pair)
                status, sets = (np.zeros_like(status), list(lists.sets_of(pair))) if empty else (status, sets)
                for o in range(len(problem.constant)):
                    fixed, tables = bounds_of(made.kernels, problem, status, o)
                    for members in sets:
                        bound, value = fixed + total(tables, problem, members, pair), exact.worst[members][o]
                        assert bound >= value - CLOSE * (1 + abs(value)), (pair, members, o, bound, value)


def check_counting(made):
    """Counts are at least those of the sums themselves, whatever the grid, and equal on a fine one."""
    rng = np.random.default_rng(1)
    for trial in range(60):
        below, above, n = int(rng.integers(3)), int(rng.integers(3)), 5
        sides = [_side(first, choose, n, ranks) for first, choose, ranks in ((0, below, max(1, below)), (7, above, 1))]
        status = np.where(rng.random(12) < 0.2, compiled.OUT, compiled.FREE).astype(np.int8)
        status[rng.integers(12)] = compiled.IN if trial % 3 == 0 else compiled.FREE
        problem = compiled.Problem(*sides, *(np.zeros(2),) * 2, np.zeros((1, 2)), np.zeros(1))
        tables = [rng.integers(-16, 16, (ranks, n)) / 8 for ranks in (max(1, below), 1)]  # sums are exact, and may be zero
        fixed = float(rng.integers(-16, 16)) / 8
        sums = []
        for low in combinations(range(n), below):
            for high in combinations(range(n), above):
                chosen = {*low, *(7 + v for v in high)}
                own = [v for v in range(12) if v < 5 or v >= 7]
                if all((status[v] != compiled.IN or v in chosen) and (status[v] != compiled.OUT or v not in chosen) for v in own):
                    parts = [tables[0][min(r, len(tables[0]) - 1), v] for r, v in enumerate(low)] + [tables[1][0, v] for v in high]
                    sums.append(fixed + sum(parts))
        failing = sum(s >= 0 for s in sums)
        for bins in (2, 5, 40, 500):
            found = made.kernels.count_failing(tables, fixed, problem, status, bins)
            assert found < 0 or found >= failing, (trial, bins, found, failing)
            assert bins < 500 or found == failing or (found < 0 and failing == len(sums)), (trial, found, failing)


def _side(first, choose, n, ranks):
    heads = 2
    lists, places = [np.zeros((heads, n))] * 2, [np.zeros((heads, ranks, n))] * 2
    return compiled.Side(first, choose, *lists, np.zeros((1, heads, n)), *places, np.zeros((1, heads, ranks, n)))


def check_pairs(made, kinds=KINDS[:1] + KINDS[4:]):
    """What may fail of a pair, as the tree of its nodes says, is at least what does."""
    certain = Counter()
    for network, lists, output, exact in cases(kinds):
        reading = made.reading.read(network, lists, output)
        for pair in lists.pairs(output):
            problem, failing = made.problem.problem_of(reading, pair), exact.failing(pair)
            for name, effort in EFFORTS.items():
                found, _ = made.kernels.grown(problem, lists.n_values, prove.binomials(lists.n_values), effort)
                assert found >= failing, (pair, name, found, failing)
                certain[name] += lists.size(pair) - found
            certain["truth"] += lists.size(pair) - failing
    return certain


EFFORTS = {
    "whole": compiled.Effort(bins=20, portion=1.0, few=0, nodes=1),
    "some": compiled.Effort(bins=20, portion=0.2, few=1, nodes=1000),
    "split": compiled.Effort(bins=50, portion=0.0, few=0, nodes=1000),
}


def test_harms_are_above_every_list():
    with np.errstate(all="ignore"):  # attention that underflows
        check_harms(RIGHT)


def test_counts_are_above_sums():
    check_counting(RIGHT)


@pytest.mark.long
def test_pairs_are_bounded_and_splits_help():
    with np.errstate(all="ignore"):
        check_pairs(RIGHT)
        certain = check_pairs(RIGHT, [kind for kind in KINDS if kind.spread == 0.02])
    assert certain["whole"] < certain["some"] < certain["split"] <= certain["truth"]
    assert certain["split"] > 0.9 * certain["truth"]  # what is left is the worst position of each number, by itself


def test_pairs_have_all_sets():
    for lists in (SMALL, LONGER, Lists(51, 10)):
        for output in range(lists.length):
            assert sum(map(lists.size, lists.pairs(output))) == lists.sets
    for output in range(4):
        found = [(s, pair) for pair in LONGER.pairs(output) for s in LONGER.sets_of(pair)]
        assert sorted(s for s, _ in found) == list(combinations(range(6), 4))
        assert all(s[output] == pair.label and (output == 0 or s[output - 1] == pair.query) for s, pair in found)


def test_tokens_are_those_of_the_task():
    found = Lists(51, 10).tokens(np.array([[5, 3, 50, 0, 1, 7, 9, 8, 30, 2]]), 3)
    assert found.tolist() == [[5, 3, 50, 0, 1, 7, 9, 8, 30, 2, 51, 0, 1, 2]]
    assert next(SMALL.pairs(0)) == Pair(6, 0, 0, 2)


def test_the_truth_is_that_of_the_referee():
    for output in range(SMALL.length):
        network, orders = KINDS[-1].network, np.array([[4, 0, 2], [1, 5, 3]])
        shorter = of_length(network, SMALL.length + output + 1)
        exact = [[float(x.mid()) for x in network_oracle.logits(shorter, x)] for x in SMALL.tokens(orders, output).tolist()]
        assert np.allclose(truth.logits(network, SMALL, output, orders), exact, rtol=1e-9, atol=1e-9)


MISTAKES = {
    "shares exchanged": ("kernels", check_harms, ("n / least if n >= 0.0 else n / greatest", "n / greatest if n >= 0.0 else n / least")),
    "the larger share always": ("kernels", check_harms, ("n / least if n >= 0.0 else n / greatest", "n / least")),
    "the last position of the list left out": (
        "problem",
        check_harms,
        ("in_list = places.in_list(length)", "in_list = places.in_list(length - 1)"),
    ),
    "the first position of the list only": ("problem", check_harms, ("self.upper[:, :, :length].max(axis=2)", "self.upper[:, :, 0]")),
    "the best position": ("problem", check_harms, ("self.upper[:, :, :length].max(axis=2)", "self.upper[:, :, :length].min(axis=2)")),
    "the second place left out": ("problem", check_harms, ("if ranks[1] > ranks[0]:", "if False:")),
    "ranks from one too far": (
        "problem",
        check_harms,
        ("(length + 1, length + 1 + pair.below)", "(length, length + pair.below)"),
    ),
    "the query's own place left out": ("problem", check_harms, ("fixed += [places.at(length + output, q), ", "fixed += [")),
    "the bias left out": ("problem", check_harms, ("part = _upwards(np.maximum(bias * least, bias * most[q]))", "part = 0 * bias")),
    "a greatest divisor of one head only": ("reading", check_harms, ("for h in range(form.n_heads):", "for h in range(0):")),
    "the change of the centre not taken back": ("kernels", check_harms, ("total += part + shift[h]", "total += part")),
    "the greatest sum for the least": ("kernels", check_harms, ("sign = -1.0 if greatest else 1.0", "sign = 1.0")),
    "numbers that are in, twice free": ("kernels", check_harms, ("if state == FREE:", "if state == IN:")),
    "floor for ceiling": ("kernels", check_counting, ("np.ceil(max(y, -LARGEST))", "np.floor(max(y, -LARGEST))")),
    "one less in the threshold": ("kernels", check_counting, ("reaching += others[top - s]", "reaching += others[top - s] * (s > 0)")),
    "half a node": ("kernels", check_pairs, ("for known in (OUT, IN):", "for known in (IN,):")),
    "harmless if it might be": ("kernels", check_pairs, ("    return total + STEP * sizes < 0.0", "    return True")),
    "the last output left out": ("kernels", check_pairs, ("for o in range(len(problem.constant)):", "for o in range(2):")),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_found(name):
    where, check, change = MISTAKES[name]
    with np.errstate(all="ignore"), pytest.raises(AssertionError, match=r"^\("):
        check(modules(where, change))


@pytest.mark.slow
def test_compiled_kernels_say_the_same():
    network = KINDS[0].network
    for output in range(LONGER.length):
        reading = RIGHT.reading.read(network, LONGER, output)
        for pair in LONGER.pairs(output):
            problem = RIGHT.problem.problem_of(reading, pair)
            given = (problem, LONGER.n_values, prove.binomials(LONGER.n_values), EFFORTS["some"])
            assert compiled.grown(*given) == RIGHT.kernels.grown(*given)
