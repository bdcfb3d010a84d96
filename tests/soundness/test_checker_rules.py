"""The checker's rule with parts from nowhere: whatever it returns is true, by brute force.

Parts are made up at random, not found by a search: queries, orders, terms, weights, factors, steps, offsets, depths and lists, about the
maximum and other tasks, with all sequences alike or with masses. What the checker does not reject must bound the truth.
"""

import random
from functools import cache
from itertools import product
from math import prod

import numpy as np
import pytest

import oracle
from compactproofs import checker
from compactproofs.certificates.checking import network
from compactproofs.certificates.encode import encoded_question
from compactproofs.tasks import MaxOfK
from compactproofs.tasks.question import Question
from models import random_weights, weights_from_tables
from tasks import KINDS, Named
from trees import json_chain, json_leaves, json_part, leaf_of

SEEDS = range(72)
TASKS = ("max", "max", *KINDS)
REFUSALS = ("no term covers it", "no earlier term covers that")
"""Why a part that has no list may be rejected"""


def structured(seed, v, k, out):
    """Networks with ties and with saturated attention, and plain random ones."""
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        return random_weights(seed, n_ctx=k, d_vocab=v, d_vocab_out=out, scale=float(rng.choice([0.3, 1.0, 3.0])))
    grow = float(rng.choice([0, 1, 3]))
    whole = rng.integers(-2, 3, size=(5, 8, 8)).astype(float)
    return weights_from_tables(
        EQKE=whole[0, :v, :v] * float(rng.choice([0, 1, 40, 3000])) + grow * np.arange(v),
        EQKP=whole[1, :v, :k] * float(rng.choice([0, 1])),
        EVOU=whole[2, :v, :out] + 3 * np.eye(v, out),
        PVOU=whole[3, :k, :out] * (seed % 2),
        EU=whole[4, :v, :out],
    )


@cache
def truth_of(seed):
    """A model, a question, and the sequences that are right."""
    rng = random.Random(seed)
    v, k, kind = rng.randint(1, 4), rng.randint(1, 4), TASKS[seed % len(TASKS)]
    task = MaxOfK(k, v) if kind == "max" else Named(kind, k, v)
    weights = structured(seed, v, k, max(task.automaton.labels.max() + 1, v) + rng.randint(0, 1))
    masses = None
    if rng.random() < 0.5:
        largest = rng.choice([2, 9, 1 << 38])
        masses = np.array([[rng.randint(0, largest) for _ in range(v)] for _ in range(k)])
        masses[:, rng.randrange(v)] += 1
    sequences = list(product(range(v), repeat=k))
    labels = dict(zip(sequences, task.automaton.label(np.array(sequences)).tolist(), strict=True))
    right = {x for x in sequences if oracle.is_correct(weights, x, labels[x])}
    return weights, Question(task, masses), labels, right


class Case:
    """A model, the checker's tables for random hints, and the truth about every sequence."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        weights, asked, self.labels, self.right = truth_of(seed)
        self.raw, self.written = network(weights), encoded_question(asked)
        self.question = checker.read_question(self.written, weights.d_vocab, weights.n_ctx, checker.Meter())
        self.hints = self.random_hints(self.raw.sizes())
        self.factors = checker.read_factors(self.hints, self.raw.sizes())
        self.T = self.widened(checker.tables(self.raw, self.question, self.factors, checker.Meter(checker.NO_LIMIT)))

    def widened(self, T):
        """Attention is known exactly, or only roughly."""
        rough = self.rng.choice([0, 0, 1 << T.bits - 6, 1 << T.bits - 2])
        A_low, b_low = ([[max(0, x - self.rng.randint(0, rough)) for x in row] for row in rows] for rows in (T.A_low, T.b_low))
        A_high, b_high = ([[x + self.rng.randint(0, rough) for x in row] for row in rows] for rows in (T.A_high, T.b_high))
        return T._replace(A_low=A_low, A_high=A_high, b_low=b_low, b_high=b_high)

    def mass(self, sequences):
        return sum(prod(row[t] for row, t in zip(self.question.masses, x, strict=True)) for x in sequences)

    def sequences(self, m, queries):
        return [x for x, label in self.labels.items() if label == m and x[-1] in queries]

    def integer(self):
        return self.rng.choice([1, 1, 2, self.rng.randint(1, 10), self.rng.randint(1, 1 << 40)])

    def vector(self, length):
        scale = self.rng.choice([0, 8, 256])
        return {"scale": scale, "entries": [self.rng.choice([0, self.rng.randint(-2 << scale, 2 << scale)]) for _ in range(length)]}

    def random_hints(self, sizes):
        v, out = sizes["d_vocab"], sizes["d_vocab_out"]
        labels = [
            {
                "label": m,
                "relative_to": self.rng.choice([None, self.rng.randrange(v), self.rng.randrange(v)]),
                "weights": self.rng.choice([None, None, [self.integer() for _ in range(out)]]),
            }
            for m in range(out)
        ]
        mu = self.rng.choice([{"scale": 0, "entries": [0] * out}, self.vector(out)])
        return {"centre": self.vector(sizes["d_model"]), "mu": mu, "labels": labels}

    def grid(self, harms, scale):
        """A step that suits the harms, or is so simple that nothing is rounded, or any; few digits or many."""
        if self.rng.random() < 0.2:
            return {"step": [1, self.rng.randint(-3, 0)], "depth": 2000, "offsets": [0] * self.T.k}
        bits = max(abs(x).bit_length() for row in harms for x in row.values()) - scale
        depth = self.rng.choice([1, 2, self.rng.randint(1, 60), self.rng.randint(1, 2000)])
        mantissa = self.rng.choice([1, self.rng.randint(1, 256), self.rng.randint(1, 1 << 16)])
        fitting = bits - depth.bit_length() - mantissa.bit_length() + self.rng.randint(0, 3)
        exponent = self.rng.choice([fitting, fitting, fitting, self.rng.randint(-60, 60), self.rng.choice([-(1 << 16), 1 << 16])])
        offsets = self.rng.choice([[0] * self.T.k, [self.rng.randint(0, 255) for _ in range(self.T.k)]])
        return {"step": [mantissa, min(max(exponent, -(1 << 16)), 1 << 16)], "depth": depth, "offsets": offsets}

    def parts(self):
        """Labels, and partitions of their queries into sets, each with an order of classes; some are left out."""
        for m, automaton in self.question.automata.items():
            tokens = automaton.tokens
            waiting = self.rng.sample(tokens, len(tokens))
            while waiting:
                size = self.rng.choice([1, 1, 2, len(waiting)])
                queries, waiting = waiting[:size], waiting[size:]
                if self.rng.random() < 0.9:
                    order = self.rng.sample(tokens, self.rng.choice([0, 0, min(1, len(tokens)), len(tokens)]))
                    yield m, queries, order

    def pair(self, m, q):
        return checker.Pair(self.label(m), q)

    def label(self, m):
        return checker.Label(self.T, self.question.automata[m], m)

    def harms(self, pair, term):
        """Of a term without a grid, all outputs but the label being covered."""
        written = {**term, "step": [1, 0], "depth": 1, "offsets": [0] * self.T.k}
        covered = {o for o in range(self.T.out) if o != pair.label.m}
        return pair.harms(checker.read_term(written, self.T, pair.label.m, covered, checker.KINDS["lower"], ""))

    def lower_part(self, m, queries, order):
        factored = self.rng.random() < 0.3
        leaves = [self.factored_leaf(m, queries) if factored else self.leaf(self.pair(m, queries[0])) for _ in range(len(order) + 1)]
        return json_part(m, queries, json_chain(order, leaves))

    def upper_part(self, m, queries, order):
        pair, leaves = self.pair(m, queries[0]), []
        others = [o for o in range(self.T.out) if o != m]
        for _ in range(len(order) + 1):
            o = self.rng.choice([*others, None])
            spoilers = [] if o is None else [{"spoiler": o, **self.grid(pair.terms(o, up=False), self.T.scale + 2 * self.T.bits)}]
            if o is not None and self.rng.random() < 0.4:
                factors = [self.rng.choice([1, 2, self.rng.randrange(1, 1 << 20)]) for _ in range(2)]
                two = {"spoilers": [o, self.rng.choice(others)], "factors": factors}
                spoilers = [{**two, **self.grid(pair.terms(o, up=False), self.T.scale + 2 * self.T.bits)}]
            elif o is not None and self.rng.random() < 0.5:
                spoilers = self.several_spoilers(pair, others)
            leaves.append(self.rng.choice([None, *[{"terms": spoilers, "listed": []}] * 4]))
        return json_part(m, queries, json_chain(order, leaves))

    def several_spoilers(self, pair, others):
        named, scale = self.rng.sample(others, min(len(others), self.rng.choice([2, 2, 3]))), self.T.scale + 2 * self.T.bits
        spoilers = [{"spoiler": o, **self.grid(pair.terms(o, up=False), scale)} for o in named]
        overlaps = []
        for x, o in enumerate(named):
            cut = self.rng.randint(0, x)
            for group in filter(None, (named[:cut], named[cut:x])):
                some = group + self.rng.choice([[], [self.rng.choice(others)]])
                two = ({"joint": [o], "weights": [1]}, {"joint": some, "weights": [self.integer() for _ in some]})
                overlaps.append({"both": [self.on_a_grid(pair, each) for each in two], "reach": self.reach()})
        return spoilers + self.rng.sample(overlaps, len(overlaps))

    def reach(self):
        return self.rng.choice([1, 2, 7, 60, 300])

    def factored_leaf(self, m, queries):
        harms = checker.pooled(self.label(m), queries)
        terms = [{"factored": True, **self.grid(harms, self.T.scale + 2 * self.T.bits)} for _ in range(self.rng.choice([1, 1, 1, 2]))]
        return self.rng.choice([None, *[{"terms": terms, "listed": []}] * 5])

    def leaf(self, pair):
        """Terms that cover all outputs, or all but some."""
        rng, terms, covered = self.rng, [], set()
        others = [o for o in range(self.T.out) if o != pair.label.m]
        waiting = rng.sample(others, len(others))[: rng.choice([len(others), len(others), rng.randint(0, len(others))])]
        while waiting:
            if covered and rng.random() < 0.7:
                o = waiting.pop()
                some = [self.about(pair, o, others, covered) for _ in range(2)]
                terms.append({"both": some, "reach": self.reach()} if rng.random() < 0.6 else some[0])
                covered.add(o)
            else:
                size = rng.choice([1, 2, len(waiting)])
                joint, waiting = waiting[:size], waiting[size:]
                terms.append(self.on_a_grid(pair, {"joint": joint, "weights": [self.integer() for _ in joint]}))
                covered.update(joint)
        return rng.choice([None, *[{"terms": terms, "listed": []}] * 5])

    def about(self, pair, o, others, covered):
        """A term that covers an output, and perhaps others."""
        if self.rng.random() < 0.3:
            joint = self.rng.choice([[o], [o, self.rng.choice(others)]])
            return self.on_a_grid(pair, {"joint": joint, "weights": [self.integer() for _ in joint]})
        less = self.rng.choice(sorted(covered) if self.rng.random() < 0.95 else others)
        factors = [self.rng.choice([0, self.integer()]) for _ in range(2)]
        return self.on_a_grid(pair, {"apart": o, "less": less, "factors": factors})

    def on_a_grid(self, pair, term):
        return {**term, **self.grid(self.harms(pair, term), self.T.scale + 2 * self.T.bits)}

    def is_readable(self, part, side):
        try:
            return bool(list(checker.read_parts([part], self.T, self.question, side)))
        except checker.RejectedError as error:
            assert any(words in str(error) for words in REFUSALS)  # noqa: PT017
            return False

    def failing(self, part):
        (read,) = checker.read_parts([part], self.T, self.question, "lower")
        return checker.failing(self.T, read)

    def may_be_right(self, part):
        (read,) = checker.read_parts([part], self.T, self.question, "upper")
        return checker.right(self.T, read)


@pytest.fixture(params=SEEDS, ids=str)
def case(request):
    return Case(request.param)


def with_list(case, part, bound, truth):
    """The count, and then the counts with every sequence that the checker lets us list: none may be below the truth.

    Returns how many could be listed; None if the part was rejected without any.
    """
    try:
        assert bound(part) >= truth
    except checker.RejectedError as error:
        assert any(words in str(error) for words in REFUSALS)  # noqa: PT017
        return None
    listed = 0
    for x in case.rng.sample(sorted(case.labels), len(case.labels)):
        leaf = case.rng.choice(list(json_leaves(part)) or [None])
        leaf = leaf_of(part, x) if case.rng.random() < 0.8 else leaf
        if leaf is None:
            continue
        leaf["listed"] += [list(x)] * case.rng.choice([1, 1, 1, 2])
        try:
            assert bound(part) >= truth
            listed += 1
        except (checker.RejectedError, checker.MalformedError) as error:
            assert "listed" in str(error) or "is not certainly" in str(error)  # noqa: PT017
            leaf["listed"] = [y for y in leaf["listed"] if y != list(x)]
    return listed


def test_failing(case):
    for m, queries, order in case.parts():
        truth = case.mass(x for x in case.sequences(m, queries) if x not in case.right)
        with_list(case, case.lower_part(m, queries, order), case.failing, truth)


def test_right(case):
    for m, queries, order in case.parts():
        truth = case.mass(x for x in case.sequences(m, queries) if x in case.right)
        with_list(case, case.upper_part(m, queries, order), case.may_be_right, truth)


def test_proven(case):
    """All parts together, as a certificate has them."""
    lower, upper = [case.lower_part(*part) for part in case.parts()], [case.upper_part(*part) for part in case.parts()]
    content = {"question": case.written, "factors": case.hints, "lower": lower, "upper": upper}
    while True:
        try:
            at_least, at_most, question = checker.proven(content, case.raw, checker.NO_LIMIT)
            break
        except checker.RejectedError as error:
            assert any(words in str(error) for words in REFUSALS)  # noqa: PT017
            del lower[int(str(error).partition("lower[")[2].partition("]")[0])]
    assert at_least <= case.mass(case.right) <= at_most <= case.mass(case.labels) == prod(map(sum, question.masses))


def test_terms_bound_what_they_cover(case):
    """Whatever attention is within its bounds."""
    T = case.T
    for m, automaton in case.question.automata.items():
        for q in automaton.tokens:
            others = [o for o in range(T.out) if o != m]
            pair, leaf = case.pair(m, q), case.leaf(case.pair(m, q))
            for term in (part for each in (leaf or {"terms": []})["terms"] for part in each.get("both", [each])):
                harms = case.harms(pair, {name: x for name, x in term.items() if name not in FINE})
                sums = [{o: w} for o, w in zip(term["joint"], term["weights"], strict=True)] if "joint" in term else []
                if "apart" in term and term["apart"] != term["less"]:
                    sums = [{term["apart"]: term["factors"][0], term["less"]: -term["factors"][1]}]
                for i, row in enumerate(harms):
                    for t, harm in row.items():
                        known = {o: T.EVOU[t][o] + T.PVOU[i][o] + T.EU[q][o] for o in (m, *others)}
                        gains = [sum(w * (known[o] - known[m]) for o, w in each.items()) for each in sums]
                        ends = product((T.A_low[q][t], T.A_high[q][t]), (T.b_low[q][i], T.b_high[q][i]))
                        assert all(harm >= a * b * gain for (a, b), gain in product(ends, gains))


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_no_query_is_in_two_parts(case, side):
    make = {"lower": case.lower_part, "upper": case.upper_part}[side]
    parts = [part for part in (make(*part) for part in case.parts()) if case.is_readable(part, side)]
    if parts:
        again = case.rng.choice(parts)
        queries = case.rng.sample(again["queries"], case.rng.randint(1, len(again["queries"])))
        content = {"question": case.written, "factors": case.hints, "lower": [], "upper": []}
        content[side] = [*parts, {**again, "queries": queries}]
        with pytest.raises(checker.RejectedError, match="is in two parts"):
            list(checker.read_parts(content[side], case.T, case.question, side))
        with pytest.raises(checker.RejectedError):
            checker.proven(content, case.raw, checker.NO_LIMIT)


def test_pooled_harms_bound_all_outputs_of_all_queries(case):
    """Up to a positive factor for each query, which is the attention to a token and to positions."""
    T, bits = case.T, case.T.bits
    for m, automaton in case.question.automata.items():
        tokens, (relative_to, weights) = automaton.tokens, case.factors.labels[m]
        queries = case.rng.sample(tokens, case.rng.randint(1, len(tokens)))
        for pool in [[q] for q in queries] if relative_to is None else [queries]:
            harms = checker.pooled(case.label(m), pool)
            for q, o in product(pool, range(T.out)):
                if o == m:
                    continue
                scale = T.tops[q] * (1 << bits if relative_to is None else (1 << 2 * bits) // max(T.A_high[q][relative_to], 1))
                for row, least in zip(harms, case.pair(m, q).terms(o, up=False), strict=True):
                    assert all(row[t] << 2 * bits >= weights[o] * x * scale for t, x in least.items())


def test_parts_from_nowhere_prove_something():
    """Else the tests above would say nothing: bounds below the whole, above the truth, lists that are accepted and parts that are not."""
    found = {"less than all fails": 0, "less than all is right": 0, "listed": 0, "rejected": 0}
    for seed in SEEDS[:48]:
        case = Case(seed)
        for m, queries, order in case.parts():
            whole = case.mass(case.sequences(m, queries))
            lower, upper = case.lower_part(m, queries, order), case.upper_part(m, queries, order)
            listed = with_list(case, lower, case.failing, 0)
            found["rejected"] += listed is None
            found["listed"] += listed or 0
            found["less than all fails"] += listed is not None and case.failing(lower) < whole
            found["less than all is right"] += case.may_be_right(upper) < whole
    assert min(found.values()) >= 5, found


def test_harmless_outputs_cannot_win(case):
    """A walk finds the largest sum of upper bounds; over all sequences, and over those of a leaf."""
    for m, automaton in case.question.automata.items():
        for q, o in product(automaton.tokens, range(case.T.out)):
            if o == m:
                continue
            pair, sequences = case.pair(m, q), case.sequences(m, [q])
            harmful = pair.harmful(0, case.T.out - 1)  # there is an output beside the label
            place = o - (o > m)
            assert (o in harmful) == bool(pair.harmful(place, place + 1))  # several at once find what each finds by itself
            sums = {x: tuple(checker.along(pair.terms(o, up), list(x)) for up in (False, True)) for x in sequences}
            assert o in harmful or all(low < 0 for low, _ in sums.values())
            for inside in some_splits(case, automaton):
                found = pair.is_harmless_in(o, inside)
                assert found == all(high < 0 for x, (_, high) in sums.items() if inside.accepts(list(x)) and case.mass([x]))


def some_splits(case, automaton):
    """The leaves of a random tree."""
    leaves = [automaton]
    for _ in range(case.rng.randint(0, 3)):
        split = leaves.pop(case.rng.randrange(len(leaves)))
        token, n = case.rng.choice(automaton.tokens), case.rng.randint(1, case.T.k)
        leaves += [split.split(token, n, False), split.split(token, n, True)]
    return leaves


def test_every_sequence_is_of_one_label_and_one_leaf(case):
    for x, label in case.labels.items():
        accepting = [m for m, automaton in case.question.automata.items() if automaton.accepts(list(x))]
        assert accepting == [label]
        automaton = case.question.automata[label]
        assert sum(leaf.accepts(list(x)) for leaf in some_splits(case, automaton)) == 1


def test_the_masses_of_parts_are_those_of_their_sequences(case):
    for m, automaton in case.question.automata.items():
        tokens = automaton.tokens
        queries = case.rng.sample(tokens, case.rng.randint(1, len(tokens)))
        mass = checker.mass_by_query(automaton, case.question.masses, checker.Meter())
        assert sum(mass[q] for q in queries) == case.mass(case.sequences(m, queries))


def handmade(EQKE, EVOU, EQKP):
    v, k = len(EQKE), len(EQKP[0])
    weights = weights_from_tables(EQKE, EQKP, EVOU, np.zeros((k, v)), np.zeros((v, v)))
    question = checker.read_question(encoded_question(Question(MaxOfK(k, v))), v, k, checker.Meter())
    raw = network(weights)
    nothing = checker.read_factors(None, raw.sizes())
    return weights, question, checker.tables(raw, question, nothing, checker.Meter())


def handmade_factors(weights, labels):
    centre, mu = ({"scale": 0, "entries": [0] * length} for length in (weights.d_model, weights.d_vocab_out))
    return checker.read_factors({"centre": centre, "mu": mu, "labels": labels}, network(weights).sizes())


FINE = {"step": [1, -16], "depth": 1 << 22, "offsets": [0, 0]}
WHOLE = {"step": [1, -1], "depth": 1 << 12, "offsets": [0, 0]}


def test_a_pool_takes_the_least_attention_where_tokens_help():
    """Query 0 hardly attends to the label, query 1 does: together they prove no more than query 0's worst."""
    weights, question, T = handmade([[0, -3], [-3, 0]], [[0.5, 0], [0, 1]], np.zeros((2, 2)))
    assert not oracle.is_correct(weights, (1, 0), 1) and oracle.is_correct(weights, (1, 1), 1)
    T = T._replace(factors=handmade_factors(weights, [{"label": 1, "relative_to": 0, "weights": [1, 1]}]))

    def failing(queries):
        term = {"factored": True, **FINE}
        part = json_part(1, queries, {"terms": [term], "listed": []})
        (read,) = checker.read_parts([part], T, question, "lower")
        return checker.failing(T, read)

    wrong = [x for x in ((1, 0), (0, 1), (1, 1)) if not oracle.is_correct(weights, x, 1)]
    assert failing([1]) == 0 and failing([0, 1]) >= failing([0]) == len(wrong) == 1
    label = checker.Label(T, question.automata[1], 1)
    assert label.tokens == [0, 1]
    together = checker.pooled(label, [0, 1])
    for q in (0, 1):
        alone = checker.pooled(label, [q])
        assert all(together[0][t] >= alone[0][t] for t in (0, 1)) and together[1][q] == alone[1][q]


def test_factored_terms_need_factors_of_their_label():
    weights, question, T = handmade([[0, -3], [-3, 0]], [[0.5, 0], [0, 1]], np.zeros((2, 2)))
    part = json_part(1, [1], {"terms": [{"factored": True, **FINE}], "listed": []})
    for factors in (checker.read_factors(None, network(weights).sizes()), handmade_factors(weights, [])):
        with pytest.raises(checker.RejectedError, match="label 1 has a factored term, but no factors"):
            list(checker.read_parts([part], T._replace(factors=factors), question, "lower"))


def test_terms_of_one_output_take_off_only_what_was_counted():
    """Output 1 spoils the sequence, output 0 does not: taken off before it is counted, or not at all, it would be lost."""
    weights, question, T = handmade(np.zeros((3, 3)), [[1, 3, 0], [0, 0, 0], [0, 0, 2]], [[0, 0]] * 3)
    assert not oracle.is_correct(weights, (0, 2), 2) and oracle.is_correct(weights, (2, 2), 2)
    less = {"apart": 0, "less": 1, "factors": [2, 1], **FINE}
    joint = {"joint": [1], "weights": [1], **FINE}

    def failing(*terms):
        part = json_part(2, [2], {"terms": list(terms), "listed": []})
        (read,) = checker.read_parts([part], T, question, "lower")
        return checker.failing(T, read)

    assert failing(joint, less) == failing(joint) == 1
    with pytest.raises(checker.RejectedError, match="no earlier term covers that"):
        failing(less, joint)
    with pytest.raises(checker.RejectedError, match="output 1 might win, and no term covers it"):
        failing()


def two_outputs_that_spoil():
    """Of the sequences (t, 2): output 0 spoils (0, 2), output 1 spoils (1, 2), both (2, 2)."""
    weights, question, T = handmade(np.zeros((3, 3)), [[9, -9, 0], [-9, 9, 0], [3, 3, 2]], [[0, 0]] * 3)
    right = [[oracle.is_correct(weights, x, 2)] for x in ((0, 2), (1, 2), (2, 2))]
    assert not np.any(right)
    return question, T


def test_two_terms_at_once_cover_what_both_cover():
    question, T = two_outputs_that_spoil()
    zero, one = ({"joint": [o], "weights": [1], **WHOLE} for o in (0, 1))

    def failing(*terms):
        part = json_part(2, [2], {"terms": list(terms), "listed": []})
        (read,) = checker.read_parts([part], T, question, "lower")
        return checker.failing(T, read)

    assert failing(zero, {"both": [one, {"apart": 1, "less": 0, "factors": [0, 1], **WHOLE}], "reach": 300}) == 3
    with pytest.raises(checker.RejectedError, match="output 1 might win, and no term covers it"):
        failing(zero, {"both": [zero, one], "reach": 300})
    wider = {"joint": [0, 1], "weights": [1, 1], **WHOLE}
    with pytest.raises(checker.RejectedError, match="output 0 might win, and no term covers it"):
        failing({"both": [wider, one], "reach": 300})
    assert failing(zero, {"both": [wider, one], "reach": 300}) == 3


def test_several_spoilers_need_what_each_spoils_together_with_those_before_it():
    question, T = two_outputs_that_spoil()
    zero, one, wide = ({"joint": o, "weights": [1] * len(o), **WHOLE} for o in ([0], [1], [0, 1]))
    spoilers = [{"spoiler": o, **WHOLE} for o in (0, 1)]

    def right(*terms, listed=()):
        part = json_part(2, [2], {"terms": list(terms), "listed": list(listed)})
        (read,) = checker.read_parts([part], T, question, "upper")
        return checker.right(T, read)

    both = {"both": [one, zero], "reach": 300}
    assert right(*spoilers, both) == 0 and right(spoilers[0]) == right(spoilers[1]) == 1
    assert right(*spoilers, {"both": [one, wide], "reach": 300}) == 1 and right(*spoilers, both, both) == 1
    less = {"apart": 1, "less": 0, "factors": [1, 0], **WHOLE}
    bad = [spoilers, [both], [both, *spoilers], [*spoilers, {"both": [zero, one], "reach": 300}]]
    bad += [[*spoilers, {"both": [wide, zero], "reach": 300}], [*spoilers, {"both": [one, one], "reach": 300}]]
    bad += [
        [*spoilers, {"both": [one, less], "reach": 300}],
        [*spoilers, zero],
        [spoilers[0], spoilers[0], {"both": [zero, zero], "reach": 300}],
    ]
    bad += [[*spoilers, spoilers[1], both, {"both": [one, wide], "reach": 300}], [spoilers[0], both, spoilers[1]]]
    for terms in bad:
        with pytest.raises((checker.RejectedError, checker.MalformedError)):
            right(*terms)
    with pytest.raises(checker.RejectedError, match="listed beside several spoilers"):
        right(*spoilers, both, listed=[[2, 2]])


def test_attention_too_small_to_resolve_proves_nothing():
    """Both terms are below every bit that is kept; the larger one, which spoils the sequence, must not be taken for zero."""
    EQKE = [[0, 0, 0], [0, 0, 0], [-5000, -6000, 0]]
    weights, question, T = handmade(EQKE, [[1, 0, 0], [0, 0, 1], [0, 0, 0]], [[0, 0, 0]] * 3)
    assert T.A_low[2][:2] == [0, 0] and T.A_high[2][:2] == [1, 1]
    assert not oracle.is_correct(weights, (0, 1, 2), 2)
    pair = checker.Pair(checker.Label(T, question.automata[2], 2), 2)
    above, below = pair.terms(0, up=True), pair.terms(0, up=False)
    assert checker.along(below, [0, 1, 2]) < 0 < checker.along(above, [0, 1, 2])
    assert above[0][0] > 0 == below[0][0] and below[1][1] < 0 == above[1][1]
