"""What the checker computes about whole blocks, against every sequence of tiny ones; `module` is the checker, or a wrong one."""

import json
import random
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import floor

import numpy as np
from flint import arb, ctx

import blocks
import network_oracle
from blocks import K, block_of
from compactproofs import checker
from compactproofs.certificates.checking import network as raw_network
from compactproofs.certificates.encode import encoded_question
from compactproofs.model.network import Mlp
from compactproofs.tasks import MaxOfK
from compactproofs.tasks.question import Question

KNOWN = ["MLP", "final LN", "final RMS", "two heads", "three heads", "two heads, final LN", "two heads, MLP"]
"""Kinds of `blocks.KINDS` that the checker knows."""


def heavy(network, factor=64):
    """The same with so much larger numbers behind neurons and norms that their rounding shows."""
    if network.mlp is None:
        return replace(network, b_U=factor * network.b_U)
    mlp = network.mlp
    return replace(network, mlp=Mlp(mlp.W_in, factor * mlp.W_out, mlp.act, mlp.b_in, mlp.b_out))


def whole(seed, **parts):
    """Small whole numbers, so that tables are exact, on a coarse grid, and output 5 is always as good as the label 4."""
    rng, network = np.random.default_rng(seed), block_of(0, **parts)

    def draw(tensor):
        return rng.integers(-2, 3, tensor.shape).astype(np.float32)

    tensors = {name: draw(tensor) for name, tensor in network.tensors.items() if "." not in name}
    tensors["W_U"][:, 5], tensors["b_U"] = tensors["W_U"][:, 4], np.array([-99, -99, -99, -99, 99, 99], np.float32)
    old = network.mlp
    mlp = None if old is None else Mlp(draw(old.W_in), draw(old.W_out), old.act, draw(old.b_in), draw(old.b_out))
    return replace(network, norm_1=None, mlp=mlp, **tensors)


def without_values(network):
    """The same with heads that write nothing: logits are known exactly."""
    return replace(network, W_V=0 * network.W_V, b_V=None)


NETWORKS = {
    **{kind: blocks.tiny_block(1, kind, harder=True) for kind in KNOWN},
    "MLP, heavy": heavy(block_of(2, act="relu")),
    "two heads, MLP, heavy": heavy(block_of(2, heads=2, act="relu")),
    "final LN, heavy, large eps": heavy(block_of(3, final="LN", eps=0.5)),
    "final RMS, heavy, no eps": heavy(block_of(4, final="RMS", eps=0.0)),
    "two heads, final LN, heavy": heavy(block_of(5, heads=2, final="LN", eps=0.25)),
    "two heads, final RMS, heavy": heavy(block_of(6, heads=2, final="RMS", eps=4.0)),
    "whole numbers, final LN": whole(1, final="LN", eps=0.5),
    "whole numbers, two heads, final LN": whole(2, heads=2, final="LN", eps=0.5),
    "whole numbers, MLP": whole(3, act="relu"),
    "whole numbers, two heads, MLP": whole(4, heads=2, act="relu"),
    "whole numbers, no values": without_values(whole(5, heads=2)),
    "whole numbers, no values, final LN": without_values(whole(6, heads=2, final="LN", eps=0.0)),
}
NEARLY = Fraction(1, 1 << 250)  # The truth is known so well.
BITS = (
    {"TABLE_BITS": 9, "LINE_BITS": 5, "NORM_BITS": 24},
    {},
    {"CENTRE_BITS": 0, "LINE_BITS": 2, "NORM_BITS": 12, "TABLE_BITS": 2000},
    {"TABLE_BITS": 4, "CENTRE_BITS": 0},
)
"""Constants of the checker: any are sound, and where numbers are rounded much, a forgotten error shows."""


def number(x):
    """A ball as a number, off by less than 2^-300."""
    mantissa, exponent = x.mid().man_exp()
    exact = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return Fraction(floor(exact * (1 << 320)), 1 << 320)


@cache
def truth(name):
    """[x]: (logits times what makes them comparable, inputs of neurons): times d sigma for LN, sigma for RMS."""
    network, found = NETWORKS[name], {}
    plain = replace(network, norm_final=None, mlp=None)
    stream = replace(plain, W_U=np.eye(blocks.D, dtype=np.float32), b_U=None)
    before = None if network.mlp is None else replace(plain, W_U=network.mlp.W_in, b_U=network.mlp.b_in)
    previous, ctx.prec = ctx.prec, network_oracle.PRECISION
    try:
        for x in blocks.SEQUENCES:
            logits, factor = network_oracle.logits(network, x), arb(1)
            if network.norm_final is not None:
                r, d = network_oracle.logits(stream, x), blocks.D
                if network.norm_final.kind.value == "LN":
                    mean = sum(r, arb(0)) / d
                    r, factor = [y - mean for y in r], arb(d)
                factor *= (sum((y * y for y in r), arb(0)) / d + arb(network.norm_final.eps)).sqrt()
            inputs = [] if before is None else network_oracle.logits(before, x)
            ctx.prec = network_oracle.PRECISION
            found[x] = [number(y * factor) for y in logits], [number(y) for y in inputs]
    finally:
        ctx.prec = previous
    return found


def scene(module, network, m, masses=None):
    """Tables of a network, and the label m."""
    raw, meter = module.Network(*raw_network(network)), module.Meter(module.NO_LIMIT)
    sizes = raw.sizes()
    asked = encoded_question(Question(MaxOfK(network.n_ctx, network.d_vocab), masses))
    question = module.read_question(asked, sizes["d_vocab"], sizes["n_ctx"], meter)
    T = module.block_tables(raw, question, module.read_factors(None, sizes), meter)
    return T, module.Label(T, question.automata[m], m)


def bare(network, lower, claim=0, upper=None, most=None):
    """A certificate of its own about a network, and the verdict on it."""
    raw, question = raw_network(network), Question(MaxOfK(network.n_ctx, network.d_vocab))
    sizes = {name: raw.sizes()[name] for name in ("d_vocab", "d_vocab_out", "d_model", "d_head", "n_ctx")}
    most = most if upper is None else str(question.total if most is None else most)
    content = {
        "format": checker.FORMAT,
        "version": checker.VERSION,
        "producer": "",
        "question": encoded_question(question),
        "model": {**sizes, "score_divisor_squared": raw.divisor, "weights_sha256": raw.sha256(), "assumptions": []},
        "claim": {"correct_at_least": str(claim), "correct_at_most": most, "total": str(question.total)},
        "factors": None,
        "lower": lower,
        "upper": upper,
        "end": checker.FORMAT,
    }
    return content, checker.check(json.dumps(content).encode(), raw)


def leaves(automaton, rng, number=2):
    """The whole of it, and parts."""
    yield automaton
    for _ in range(number):
        part = automaton
        for _ in range(rng.randrange(1, 4)):
            half = part.split(rng.choice(automaton.tokens), rng.randrange(1, 3), rng.random() < 0.5)
            part = half if any(half.accepts(x) for x in blocks.SEQUENCES) else part
        yield part


def some_shares(rng, heads):
    """Shares of heads that add up to at most 1, or, now and then, do not."""
    if heads > 1 and rng.random() < 0.03:
        return [1 << 16] * heads
    cuts = sorted(rng.sample(range(1, 1 << 16), heads)) if rng.random() < 0.7 else [(1 << 16) * (h + 1) // heads for h in range(heads)]
    return [b - a for a, b in zip([0, *cuts], cuts, strict=False)]


def some_hints(rng, T, inputs, margin):
    """The JSON of hints: ranges of neurons are wider than what occurs (`inputs`) by a margin; one of them may be false."""
    heads, neurons, false = len(T.value), [], rng.randrange(len(T.factor) + 4)
    for j, found in enumerate(zip(*inputs, strict=True) if inputs else [[Fraction(-1), Fraction(1)]] * len(T.factor)):
        low, high, tangent = min(found) - margin, max(found) + margin, rng.randrange(2)
        if j == false:
            less = rng.choice([Fraction(1, 1 << 40), Fraction(1, 8)])
            low, high = rng.choice([(min(found) + less, high), (low, max(found) - less), (Fraction(0), high), (low, Fraction(0))])
        if j != false and rng.random() < 0.4:
            neurons.append({"tangent": tangent, "shares": some_shares(rng, heads)})
        elif low >= 0 or high <= 0:
            neurons.append(int(low >= 0))
        else:
            neurons.append({"low": floor(low * 2**60), "high": -floor(-high * 2**60), "scale": 60, "tangent": tangent})
    rows = rng.sample(range(T.k * T.v), rng.randrange(1, 6))
    typical = [rows, *([rng.randrange(1 << 12) for _ in rows] for _ in range(heads))]
    shares = some_shares(rng, heads) if rng.random() < 0.8 else None
    return {"typical": typical if rng.random() < 0.8 else None, "neurons": neurons, "shares": shares}


def at(blend, pair, x):
    """The value of a blend on a sequence, and how much of it is off at most as attention is rounded."""
    (constant, parts), n = blend, len(pair.tokens)
    value, size = Fraction(constant), abs(constant)
    places = [i * n + pair.tokens.index(t) for i, t in enumerate(x[:-1])] + [(pair.T.k - 1) * n]
    for row, (_, high) in zip(parts, pair.attention, strict=True):
        total = sum(high[p] for p in places)
        value += Fraction(sum(high[p] * row[p] for p in places), total)
        size += max(abs(row[p]) for p in places)
    return value, Fraction(size, 1 << 50)


def check_leaf(module, name, T, pair, automaton, rng, margin):
    """Blends and tables of a leaf with some hints are above the truth on all its sequences; accepted ranges are true. Returns whether the
    hints were accepted."""
    m, q, true = pair.label.m, pair.q, truth(name)
    here = [x for x in blocks.SEQUENCES if x[-1] == q and automaton.accepts(x)]
    try:
        hints = module.read_hints(some_hints(rng, T, [true[x][1] for x in here], margin), T, "leaf")
        leaf = module.BlockLeaf(pair, automaton, hints, "leaf")
    except module.RejectedError:
        return False
    for x in here:
        for y, neuron in zip(true[x][1], hints.neurons, strict=True):
            if neuron.shares is None and neuron.fixed is None:
                assert neuron.low <= y * 2**neuron.scale <= neuron.high
            assert neuron.fixed is None or (y >= 0 if neuron.fixed else y <= 0)
    scale = T.scale + module.CENTRE_BITS + T.more
    for o in pair.others:
        for plus, minus in ((o, m), (m, o)):
            blend = leaf.difference(plus, minus)
            table = leaf.weighed(blend)
            for x in here:
                exact = (true[x][0][plus] - true[x][0][minus] - NEARLY) * 2**scale
                value, off = at(blend, pair, x)
                assert value + off >= exact
                if leaf.heads > 1:
                    assert module.along(table, x) >= exact * 2**T.bits
                else:
                    ends = [sum(row[q][i * T.v + t] for i, t in enumerate(x)) for row in (T.low[0], T.high[0])]
                    assert module.along(table, x) >= min(exact * z for z in ends)
    harmless = set(pair.others) - set(leaf.harmful_in(pair.others, automaton))
    assert not any(true[x][0][o] >= true[x][0][m] for x in here for o in harmless)
    check_terms(module, leaf, pair, here, true)
    return True


def check_terms(module, leaf, pair, here, true):
    """Terms count what fails, and what is right."""
    m, grid, outputs = pair.label.m, module.Grid(1, 0, 1, [0] * K), pair.others
    joint = leaf.harms(module.Term("joint", outputs, [1 + o for o in outputs], grid))
    spoilers = {o: leaf.harms(module.Term("spoiler", [o], [], grid)) for o in outputs}
    alone = {o: leaf.harms(module.Term("joint", [o], [1], grid)) for o in outputs}
    apart = {(o, p): leaf.harms(module.Term("apart", [o, p], [2, 3], grid)) for o in outputs for p in outputs if o != p}
    for x in here:
        logits = true[x][0]
        threatening = {o for o in outputs if module.along(alone[o], x) >= 0}
        assert all(o in threatening for o in outputs if logits[o] >= logits[m])
        assert all(module.along(table, x) >= 0 for (o, p), table in apart.items() if o in threatening and p not in threatening)
        assert module.along(joint, x) >= 0 or all(logits[o] < logits[m] for o in outputs)
        assert all(module.along(spoilers[o], x) > 0 for o in outputs if logits[m] > logits[o])


def check_pairs(module, name, seed, bits, rounds=2):
    """Leaves of some pairs, with hints of all sorts; `bits` are constants of the checker. Returns how many hints were accepted."""
    rng, accepted = random.Random(seed), 0
    before = {key: getattr(module, key) for key in bits}
    vars(module).update(bits)
    try:
        for m in (4, 2):
            T, label = scene(module, NETWORKS[name], m)
            off = Fraction((len(T.value) + 1) * T.error, 1 << T.scale)
            for q in rng.sample(label.tokens, 2):
                pair = module.BlockPair(label, q)
                check_logits(module, name, T, pair)
                for automaton in leaves(label.automaton, rng):
                    for _ in range(rounds):
                        margin = rng.choice([Fraction(1, 4), Fraction(2), 2 * off, 20 * off + 1])
                        accepted += check_leaf(module, name, T, pair, automaton, rng, margin)
    finally:
        vars(module).update(before)
    return accepted


def check_logits(module, name, T, pair):
    """Enclosures of logits contain them, and what must be right or wrong is."""
    for x, (exact, _) in truth(name).items():
        if x[-1] == pair.q and pair.label.automaton.accepts(x):
            factor = 2 ** (T.scale + T.bits + T.unit)
            try:
                found = pair.logits(x)
            except module.RejectedError:  # attention is not known well enough
                continue
            ends = [((y - NEARLY) * factor, (y + NEARLY) * factor) for y in exact]
            assert all(low <= most and least <= high for (low, high), (least, most) in zip(found, ends, strict=True))
            right = all(exact[o] < exact[pair.label.m] for o in pair.others)
            for require, met in ((lambda: pair.require_right([], x), right), (lambda: pair.require_wrong(x), not right)):  # noqa: B023
                try:
                    require()
                except module.RejectedError:
                    continue
                assert met


def random_automaton(module, rng, tokens=4):
    """A few states, some moves missing."""
    n = rng.randrange(1, 6)
    moves = [{t: rng.randrange(n) for t in range(tokens) if rng.random() < 0.8} for _ in range(n)]
    return module.Automaton(moves, [rng.random() < 0.5 for _ in range(n)], rng.randrange(n))


def check_walks(module, seed):
    """The largest sums, over all and through each token, of a random automaton with random masses, some of them 0."""
    rng, tokens = random.Random(seed), 4
    automaton, k = random_automaton(module, rng, tokens), rng.randrange(1, 5)
    masses = [[rng.choice([0, 1, 1, 3]) for _ in range(tokens)] for _ in range(k)]
    walks = module.Walks(automaton, masses, module.Meter())
    last = rng.choice([range(tokens), [rng.randrange(tokens)], rng.sample(range(tokens), 2)])
    size, nearly = rng.choice([1, 3, 10**6, 10**30]), rng.random() < 0.5

    def drawn():
        return rng.choice([-1, 1]) * size + rng.randint(-2, 2) if nearly else rng.randint(-size, size)

    harms = [{t: drawn() for t in (range(tokens) if i < k - 1 else last)} for i in range(k)]
    some = [x for x in product(range(tokens), repeat=k) if automaton.accepts(x) and x[-1] in last]
    sums = {x: module.along(harms, x) for x in some if all(row[t] for row, t in zip(masses, x, strict=True))}
    assert walks.largest(harms) < 0 if not sums else (max(sums.values()) <= walks.largest(harms))
    assert not sums or (max(sums.values()) < 0) == (walks.largest(harms) < 0)
    if sums:
        assert max(walks.forward(harms)[-1]) == max(sums.values())
    if walks.size:
        assert walks.packed(harms) == max(sums.values(), default=-1)
    through = walks.through(harms)
    for i, row in enumerate(through):
        expected = {t: max(s for x, s in sums.items() if x[i] == t) for t in {x[i] for x in sums}}
        assert row == expected


def check_everything(module):
    """Until something is false."""
    for seed in range(200):
        check_walks(module, seed)
    for bits in BITS:
        for seed, name in enumerate(NETWORKS):
            check_pairs(module, name, seed, bits)
