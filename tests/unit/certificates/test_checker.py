"""The parts of the stand-alone checker, each against something that shares no code with it."""

import ast
import json
import random
import subprocess
import sys
from collections import Counter
from itertools import product
from math import prod
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

import compactproofs as cp
from compactproofs import checker
from compactproofs.certificates.checking import network
from compactproofs.certificates.encode import encoded_question
from compactproofs.counting import count_up as compiled
from compactproofs.form.tables import float_circuits
from compactproofs.tasks import LabellingAutomaton, MaxOfK
from compactproofs.tasks.question import FLOAT32, REAL, Question
from models import adversarial_models, random_weights
from tasks import KINDS, Named

MODELS = {"random": random_weights(3, d_vocab_out=6), **dict(adversarial_models())}


def run(code, *flags):
    return subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_the_checker_loads_nothing_else_of_the_package():
    loaded = json.loads(run("import sys, json, compactproofs.checker; print(json.dumps(sorted(sys.modules)))"))
    assert [name for name in loaded if name.split(".")[0] == "compactproofs"] == ["compactproofs", "compactproofs.checker"]
    assert not {"numpy", "numba", "safetensors", "typer"} & set(loaded)


def test_the_checker_imports_the_standard_library_only():
    source = Path(checker.__file__).read_text()
    imported = {line.split()[1].split(".")[0] for line in source.splitlines() if line.startswith(("import ", "from "))}
    assert imported <= sys.stdlib_module_names


def test_there_is_no_floating_point_in_the_trusted_path():
    """No division, no floating-point literal; `float` only to read `attn_scale`, whose exact value is compared, and `log10` for a limit."""
    nodes = list(ast.walk(ast.parse(Path(checker.__file__).read_text())))
    assert not [node for node in nodes if isinstance(node, ast.Div) or (isinstance(node, ast.Constant) and isinstance(node.value, float))]
    called = [node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    assert (called.count("float"), called.count("log10"), called.count("round")) == (1, 1, 0)


@settings(max_examples=1000)
@given(st.fractions(0, 1), st.integers(0, 100), st.integers(1, 300))
def test_exp_minus(part, scale, bits):
    y = int(part * (bits + 1) * 2**scale)  # beyond, the enclosure is 0 and 1
    low, high = checker.exp_minus(y, scale, bits)
    ctx.prec = 1200
    exact = (-(arb(y) / arb(2) ** scale)).exp() * arb(2) ** bits
    assert low >= 0 and arb(low) <= exact <= arb(high)
    assert high - low <= 2


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=6))
def test_exact(words):
    data = np.array(words, dtype="<u4").tobytes()
    numbers = np.frombuffer(data, dtype="<f4")
    if not np.isfinite(numbers).all():
        with pytest.raises(checker.MalformedError, match="not a number"):
            checker.exact("W_E", (1, len(words)), data)
        return
    found = checker.exact("W_E", (1, len(words)), data)
    assert [x / 2**found.scale for x in found.rows[0]] == numbers.astype(float).tolist()


def question_of(weights, semantics=REAL):
    asked = Question(MaxOfK(weights.n_ctx, weights.d_vocab), semantics=semantics)
    return checker.read_question(encoded_question(asked), weights.d_vocab, weights.n_ctx, checker.Meter())


def tables(weights, centre=None):
    factors = checker.read_factors(None, network(weights).sizes())
    factors = factors if centre is None else factors._replace(centre=centre)
    return checker.tables(network(weights), question_of(weights), factors, checker.Meter(checker.NO_LIMIT))


@pytest.mark.parametrize("name", MODELS)
def test_tables_agree_with_the_provers(name):
    weights = MODELS[name]
    T, known = tables(weights), float_circuits(weights)
    tokens, outputs = range(weights.d_vocab), range(T.out)
    with np.errstate(all="ignore"):
        for q, t, o in product(tokens, tokens, outputs):
            exact = (T.EVOU[t][o] - T.EVOU[0][o] + T.EU[q][o]) / 2**T.scale
            close = known.EVOU[t, o] - known.EVOU[0, o] + known.EU[q, o]
            size = np.abs(known.EVOU).max() + np.abs(known.PVOU).max() + np.abs(known.EU).max()
            assert abs(exact - close) <= 1e-9 * size
        ratio = np.exp(known.EQKE - known.EQKE.max(axis=1, keepdims=True))
    for q, t in product(tokens, tokens):
        assert T.A_low[q][t] <= T.A_high[q][t] <= T.A_low[q][t] + 8
        assert T.A_low[q][t] / 2**T.bits == pytest.approx(ratio[q, t], rel=1e-6, abs=1e-300)
    assert T.own == T.EU and min(T.tops) >= 1


@given(st.lists(st.integers(-(2**9), 2**9), min_size=4, max_size=4), st.integers(0, 9))
def test_a_centre_moves_from_positions_to_tokens_and_changes_no_sum(entries, scale):
    weights = random_weights(2)
    plain, moved = tables(weights), tables(weights, checker.Exact([entries], scale))
    for t, i, o in product(range(5), range(3), range(5)):
        assert (plain.EVOU[t][o] + plain.PVOU[i][o]) * 2**moved.scale == (moved.EVOU[t][o] + moved.PVOU[i][o]) * 2**plain.scale
    for q, t, i in product(range(5), range(5), range(3)):  # attention relative to that of one token and position
        ratios = [(T.A_low[q][t] * T.b_low[q][i]) / (T.A_low[q][0] * T.b_low[q][0]) for T in (plain, moved)]
        assert ratios[0] == pytest.approx(ratios[1])


@st.composite
def automata(draw, v):
    """Any automaton whose tokens are below v: moves may be missing."""
    n = draw(st.integers(1, 3))
    moves = [draw(st.dictionaries(st.integers(0, v - 1), st.integers(0, n - 1))) for _ in range(n)]
    return checker.Automaton(moves, [draw(st.booleans()) for _ in range(n)], draw(st.integers(0, n - 1)))


@st.composite
def counting(draw):
    """Everything that `count_up` takes."""
    v, k = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    last = draw(st.sets(st.integers(0, v - 1), min_size=1))
    reach = draw(st.sampled_from([0, 1, 5, 40]))
    D = [{t: draw(st.integers(-reach, reach)) for t in (range(v) if i < k - 1 else sorted(last))} for i in range(k)]
    return draw(st.integers(-9, 9)), D, [[draw(st.integers(0, 5)) for _ in range(v)] for _ in range(k)], draw(automata(v))


def long_counting(seed, k, largest):
    """The same with many positions or large masses."""
    rng = random.Random(seed)
    v, n, reach = rng.randint(2, 3), rng.randint(1, 3), rng.choice([1, 5, 40])
    last = rng.sample(range(v), rng.randint(1, v))
    D = [{t: rng.randint(-reach, reach) for t in (range(v) if i < k - 1 else last)} for i in range(k)]
    masses = [[rng.choice([largest, rng.randint(1, largest)]) for _ in range(v)] for _ in range(k)]
    masses[rng.randrange(k)][rng.randrange(v)] = 0
    moves = [{t: rng.randrange(n) for t in range(v) if rng.random() < 0.95} for _ in range(n)]
    return rng.randint(-9, 9) * rng.randint(0, 9), D, masses, checker.Automaton(moves, [True] + [False] * (n - 1), rng.randrange(n))


LONG = pytest.mark.parametrize(("k", "largest"), [(130, 1), (60, 9), (8, 2**38)])


def mass_by_sums(start, D, masses, automaton):
    """Exact: the mass of the ways to each state and sum."""
    ways = {(automaton.first, start): 1}
    for row, mass in zip(D, masses, strict=True):
        after = {}
        for (s, z), number in ways.items():
            for t, d in row.items():
                if t in automaton.moves[s]:
                    to = automaton.moves[s][t], z + d
                    after[to] = after.get(to, 0) + number * mass[t]
        ways = after
    return sum(number for (s, z), number in ways.items() if automaton.accepting[s] and z >= 0)


@given(counting())
def test_count_up(case):
    start, D, masses, automaton = case
    exact = sum(
        prod(mass[t] for mass, t in zip(masses, x, strict=True))
        for x in product(*D)
        if automaton.accepts(list(x)) and start + sum(row[t] for row, t in zip(D, x, strict=True)) >= 0
    )
    assert checker.count_up(*case, checker.Meter()) == exact == mass_by_sums(*case)


@pytest.mark.long
@LONG
def test_counts_beyond_64_bits_are_rounded_up_and_hardly(k, largest):
    rounded = 0
    for seed in range(20):
        case = long_counting(seed, k, largest)
        exact, found = mass_by_sums(*case), checker.count_up(*case, checker.Meter())
        here = [sum(mass[t] for t in row) for row, mass in zip(case[1], case[2], strict=True)]
        assert exact <= found <= exact + (prod(here) * sum(here) >> 60)
        assert found == exact or prod(here) >= 1 << 62
        rounded += found > exact >= 1 << 62
    assert rounded > 3


def by_compiled(start, D, masses, automaton):
    tokens = range(len(masses[0]))
    following = np.array([[row.get(t, -1) for t in tokens] for row in automaton.moves])
    allowed = np.array([[mass[t] if t in row else 0 for t in tokens] for row, mass in zip(D, masses, strict=True)])
    integers = np.array([[[row.get(t, 0) for t in tokens]] for row in D])
    same = compiled.Automaton(following, np.array(automaton.accepting), automaton.first)
    found, _ = compiled.count_up(integers, allowed, start, same)
    return int(found) << int(compiled.unit_exponents(allowed).sum())


@given(counting())
def test_count_up_is_the_compiled_one(case):
    assert checker.count_up(*case, checker.Meter()) == by_compiled(*case)


@LONG
def test_count_up_is_the_compiled_one_when_it_rounds(k, largest):
    """The same integers, however they are rounded: the claim of a certificate is the proof's own."""
    for seed in range(20):
        case = long_counting(seed, k, largest)
        assert checker.count_up(*case, checker.Meter()) == by_compiled(*case)


@given(counting())
def test_walk(case):
    _, harms, masses, automaton = case
    having_mass = [x for x in product(*harms) if automaton.accepts(list(x)) and all(map(list.__getitem__, masses, x))]
    sums = [sum(row[t] for row, t in zip(harms, x, strict=True)) for x in having_mass]
    for most in (0, max(sums, default=0), max(sums, default=0) + 1):  # of what is taken off, so that the largest sum is about zero
        moved = [{t: x - most for t, x in harms[0].items()}, *harms[1:]]
        T = SimpleNamespace(meter=checker.Meter(), k=len(harms), masses=masses)
        pair = SimpleNamespace(T=T, tokens=automaton.tokens, terms=lambda _, up, moved=moved: moved)
        assert checker.Pair.is_harmless_in(pair, 0, automaton) == all(total < most for total in sums)


def counts(rounded, sequence):
    start, D = rounded
    return start + checker.along(D, list(sequence)) >= 0


@settings(max_examples=400)
@given(st.data())
def test_rounded_never_loses_a_sequence(data):
    """Harms that add up to zero or more are counted; if strict, those that add up to more than zero."""
    k, strict = data.draw(st.integers(1, 4)), data.draw(st.booleans())
    scale, largest = data.draw(st.integers(0, 20)), data.draw(st.sampled_from([3, 10**4]))
    harms = [data.draw(st.dictionaries(st.integers(0, 3), st.integers(-largest, largest), min_size=1)) for _ in range(k)]
    step = [data.draw(st.sampled_from([1, 1, 77, 2000])), data.draw(st.integers(-20, 10))]
    offsets, depth = [data.draw(st.sampled_from([0, 0, 1, 128, 255])) for _ in range(k)], data.draw(st.integers(1, 20))
    rounded = checker.Grid(*step, depth, offsets).rounded(harms, scale, strict)
    for x in product(*harms):
        total = sum(row[t] for row, t in zip(harms, x, strict=True))
        assert counts(rounded, x) >= (total > 0 if strict else total >= 0)


@given(st.data())
def test_a_fine_grid_counts_no_other_sequence(data):
    """Where nothing is rounded, exactly the harms that add up to zero (or more) are counted, ties included."""
    k, strict, exponent = data.draw(st.integers(1, 4)), data.draw(st.booleans()), data.draw(st.integers(-9, 0))
    harms = [data.draw(st.dictionaries(st.integers(0, 3), st.integers(-9, 9), min_size=1)) for _ in range(k)]
    rounded = checker.Grid(1, exponent, 1 << 20, [0] * k).rounded(harms, -exponent, strict)
    for x in product(*harms):
        total = sum(row[t] for row, t in zip(harms, x, strict=True))
        assert counts(rounded, x) == (total > 0 if strict else total >= 0)


def test_rounding_beyond_floor_and_ceiling():
    """Deep harms are raised to the floor, four times as deep at the last position; a decisive one is lowered until it just decides."""
    deep = checker.Grid(1, 0, 1, [0, 0]).rounded([{0: -100, 1: 0}, {0: -100, 1: 50}], 0, False)
    assert deep == (0, [{0: -1, 1: 0}, {0: -4, 1: 1}]) and counts(deep, [0, 1])
    decisive = checker.Grid(1, 0, 3, [0, 0]).rounded([{0: 100}, {0: -100}], 0, False)
    assert decisive == (0, [{0: 12}, {0: -12}]) and counts(decisive, [0, 0])
    assert not counts(checker.Grid(1, 0, 3, [0, 0]).rounded([{0: 11}, {0: -100}], 0, False), [0, 0])
    assert checker.Grid(2, 0, 9, [255, 255]).rounded([{0: 0}, {0: 0}], 0, False)[0] == 2
    assert checker.Grid(2, 0, 9, [255, 1]).rounded([{0: 0}, {0: 0}], 0, False)[0] == 1
    assert checker.Grid(2, 0, 9, [0, 0]).rounded([{0: 0}, {0: 0}], 0, True)[0] == -1


def test_counting_beyond_the_limit_is_refused():
    accepts_all = checker.Automaton([{0: 0, 1: 0}], [True], 0)
    for reach, words in ((2**40, "more than .* units of work .*--work N"), (2**28, "bytes of memory; allow more: --work N")):
        with pytest.raises(checker.RejectedError, match=words):
            checker.count_up(0, [{0: -reach, 1: reach}] * 3, [[1, 1]] * 3, accepts_all, checker.Meter())


@given(st.data())
def test_label_automata_accept_the_sequences_of_their_label(data):
    v, n, k = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    following = [[data.draw(st.integers(0, n - 1)) for _ in range(v)] for _ in range(n)]
    labels, start = [data.draw(st.integers(0, 3)) for _ in range(n)], data.draw(st.integers(0, n - 1))
    known = LabellingAutomaton(np.array(following), np.array(labels), start)
    found = {m: checker.label_automaton(following, labels, start, m, checker.Meter()) for m in set(labels)}
    for x in product(range(v), repeat=k):
        label = int(known.label(np.array([x]))[0])
        assert [m for m, automaton in found.items() if automaton.accepts(list(x))] == [label]


@given(st.data())
def test_splits_are_by_how_often_a_token_occurs(data):
    v, k = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    automaton = data.draw(automata(v))
    (t, n), (u, least) = ((data.draw(st.integers(0, v - 1)), data.draw(st.integers(1, k))) for _ in range(2))
    halves = {more: automaton.split(t, n, more) for more in (False, True)}
    quarters = {(more, again): half.split(u, least, again) for more, half in halves.items() for again in (False, True)}
    for x in product(range(v), repeat=k):
        one, other = x.count(t) >= n, x.count(u) >= least
        assert [more for more, half in halves.items() if half.accepts(list(x))] == ([one] if automaton.accepts(list(x)) else [])
        assert [which for which, part in quarters.items() if part.accepts(list(x))] == (
            [(one, other)] if automaton.accepts(list(x)) else []
        )


@pytest.mark.parametrize("semantics", [REAL, FLOAT32])
@pytest.mark.parametrize("kind", ["max", *KINDS])
def test_questions_are_named_as_by_the_package(kind, semantics):
    """By the task, the masses and the semantics; another name is refused."""
    task, names = MaxOfK(3, 4) if kind == "max" else Named(kind, 3, 4), set()
    for masses in (None, np.ones((3, 4), dtype=np.int64), np.arange(12).reshape(3, 4)):
        asked = Question(task, masses, semantics=semantics)
        found = checker.read_question(encoded_question(asked), 4, 3, checker.Meter())
        names.add(found.sha256)
        assert (found.sha256, found.semantics, prod(map(sum, found.masses))) == (asked.sha256, semantics, asked.total)
        for m in task.labels:
            mass = checker.mass_by_query(found.automata[m], found.masses, checker.Meter())
            assert [mass[q] for q in found.automata[m].tokens] == asked.totals_by_last(m)
        for change in ({"sha256": "0" * 64}, {"masses": [[1, 2, 3, 4]] * 3}):
            with pytest.raises(checker.RejectedError, match="the certificate gives another"):
                checker.read_question({**encoded_question(asked), **change}, 4, 3, checker.Meter())
    assert len(names) == 3


def test_masses_of_questions_are_limited():
    for row in ([0, 0], [2**40, 1], [-1, 2], [2**40 + 1, 0]):
        value = {**encoded_question(Question(MaxOfK(1, 2))), "masses": [row]}
        with pytest.raises(checker.RejectedError, match="question.masses"):
            checker.read_question(value, 2, 1, checker.Meter())


@given(st.integers(1, 9), st.integers(1, 12), st.data())
def test_digits(width, digits, data):
    """`ones`, and the rounding of `shifted`, by hand: one window, read where it is."""
    assert checker.ones(digits, width) == sum(1 << j * width for j in range(digits))
    e = data.draw(st.integers(0, 5))
    entries = [data.draw(st.integers(0, (1 << width + 5) - 1)) for _ in range(digits)]
    packed = sum(x << j * (width + 8) for j, x in enumerate(entries))
    found = checker.shifted([(checker.Window(0, digits, packed, 13, 0, 0, 0), Counter({0: 1}))], 0, digits, width + 8, e)
    assert found == (sum(-(-x >> e) << j * (width + 8) for j, x in enumerate(entries)), -(-13 >> e))


@pytest.mark.parametrize("layout", [2, 3])
def test_read_safetensors(layout, tmp_path):
    from safetensors.numpy import save_file

    weights = random_weights(0)
    tensors = {name: t[None] if layout == 3 and name in ("W_Q", "W_K", "W_V", "W_O") else t for name, t in weights.tensors.items()}
    said = {"attn_scale": "-1", "n_layers": "1", "n_heads": "1", "attn_only": "true", "normalization_type": "none", "task": "max"}
    save_file(dict(tensors), tmp_path / "m.safetensors", said)
    found = checker.read_safetensors((tmp_path / "m.safetensors").read_bytes())
    assert found == network(weights) and found.sha256() == weights.sha256


def test_divisor_of_metadata_is_the_loaders(tmp_path):
    from fractions import Fraction

    for divisor in (Fraction(2), Fraction(9, 4), Fraction(1)):
        weights = random_weights(0, score_divisor_squared=divisor)
        if divisor != 2:
            cp.save(weights, tmp_path / "m.safetensors")
            raw = checker.read_safetensors((tmp_path / "m.safetensors").read_bytes())
            assert raw.divisor == f"{divisor.numerator}/{divisor.denominator}"
            assert raw.sha256() == cp.load(tmp_path / "m.safetensors").sha256


def test_an_error_of_the_checker_itself_is_never_accepted(monkeypatch):
    weights = random_weights(0)
    certificate = cp.prove(weights, "threshold-cubic").certificate
    monkeypatch.setattr(checker, "failing", lambda *_: 1 // 0)
    found = cp.check(certificate, weights)
    assert found.verdict is checker.Verdict.INTERNAL_ERROR and "ZeroDivisionError" in found.reason


def test_the_checker_knows_no_strategy():
    """What a certificate proves does not depend on who made it: names of strategies do not occur."""
    from compactproofs.strategies.registry import all_strategies

    source = Path(checker.__file__).read_text()
    assert not [s.name for s in all_strategies(None, "both") if s.name != "cubic" and s.name in source]
