"""The checker's enclosures of norms, rotary positions and everything made of them, with so few bits that a forgotten error shows.

The truth comes from `network_oracle`, which shares no code with the package.
"""

import random
from itertools import product

import pytest
from flint import arb, ctx

import network_oracle
import networks
from compactproofs import checker
from compactproofs.certificates.checking import network as raw_network
from compactproofs.certificates.encode import encoded_question
from compactproofs.model.network import Norm, Rotary
from compactproofs.tasks import MaxOfK
from compactproofs.tasks.question import Question

KINDS = ["LN before attention", "RMS before attention", "LNPre, all biases", "rotary", "rotary in part, adjacent, biases", "ALiBi"]


@pytest.fixture(autouse=True)
def precise():
    previous, ctx.prec = ctx.prec, 600
    yield
    ctx.prec = previous


def coarsely(monkeypatch, bits):
    monkeypatch.setattr(checker, "NORM_BITS", bits)
    monkeypatch.setattr(checker, "TURN_BITS", bits)


def off(found, exact):
    """How far numbers are from the truth, in units of what they may be off."""
    unit = arb(max(found.error, 1)) / arb(2) ** found.scale
    pairs = [both for row, truth in zip(found.rows, exact, strict=True) for both in zip(row, truth, strict=True)]
    return max((abs(arb(x) / arb(2) ** found.scale - y) / unit for x, y in pairs), key=lambda r: float(r.mid()))


@pytest.mark.parametrize("bits", [-8, -2, 1, 5, 200])
@pytest.mark.parametrize("kind", ["LN", "RMS"])
@pytest.mark.parametrize("affine", [False, True])
def test_normed(kind, affine, bits, monkeypatch):
    coarsely(monkeypatch, bits)
    network = networks.random_network(1, 2.0, norm_1=lambda draw: Norm(kind, 0.3, draw(4) if affine else None, draw(4) if affine else None))
    T = {name: checker.exact(name, tensor.shape, tensor.tobytes()) for name, tensor in network.tensors.items()}
    said = network.settings["norm_1"]
    found = checker.normed(T["W_E"], said, T.get("norm_1.weight"), T.get("norm_1.bias"), checker.Meter())
    balls = {name: network_oracle._balls(tensor.tolist()) for name, tensor in network.tensors.items()}
    exact = [network_oracle._normed(row, network.norm_1, balls, "norm_1") for row in balls["W_E"]]
    assert off(found, exact) <= 1
    assert off(found, exact) > 1e-6 or bits == 200 or bits > 4  # so few bits that it can be seen


@pytest.mark.parametrize("bits", [1, 4, 9, 256])
@pytest.mark.parametrize("adjacent", [False, True])
def test_turned(adjacent, bits, monkeypatch):
    coarsely(monkeypatch, bits)
    rotary, rows = Rotary(4, 7.5, adjacent), checker.Exact([[3, -5, 7, 11, 2], [1, 0, -1, 4, 9]] * 3, 1, 1)
    positions = [0, 0, 1, 5, 90, 511]
    found = checker.turned(rows, [rotary.dim, rotary.base.hex(), adjacent], positions, checker.Meter())
    for sign in (-1, 1):  # each entry may be off by 1/2
        exact = [network_oracle._turned([arb(x + sign) / 2 for x in row], i, rotary) for row, i in zip(rows.rows, positions, strict=True)]
        assert off(found, exact) <= 1


def test_cos_sin_is_off_by_one_at_most():
    for i, j in product((0, 1, 7, 1000, (1 << 20) - 1), range(4)):
        angle = arb(i) / arb(10000) ** (arb(j) / 4)
        for p in (3, 40, 256):
            cos, sin = checker.cos_sin(i, (10000, 0), j, 4, p)
            assert abs(arb(cos) - angle.cos() * arb(2) ** p) <= 1 and abs(arb(sin) - angle.sin() * arb(2) ** p) <= 1


def test_integer_root():
    for n, x in product(range(1, 6), [1, 2, 7, 8, 9, 63, 64, 65, 10**30, 10**30 + 1]):
        y = checker.integer_root(x, n)
        assert y**n <= x < (y + 1) ** n


def test_products_account_for_errors():
    """Matrices at the ends of what they may be."""
    a, b = checker.Exact([[3, -4], [5, 6]], 2, 1), checker.Exact([[7, -1, 2], [0, 8, -9]], 1, 2)
    found = a.times(b, checker.Meter())
    for s, t in product((-1, 1), repeat=2):
        one, other = ([[arb(x + sign * m.error) / 2**m.scale for x in row] for row in m.rows] for sign, m in ((s, a), (t, b)))
        assert off(found, [network_oracle._times(row, other) for row in one]) <= 1


def perturbed(function, error):
    """The same matrix with entries moved at random, as far as it says that they may be."""

    def wrong(*arguments):
        found, draw = function(*arguments), random.Random(0)
        found = found.at(max(found.scale, error))
        unit = 1 << found.scale - error
        return found._replace(rows=[[x + draw.choice((-unit, unit)) for x in row] for row in found.rows], error=found.error + unit)

    return wrong


@pytest.mark.parametrize("error", [3, 5, 7, 60])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_terms_have_the_signs_of_logits(kind, error, monkeypatch):
    """Upper bounds that are negative, and lower bounds that are not, decide what the network does, wherever in their error entries lie."""
    for name in ("normed", "turned"):
        monkeypatch.setattr(checker, name, perturbed(getattr(checker, name), error))
    decided = 0
    for seed in range(2):
        network = networks.random_network(seed, 0.8, **networks.AFFINE[kind])
        raw, meter = raw_network(network), checker.Meter()
        question = checker.read_question(encoded_question(Question(MaxOfK(3, 5))), 5, 3, meter)
        T = checker.tables(raw, question, checker.read_factors(None, raw.sizes()), meter)
        for m, automaton in question.automata.items():
            label = checker.Label(T, automaton, m)
            for q in automaton.tokens:
                pair = checker.Pair(label, q)
                for x in (x for x in product(range(m + 1), repeat=3) if max(x) == m and x[-1] == q and sum(x) % 3 == seed):
                    exact = network_oracle.logits(network, x)
                    for o in pair.others:
                        above, below = (checker.along(pair.terms(o, up), x) for up in (True, False))
                        assert below <= above
                        decided += (above < 0) + (below > 0)
                        assert not (above < 0 and exact[o] >= exact[m]) and not (below >= 0 and exact[o] < exact[m])
    assert decided > 50 or error < 60


@pytest.mark.parametrize("recency", [[[0]], [[-4, -2, 0]]])
def test_attention_encloses_scores_that_are_off(recency):
    """Ratios of attention, which is all that matters, with scores at the ends of what they may be."""
    scores, added = checker.Exact([[5, -3, 2], [0, 0, 1]], 2, 3), checker.Exact(recency, 1)
    low, high, _ = checker.attention(scores, (3, 2), added, 90, checker.Meter())
    root, extra = (arb(3) / 2).sqrt(), recency[0] if len(recency[0]) > 1 else [0, 0, 0]
    for row, least, most in zip(scores.rows, low, high, strict=True):
        for i, j in product(range(3), repeat=2):
            for s in (-1, 1) if i != j else ():
                difference = arb(row[i] - row[j] + 2 * s * scores.error) / 4 / root + arb(extra[i] - extra[j]) / 2
                assert arb(least[i]) <= difference.exp() * most[j] and difference.exp() * least[j] <= arb(most[i])
