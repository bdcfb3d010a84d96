"""The checker's section about whole blocks: bounds against every sequence of tiny blocks, and mistakes that these comparisons find."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import blocks
import compactproofs as cp
import network_oracle
from block_certificates import BITS, KNOWN, NETWORKS, bare, check_pairs, check_walks
from compactproofs import checker
from compactproofs.certificates.checking import network as raw_network
from compactproofs.certificates.encode import encoded_question
from compactproofs.certificates.hints import certifiable_block
from compactproofs.errors import CertificateError
from compactproofs.model.network import Activation, Mlp, Network
from compactproofs.tasks import MaxOfK
from networks import Norm
from thinned import thinned

HINTS = {"typical": None, "neurons": [], "shares": None}


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_walks_are_those_of_enumeration(first):
    for seed in range(first, first + 100):
        check_walks(checker, seed)


@pytest.mark.parametrize("bits", range(len(BITS)))
@pytest.mark.parametrize("name", thinned(NETWORKS))
def test_bounds_are_above_every_sequence(name, bits):
    """Whatever the hints, the leaf, and how many digits are kept. Enough hints are accepted for this to mean something."""
    assert check_pairs(checker, name, bits, BITS[bits]) >= 2


MISTAKES = {
    "logits: ends of shares exchanged": (
        "whole numbers, MLP",
        0,
        "least = [y + z * (a if z > 0 else b)",
        "least = [y + z * (b if z > 0 else a)",
    ),
    "logits: the error of tables forgotten": ("MLP", 0, "off = (heads + 1) * T.error << T.bits", "off = 0"),
    "logits: a neuron's ends exchanged": ("MLP", 0, "(y + c * (a if c > 0 else b), z + c * (b if c > 0 else a))", "(y + c * a, z + c * b)"),
    "logits: the divisor's ends exchanged": (
        "final LN",
        0,
        "(y + c * sigma[c < 0], z + c * sigma[c > 0])",
        "(y + c * sigma[0], z + c * sigma[1])",
    ),
    "logits: a square's least end": ("final RMS, heavy, no eps", 3, "0 if a <= 0 <= b else min(a * a, b * b)", "min(a * a, b * b)"),
    "right though tied": (
        "whole numbers, no values",
        0,
        "logits[o][1] < logits[self.label.m][0]",
        "logits[o][1] <= logits[self.label.m][0]",
    ),
    "wrong by upper ends": ("MLP", 0, "logits[o][0] >= logits[self.label.m][1]", "logits[o][1] >= logits[self.label.m][1]"),
    "bounds: the error of tables forgotten": ("MLP", 0, "self.off = (self.heads + 1) * self.T.error << CENTRE_BITS", "self.off = 0"),
    "bounds: the error of the linear part forgotten": (
        "two heads",
        0,
        "(constant + 2 * self.off << self.T.more)",
        "(constant << self.T.more)",
    ),
    "bounds: the error behind neurons forgotten": ("MLP, heavy", 0, " + 4 * abs(c) * self.off", ""),
    "tables are rounded without an error": ("MLP", 0, "(self.error >> spare) + 2", "self.error >> spare"),
    "ranges without the error": ("MLP", 0, "(constant + self.off, parts), (self.off - constant", "(constant, parts), (-constant"),
    "no range is checked": ("MLP", 0, "for (about, rows), most in ends:", "for (about, rows), most in ():"),
    "ranges are checked above only": (
        "two heads, MLP, heavy",
        0,
        "ends = [(up, neuron.high << grid >> neuron.scale), (down",
        "ends = [(up, neuron.high << grid >> neuron.scale), (up",
    ),
    "a neuron said to be on is not checked": ("MLP", 0, "(down if neuron.fixed else up, 0)", "(down if neuron.fixed else up, 1 << 9999)"),
    "shares: least by the least sum": ("two heads", 0, "(low[x] << bits) // whole if whole > 0", "(low[x] << bits) // rest if rest > 0"),
    "shares: largest by the largest sum": ("two heads", 0, "min(-((-high[x] << bits) // rest)", "min(-((-high[x] << bits) // whole)"),
    "several heads: the larger share everywhere": (
        "two heads",
        0,
        "[x * (b if x > 0 else a) for x, a, b in zip(row, low, high",
        "[x * b for x, a, b in zip(row, low, high",
    ),
    "one head: the larger attention everywhere": (
        "MLP",
        2,
        "[x * (b if x > 0 else a) for x, a, b in zip(moved",
        "[x * b for x, a, b in zip(moved",
    ),
    "one head: the smaller attention everywhere": (
        "MLP",
        2,
        "[x * (b if x > 0 else a) for x, a, b in zip(moved",
        "[x * a for x, a, b in zip(moved",
    ),
    "the constant twice": ("two heads", 0, "flat[-1] += constant << self.T.bits", "flat[-1] += 2 * constant << self.T.bits"),
    "centres are not added": ("two heads", 0, " + sum(middle), parts", ", parts"),
    "a chord through one end": (
        "whole numbers, MLP",
        0,
        "above = max(-slope * neuron.low, ((1 << LINE_BITS) - slope) * neuron.high)",
        "above = -slope * neuron.low",
    ),
    "no chord": ("MLP, heavy", 0, "rest += c * -(-above << T.scale + CENTRE_BITS >> neuron.scale)", "rest += 0"),
    "a curve where a line below belongs": (
        "two heads, MLP",
        0,
        "if neuron.fixed is None and c > 0 and neuron.shares is not None",
        "if neuron.fixed is None and neuron.shares is not None",
    ),
    "shares may add up to more": ("two heads, final LN, heavy", 0, "holds(sum(found) <= 1 << SHARE_BITS", "holds(sum(found) >= 0"),
    "a curve without its share": (
        "two heads, MLP",
        2,
        "max(b * constant + (x << SHARE_BITS), 0)",
        "max((constant << SHARE_BITS) + (x << SHARE_BITS), 0)",
    ),
    "the divisor from the wrong side": ("final LN", 0, "self.divisor[c > 0]", "self.divisor[c < 0]"),
    "no eps": (
        "final LN, heavy, large eps",
        0,
        "isqrt(square // T.wide + (e * share * share << scale >> t + 2 * share_bits) + 2 * up)",
        "isqrt(square // T.wide + 2 * up)",
    ),
    "eps without d": ("final LN, heavy, large eps", 0, "(e * w * w, t)", "(e, t)"),
    "eps without shares": (
        "two heads, final RMS, heavy",
        0,
        "(e * share * share << scale >> t + 2 * share_bits)",
        "(e << scale >> t) * (share < 2)",
    ),
    "a norm without d": ("final LN", 0, "isqrt(square // T.wide", "isqrt(square"),
    "a direction too long, unchecked": (
        "final LN",
        0,
        'holds(T.wide * sum(map(mul, g, g)) <= 1 << 2 * LINE_BITS, "a direction is too long")',
        "g = [2 * x for x in g]",
    ),
    "below rounded upwards": (
        "whole numbers, no values, final LN",
        1,
        "[sum(map(mul, g, place)) >> LINE_BITS for place",
        "[-(-sum(map(mul, g, place)) >> LINE_BITS) + (4 << CENTRE_BITS) for place",
    ),
    "the top is not of the centre": ("final LN", 0, "-((b * top >> SHARE_BITS) - pair.root(", "-((2 * b * top >> SHARE_BITS) - pair.root("),
    "a spoiler's sign": (
        "MLP",
        0,
        "return self.weighed(self.difference(m, term.outputs[0]))",
        "return self.weighed(self.difference(term.outputs[0], m))",
    ),
    "joint terms add up the least": (
        "MLP",
        0,
        "{t: max(x, row[t]) for t, x in known.items()}",
        "{t: min(x, row[t]) for t, x in known.items()}",
    ),
    "heads around averages that are not added": ("two heads, MLP", 0, "return constant + sum(middle), [[x - c", "return constant, [[x - c"),
    "terms apart: the other way round": (
        "two heads",
        0,
        "for o in term.outputs), term.numbers",
        "for o in term.outputs[::-1]), term.numbers",
    ),
    "terms apart: added": ("two heads", 0, "{t: n1 * x - n2 * row[t] for t, x in known", "{t: n1 * x + n2 * row[t] for t, x in known"),
    "joint terms without weights of one sign": (
        "whole numbers, no values",
        0,
        "{t: w * x for t, x in row.items()} for row in self.weighed",
        "{t: x - w for t, x in row.items()} for row in self.weighed",
    ),
    "harmless though tied": (
        "whole numbers, MLP",
        0,
        "self.weighed((max(constants), worst))) < 0",
        "self.weighed((max(constants), worst))) <= 0",
    ),
    "harmless without the constant": ("MLP", 0, "(0, [[constant + x for x in rows[0]]])", "(0, [[x for x in rows[0]]])"),
    "harmless by the first output": ("MLP", 0, "worst = [list(map(max, *rows, rows[0]))", "worst = [list(map(min, *rows, rows[0]))"),
    "half of the outputs forgotten": (
        "MLP",
        0,
        "self.reaching(dict(known[:half])) + self.reaching(dict(known[half:]))",
        "self.reaching(dict(known[half:]))",
    ),
    "walks: rounding downwards": (None, None, "{t: -(-x >> spare) for t, x in row.items()}", "{t: x >> spare for t, x in row.items()}"),
    "walks: states without a way": (None, None, "default=below)", "default=0)"),
    "walks: masses of 0 count": (None, None, "if (found := [t for t in ts if row[t]])", "if (found := list(ts))"),
    "walks: one way to a state only": ("final LN", 0, "own[ways[z]][z] = x", "own[0][z] = x"),
    "walks: not only accepting": (None, None, "if automaton.accepting[s]}\n        self.steps", "}\n        self.steps"),
    "positions add no error": (
        "final LN",
        2,
        "return Exact(rows, finest, one.error + other.error)",
        "return Exact(rows, finest, other.error)",
    ),
    "the first error for all": ("final RMS, heavy, no eps", 2, "max(x.at(finest).error for x in found)", "found[0].error"),
    "biases behind the MLP": ("MLP", 0, 'sum_of(extra, bias("mlp.b_out", d).times(read, meter))', "extra"),
    "the bias of the final norm": ("final LN", 0, 'sum_of(extra, bias("norm_final.bias", d).times(read, meter))', "extra"),
    "one head for all": (
        "two heads",
        0,
        "parts = [embedded(network, W, h, factors, meter) for h in range(heads)]",
        "parts = [embedded(network, W, 0, factors, meter) for h in range(heads)]",
    ),
}
"""What finds it (a network and constants, or else walks), the text of the checker, and the text with a mistake."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found(mistake, monkeypatch):
    name, bits, right, wrong = MISTAKES[mistake]
    source = Path(checker.__file__).read_text()
    assert source.count(right) == 1
    module = ModuleType("wrong_checker")
    monkeypatch.setitem(sys.modules, "wrong_checker", module)
    exec(compile(source.replace(right, wrong), "wrong_checker", "exec"), vars(module))
    with pytest.raises(AssertionError):
        check_pairs(module, name, 0, BITS[bits]) if name is not None else [check_walks(module, seed) for seed in range(200)]


@pytest.mark.parametrize("kind", sorted(set(blocks.KINDS) - set(KNOWN)))
def test_unknown_kinds_are_refused_by_the_writer_and_by_the_checker(kind):
    network = blocks.tiny_block(1, kind)
    with pytest.raises(CertificateError, match=r"norm before the MLP|MLP and a final norm|neurons other than ReLU"):
        certifiable_block(network)
    found = bare(network, [])[1]
    assert found.verdict is checker.Verdict.REJECTED and "this checker knows" in found.reason


def test_float32_claims_about_blocks_are_refused():
    """They would need an error of their own."""
    network = NETWORKS["two heads"]
    content = cp.prove(network, "threshold-quartic").certificate.content
    question = encoded_question(cp.Question(MaxOfK(blocks.K, blocks.V), semantics="float32-any-order"))
    found = checker.check(cp.Certificate({**content, "question": question}).data, raw_network(network))
    assert found.verdict is checker.Verdict.REJECTED and "float32" in found.reason


def one_dimension(eps):
    """A final LN of one coordinate: it is always 0, and so is what it divides by, but for eps."""
    one = np.ones((1, 1, 1), np.float32)
    matrices = {"W_E": [[1], [2]], "W_pos": [[1], [3]], "W_U": [[1, 1]], "b_U": [0, 1]}
    tensors = {name: np.array(values, np.float32) for name, values in matrices.items()}
    return Network(**tensors, n_ctx=2, W_Q=one, W_K=one, W_V=one, W_O=one, norm_final=Norm("LN", eps))


@pytest.mark.parametrize("listed", [False, True])
def test_a_final_norm_of_one_dimension(listed):
    term = {"joint": [0], "weights": [1], "step": [1, 0], "depth": 9, "offsets": [0, 0]}
    leaf = {"terms": [], "listed": [], "hints": HINTS}
    leaf = {"terms": [term], "listed": [[0, 1], [1, 1], [1, 0]], "hints": None} if listed else leaf
    part = {"label": 1, "queries": [0, 1], "tree": leaf}
    assert network_oracle.bounds(one_dimension(0.5)) == (3, 3)
    assert bare(one_dimension(0.5), [part], 3)[1].accepted == listed  # no line below the divisor knows of eps
    assert network_oracle.bounds(one_dimension(0.0))[0] == 0
    assert bare(one_dimension(0.0), [part], 3)[1].verdict is checker.Verdict.REJECTED


def test_an_mlp_without_tensors_is_malformed():
    raw = raw_network(NETWORKS["MLP"])
    for gone in ("mlp.W_in", "mlp.W_out"):
        tensors = {name: tensor for name, tensor in raw.tensors.items() if name != gone}
        with pytest.raises(checker.MalformedError, match="its tensors are absent"):
            checker.with_settings(tensors, raw.settings)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shares": [40000, 40000]}, "add up to more than 1"),
        ({"shares": [0, 5]}, "out of range"),
        ({"shares": [5]}, "expected 2"),
        ({"typical": [[15], [1], [1]]}, "out of range"),
        ({"typical": [[0] * 16, [1] * 16, [1] * 16]}, "more places are typical"),
        ({"typical": [[0], [-1], [1]]}, "out of range"),
        ({"typical": [[0, 1], [1], [1]]}, "expected 2"),
        ({"neurons": []}, "expected 7"),
        ({"neurons": [2] * 7}, "out of range"),
        ({"neurons": [None] * 7}, "not an integer"),
        ({"neurons": [{"low": 0, "high": 1, "scale": 0, "tangent": 0}] * 7}, "is on or off"),
        ({"neurons": [{"low": -1, "high": 1, "scale": 2001, "tangent": 0}] * 7}, "out of range"),
        ({"neurons": [{"tangent": 2, "shares": [1, 1]}] * 7}, "out of range"),
        ({"neurons": [{"tangent": 1, "shares": [65536, 1]}] * 7}, "add up to more than 1"),
        ({"neurons": [{"shares": [1, 1]}] * 7}, "fields"),
        ({"neurons": [1] * 7}, "may leave its range"),
        ({"neurons": [0] * 7}, "may leave its range"),
        ({"others": []}, "fields"),
    ],
)
def test_hints_are_read_with_care(change, words):
    hints = {"typical": None, "neurons": [{"tangent": 0, "shares": [1, 1]}] * 7, "shares": None}
    trees = [{"terms": [], "listed": [], "hints": given} for given in (hints, {**hints, **change})]
    good, found = (bare(NETWORKS["two heads, MLP"], [{"label": 4, "queries": [4], "tree": tree}])[1] for tree in trees)
    assert good.accepted and found.verdict in (checker.Verdict.REJECTED, checker.Verdict.MALFORMED) and words in found.reason


def test_what_needs_hints_is_refused_without():
    network, grid = NETWORKS["two heads"], {"step": [1, 0], "depth": 9, "offsets": [0] * 3}
    joint = {"joint": [0, 1, 2, 3, 5], "weights": [1] * 5, **grid}
    spoiler = {"label": 4, "queries": [4], "tree": {"terms": [{"spoiler": 0, **grid}], "listed": [], "hints": None}}
    assert "has no hints" in bare(network, [], upper=[spoiler])[1].reason
    nothing = {"label": 4, "queries": [4], "tree": {"terms": [], "listed": [], "hints": None}}
    assert "might win" in bare(network, [nothing])[1].reason
    apart = {"apart": 0, "less": 1, "factors": [1, 1], **grid}
    tree = {"terms": [joint, apart], "listed": [], "hints": None}
    assert "has no hints" in bare(network, [{"label": 4, "queries": [4], "tree": tree}])[1].reason
    everything = {"label": 4, "queries": [4], "tree": {"terms": [joint], "listed": [], "hints": None}}
    assert bare(network, [everything], 0)[1].accepted and not bare(network, [everything], 1)[1].accepted


def test_listed_sequences_are_metered():
    """By all that is computed for them: many neurons cost more than outputs."""
    network, rng = NETWORKS["MLP"], np.random.default_rng(0)
    W_in, W_out = rng.normal(size=(blocks.D, 3000)).astype(np.float32), np.zeros((3000, blocks.D), np.float32)
    network = replace(network, mlp=Mlp(W_in, W_out, Activation.RELU, None, None))
    checked = checker.Meter()
    raw = raw_network(network)
    question = checker.read_question(encoded_question(cp.Question(MaxOfK(blocks.K, blocks.V))), blocks.V, blocks.K, checked)
    T = checker.block_tables(raw, question, checker.read_factors(None, raw.sizes()), checked)
    pair, before = checker.BlockPair(checker.Label(T, question.automata[4], 4), 4), checked.work
    pair.logits([4, 4, 4])
    assert checked.work - before > 3000 * 6 * 100


def test_walks_are_metered_by_all_their_ways():
    """One token leads from each of many states to one: as many slots as states, each as long as there are states."""
    n = 300
    moves = [{0: 1, 1: 1 + (s + 7) % n, 2: 1 + (3 * s) % n} for s in range(n + 1)]
    moves[0] = {t: 1 + t for t in range(n)}
    automaton = checker.Automaton(moves, [True] * (n + 1), 0)
    meter = checker.Meter()
    walks = checker.Walks(automaton, [[1] * n] * 3, meter)
    assert meter.bytes > 8 * walks.size > 0
    before = meter.work
    walks.forward([{t: t for t in range(n)}] * 3)
    assert meter.work - before > 100 * walks.size
    before = meter.work
    walks.packed([{t: t for t in range(n)}] * 3)
    assert meter.work - before > 1000 * sum(map(len, walks.runs))
    with pytest.raises(checker.RejectedError, match="bytes of memory"):
        checker.Walks(automaton, [[1] * n] * 3, checker.Meter(4 * 10**7 + 3 * (1000 * (n + 1) + 500 * 4 * n)))
