"""The checker's rules with witnesses from nowhere: whatever they return is true, by brute force.

Witnesses are made up at random, not found by a search: random weights, scales, pools, steps, offsets, depths, classes, terms and lists.
Harms are the smallest that the checker accepts, and sometimes one less, which must be rejected.
"""

import random
from itertools import product

import numpy as np
import pytest

import oracle
from compactproofs import checker
from compactproofs.certificates.checking import network
from models import random_weights, weights_from_tables

SEEDS = range(60)


def model(seed):
    """Structured networks with ties and with saturated attention, and plain random ones."""
    rng = np.random.default_rng(seed)
    v, k = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    out = v + int(rng.integers(0, 2))
    if seed % 3 == 0:
        return random_weights(seed, n_ctx=k, d_vocab=v, d_vocab_out=out, scale=float(rng.choice([0.3, 1.0, 3.0])))
    grow = float(rng.choice([0, 1, 3]))
    whole = rng.integers(-2, 3, size=(5, 8, 8)).astype(float)
    return weights_from_tables(
        EQKE=whole[0, :v, :v] * float(rng.choice([0, 1, 40, 3000])) + grow * np.arange(v),
        EQKP=whole[1, :v, :k],
        EVOU=whole[2, :v, :out] + 3 * np.eye(v, out),
        PVOU=whole[3, :k, :out] * (seed % 2),
        EU=whole[4, :v, :out],
    )


class Case:
    """A model, the checker's tables, and the truth about every sequence."""

    def __init__(self, seed):
        weights = model(seed)
        self.rng = random.Random(seed)
        self.T = checker.tables(network(weights), checker.REAL)
        sequences = product(range(self.T.v), repeat=self.T.k)
        self.right = {x: oracle.is_correct(weights, x, max(x)) for x in sequences}

    def number(self, m, queries, right=True):
        return sum(ok == right for x, ok in self.right.items() if max(x) == m and x[-1] in queries)

    def integer(self):
        return self.rng.choice([1, 1, 2, self.rng.randint(1, 10), self.rng.randint(1, 1 << 40)])

    def order(self, m):
        tokens = self.rng.sample(range(m + 1), m + 1)
        return tokens[: self.rng.choice([0, 0, 1, 2, m + 1])]

    def shift(self, harms):
        bits = max(abs(x).bit_length() for row in harms for x in row.values())
        return self.rng.choice([0, max(0, bits - 30), max(0, bits - 8), self.rng.randint(0, bits + 2)])

    def steps(self, harms, shift):
        largest = max(1, max(abs(x) for row in harms for x in row.values()) >> shift)
        depth = self.rng.choice([1, 2, self.rng.randint(1, 60), self.rng.randint(1, 2000)])
        step = self.rng.choice([max(1, largest // depth), max(1, largest * self.T.k // depth), self.rng.randint(1, 2 * largest)])
        offsets = self.rng.choice([[0] * self.T.k, [self.rng.randint(0, 255) for _ in range(self.T.k)]])
        return {"step": min(step, checker.LARGE), "offsets": offsets, "depth": depth}


@pytest.fixture(params=SEEDS, ids=str)
def case(request):
    return Case(request.param)


def test_check_cubic(case):
    assert checker.check_cubic(case.T, {}) <= sum(case.right.values())


def test_check_gaps(case):
    """One gap at a time: what it claims is exactly what is counted, and true."""
    T = case.T
    gaps = [[[0] * T.k for _ in range(m + 1)] for m in range(T.v)]
    for m in range(T.v):
        for q, c, gap in product(range(m + 1), range(T.k), range(1, m + 2)):
            gaps[m][q][c] = gap
            meant = [
                x
                for x in case.right
                if max(x) == m and x[-1] == q and sum(t != m for t in x) == c and all(t in (m, *range(m - gap + 1)) for t in x)
            ]
            try:
                found = checker.check_gaps(T, {"gaps": gaps})
                assert found == 0 or (found == len(meant) and all(case.right[x] for x in meant))
            except checker.RejectedError as error:
                assert "outside its range" in str(error)  # noqa: PT017
            gaps[m][q][c] = 0


def test_check_pools(case):
    T, rng = case.T, case.rng
    for _ in range(3):
        grid = rng.choice([0, 32, 256])
        mu, nu = ([rng.choice([0, rng.randint(-1 << grid, 1 << grid)]) for _ in range(T.out)] for _ in range(2))
        labels, truth, lowered = [], 0, rng.random() < 0.3
        for m in range(T.v):
            w = rng.choice([[1] * T.out, [case.integer() for _ in range(T.out)]])

            def harm(values, m=m, w=w, up=T.scale - grid):
                return -(-max((w[o] * (values[o] - values[m]) for o in range(T.out) if o != m), default=0) >> up)

            move = [(a + b) << T.scale - grid for a, b in zip(mu, nu, strict=True)]
            r = [harm([x + y for x, y in zip(row, move, strict=True)]) for row in T.EVOU[: m + 1]]
            p = [harm([x - (y << T.scale - grid) for x, y in zip(row, nu, strict=True)]) for row in T.PVOU]
            s = [harm([x - (y << T.scale - grid) for x, y in zip(row, mu, strict=True)]) for row in T.EU[: m + 1]]
            waiting, pools = rng.sample(range(m + 1), m + 1), []
            while waiting:
                size = rng.choice([1, 2, len(waiting)])
                queries, waiting = sorted(waiting[:size]), waiting[size:]
                scales = [[case.integer() for _ in queries] for _ in range(2)]
                own = [s[q] for q in queries]
                harms = checker.pool_harms(T, m, queries, *scales, r, p, own)
                shift, order = case.shift(harms), case.order(m)
                classes = {"order": order, "classes": [case.steps(harms, shift) for _ in range(len(order) + 1)]}
                if rng.random() < 0.8:
                    counting = {"shift": shift, "by_class": classes}
                    pools.append(dict(zip(POOL, (queries, *scales, own, counting), strict=True)))
                    truth += case.number(m, queries)
            labels.append({"weights": w, "token_harms": r, "position_harms": p, "pools": pools})
        witness = {"grid": grid, "direct_centre": mu, "position_centre": nu, "labels": labels}
        if lowered and T.out > 1:
            harms = labels[rng.randrange(T.v)][rng.choice(["token_harms", "position_harms"])]
            harms[rng.randrange(len(harms))] -= 1
            with pytest.raises(checker.RejectedError, match="is too small"):
                checker.check_pools(T, witness)
        else:
            assert checker.check_pools(T, witness) <= truth


POOL = ("queries", "token_scales", "position_scales", "query_harms", "counting")


def random_terms(case, pair, outputs, shift):
    rng, terms, covered = case.rng, [], set()
    waiting = rng.sample(outputs, len(outputs))[: rng.choice([len(outputs), len(outputs), rng.randint(0, len(outputs))])]
    while waiting:
        if covered and rng.random() < 0.5:
            term = {
                "apart": waiting.pop(),
                "less": rng.choice(sorted(covered)),
                "factors": [case.integer(), rng.choice([0, case.integer()])],
            }
        else:
            size = rng.choice([1, 2, len(waiting)])
            joint, waiting = sorted(waiting[:size]), waiting[size:]
            term = {"joint": joint, "weights": [case.integer() for _ in joint]}
        harms = checker.term_harms(pair, {**term, "steps": None}, covered, "")
        terms.append({**term, "steps": case.steps(harms, shift)})
    return terms


def pair_cases(case):
    for m in range(case.T.v):
        for q in range(m + 1):
            others = [o for o in range(case.T.out) if o != m]
            if others:
                yield m, q, checker.Pair(case.T, m, q, case.T.worst_position(m)), others


def with_list(rule, T, witness, name, sequences, truth):
    """The count, and then the counts with every sequence that the rule lets us list: none may exceed the truth."""
    pair = witness["pairs"][0]
    try:
        assert rule(T, witness) <= truth
    except checker.RejectedError as error:
        assert "no term covers it" in str(error)  # noqa: PT017
        return
    for x in sequences:
        pair[name].append(list(x[:-1]))
        try:
            assert rule(T, witness) <= truth
        except checker.RejectedError:
            pair[name].pop()


def test_check_pairs(case):
    for m, q, pair, others in pair_cases(case):
        shift, order = case.shift(pair.terms(others[0], up=True)), case.order(m)
        classes = [random_terms(case, pair, others, shift) for _ in range(len(order) + 1)]
        witness = {"pairs": [{"label": m, "query": q, "shift": shift, "by_class": {"order": order, "classes": classes}, "right": []}]}
        sequences = sorted(x for x in case.right if max(x) == m and x[-1] == q)
        with_list(checker.check_pairs, case.T, witness, "right", sequences, case.number(m, [q]))


def test_check_failures(case):
    for m, q, pair, others in pair_cases(case):
        shift, order = case.shift(pair.terms(others[0], up=False)), case.order(m)
        classes = []
        for _ in range(len(order) + 1):
            o = case.rng.choice(others)
            steps = case.steps(pair.terms(o, up=False), shift)
            classes.append(case.rng.choice([None, {"output": o, "steps": steps}, {"output": o, "steps": steps}]))
        witness = {"pairs": [{"label": m, "query": q, "shift": shift, "by_class": {"order": order, "classes": classes}, "wrong": []}]}
        sequences = sorted(x for x in case.right if max(x) == m and x[-1] == q)
        with_list(checker.check_failures, case.T, witness, "wrong", sequences, case.number(m, [q], right=False))


def handmade(EQKE, EVOU, EQKP):
    v, k = len(EQKE), len(EQKP[0])
    weights = weights_from_tables(EQKE, EQKP, EVOU, np.zeros((k, v)), np.zeros((v, v)))
    return weights, checker.tables(network(weights), checker.REAL)


def test_a_gap_includes_the_nearest_token():
    """Token 1 spoils label 2, token 0 does not: gap 1 claims too much, gap 2 is right."""
    weights, T = handmade(np.zeros((3, 3)), [[0, 0, 0], [10, 0, 0], [0, 0, 1]], np.zeros((3, 2)))
    assert oracle.is_correct(weights, (0, 2), 2) and not oracle.is_correct(weights, (1, 2), 2)
    for gap, count in ((1, 0), (2, 1)):
        gaps = [[[0, 0]], [[0, 0]] * 2, [[0, 0], [0, 0], [0, gap]]]
        assert checker.check_gaps(T, {"gaps": gaps}) == count


def test_a_gap_needs_both_ends():
    """The label's own token hurts and the other one helps: the sequence with little attention to the other one is wrong."""
    weights, T = handmade(np.zeros((2, 2)), [[0, 3], [1, 0]], [[3, -3, 0]] * 2)
    assert oracle.is_correct(weights, (0, 1, 1), 1) and not oracle.is_correct(weights, (1, 0, 1), 1)
    assert checker.check_gaps(T, {"gaps": [[[0, 0, 0]], [[0, 0, 0], [0, 1, 0]]]}) == 0


def test_a_pool_takes_the_least_attention_where_tokens_help():
    """Query 0 hardly attends to the label, query 1 does: together they prove no more than query 0's worst."""
    weights, T = handmade([[0, -3], [-3, 0]], [[0.5, 0], [0, 1]], np.zeros((2, 2)))
    assert not oracle.is_correct(weights, (1, 0), 1) and oracle.is_correct(weights, (1, 1), 1)
    up = T.scale - 4
    harms = {"token_harms": [8, -16], "position_harms": [0, 0]}  # over 2^4: half, and minus one
    exact = checker.pool_harms(T, 1, [0, 1], [1, 1], [1, 1], [8, -16], [0, 0], [0, 0])
    shift = max(x.bit_length() for row in exact for x in row.values()) - 20
    steps = {"step": 1, "offsets": [0, 0], "depth": 1 << 22}
    counting = {"shift": shift, "by_class": {"order": [], "classes": [steps]}}
    pool = dict(zip(POOL, ([0, 1], [1, 1], [1, 1], [0, 0], counting), strict=True))
    labels = [{"weights": [1, 1], "token_harms": [0], "position_harms": [0, 0], "pools": []}, {"weights": [1, 1], **harms, "pools": [pool]}]
    witness = {"grid": 4, "direct_centre": [0, 0], "position_centre": [0, 0], "labels": labels}
    assert checker.check_pools(T, witness) <= sum(oracle.is_correct(weights, x, 1) for x in ((1, 0), (0, 1), (1, 1)))
    labels[1]["pools"] = [dict(pool, queries=[1], token_scales=[1], position_scales=[1], query_harms=[0])]
    assert checker.check_pools(T, witness) == 2 and up > 0


def test_harmless_outputs_cannot_win(case):
    """By sums of lower bounds over all sequences, of a class or of all of them."""
    for m, q, pair, others in pair_cases(case):
        sequences = [x for x in case.right if max(x) == m and x[-1] == q]
        order = case.order(m)
        gone, wanted = set(order[1:]), {m, *order[:1]}
        for o in others:
            sums = {x: sum(pair.term(o, i, t, up=False) for i, t in enumerate(x)) for x in sequences}
            assert not pair.is_harmless(o) or all(total < 0 for total in sums.values())
            inside = [x for x in sequences if wanted <= set(x) and not gone & set(x)]
            found = pair.is_harmless_in(o, gone, wanted)
            assert not found or all(sums[x] < 0 for x in inside)
            assert found or any(sum(pair.term(o, i, t, up=True) for i, t in enumerate(x)) >= 0 for x in inside)


def test_attention_too_small_to_resolve_proves_nothing():
    """Both terms are below every bit that is kept; the larger one, which spoils the sequence, must not be taken for zero."""
    EQKE = [[0, 0, 0], [0, 0, 0], [-5000, -6000, 0]]
    weights, T = handmade(EQKE, [[1, 0, 0], [0, 0, 1], [0, 0, 0]], [[0, 0, 0]] * 3)
    assert T.A_low[2][:2] == [0, 0] and T.A_high[2][:2] == [1, 1]
    assert not oracle.is_correct(weights, (0, 1, 2), 2)
    pair = checker.Pair(T, 2, 2, T.worst_position(2))
    assert not pair.is_right([0, 1, 2], [0, 1]) and not pair.is_wrong([0, 1, 2])
    assert pair.term(0, 0, 0, up=True) > 0 == pair.term(0, 0, 0, up=False)
    assert pair.term(0, 1, 1, up=False) < 0 == pair.term(0, 1, 1, up=True)
