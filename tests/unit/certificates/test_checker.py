"""The parts of the stand-alone checker, each against something that shares no code with it."""

import ast
import json
import subprocess
import sys
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

import compactproofs as cp
from compactproofs import checker
from compactproofs.certificates.checking import network
from compactproofs.form.tables import float_circuits
from models import adversarial_models, random_weights

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
            checker.exact("W_E", 1, len(words), data)
        return
    found = checker.exact("W_E", 1, len(words), data)
    assert [x / 2**found.scale for x in found.rows[0]] == numbers.astype(float).tolist()


@pytest.mark.parametrize("name", MODELS)
def test_tables_agree_with_the_provers(name):
    weights = MODELS[name]
    raw = network(weights)
    T, tables = checker.tables(raw, checker.REAL), float_circuits(weights)
    with np.errstate(all="ignore"):
        for q, t, o in product(range(T.v), range(T.v), range(T.out)):
            exact = (T.EVOU[t][o] - T.EVOU[0][o] + T.EU[q][o]) / 2**T.scale
            close = tables.EVOU[t, o] - tables.EVOU[0, o] + tables.EU[q, o]
            size = np.abs(tables.EVOU).max() + np.abs(tables.PVOU).max() + np.abs(tables.EU).max()
            assert abs(exact - close) <= 1e-9 * size
        ratio = np.exp(tables.EQKE - tables.EQKE.max(axis=1, keepdims=True))
    for q, t in product(range(T.v), range(T.v)):
        assert T.A_low[q][t] <= T.A_high[q][t] <= T.A_low[q][t] + 8
        assert T.A_low[q][t] / 2**T.bits == pytest.approx(ratio[q, t], rel=1e-6, abs=1e-300)


@given(st.integers(-9, 9), st.lists(st.lists(st.integers(-9, 9), max_size=4), min_size=1, max_size=4))
def test_count_at_least_zero(start, positions):
    exact = sum(start + sum(chosen) >= 0 for chosen in product(*positions))
    assert checker.count_at_least_zero(start, [Counter(p) for p in positions], checker.Meter()) == exact


@given(st.data())
def test_count_class(data):
    n, k = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    rows = [data.draw(st.dictionaries(st.integers(0, n - 1), st.integers(-5, 5), min_size=0)) for _ in range(k)]
    gone, wanted = data.draw(st.sets(st.integers(0, n - 1), max_size=2)), data.draw(st.sets(st.integers(0, n - 1), max_size=2))
    start = data.draw(st.integers(-5, 5))
    exact = sum(
        start + sum(row[t] for row, t in zip(rows, x, strict=True)) >= 0 and wanted <= set(x) and not gone & set(x) for x in product(*rows)
    )
    assert checker.Rounded(start, rows).count_class(gone, wanted, checker.Meter()) == exact


@given(st.data(), st.booleans())
def test_rounded(data, up):
    k = data.draw(st.integers(1, 4))
    harms = [data.draw(st.dictionaries(st.integers(0, 3), st.integers(-(10**4), 10**4), min_size=1)) for _ in range(k)]
    steps = checker.Steps(
        data.draw(st.integers(1, 2000)), [data.draw(st.integers(0, 255)) for _ in range(k)], data.draw(st.integers(1, 20))
    )
    rounded = steps.rounded(harms, up)
    for x in product(*harms):
        reaches = sum(row[t] for row, t in zip(harms, x, strict=True)) >= 0
        counted = rounded.counts(list(x))
        assert counted >= reaches if up else counted <= reaches


def test_counting_beyond_the_limit_is_refused():
    with pytest.raises(checker.RejectedError, match="more than .* units of work .*--work N"):
        checker.count_at_least_zero(0, [Counter({-(2**40): 1, 2**40: 1})] * 3, checker.Meter())
    with pytest.raises(checker.RejectedError, match="bytes of memory; allow more: --work N"):
        checker.count_at_least_zero(0, [Counter({-(2**31): 1, 2**31: 1})] * 3, checker.Meter())


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
    certificate = cp.prove(weights, "cubic").certificate
    monkeypatch.setitem(checker.LOWER_RULES, "cubic", lambda *_: 1 // 0)
    found = cp.check(certificate, weights)
    assert found.verdict is checker.Verdict.INTERNAL_ERROR and "ZeroDivisionError" in found.reason


def test_strategies_of_the_closed_table_are_the_registrys():
    """Names, parameters and their values are written out in the checker, which knows nothing of the registry: they must not drift."""
    from compactproofs.strategies.registry import all_strategies

    for strategy in all_strategies(None, "both"):
        listed = strategy.name in checker.STRATEGIES
        assert listed == (strategy.name != "brute-force")
        if not listed:
            continue
        rule, allowed = checker.STRATEGIES[strategy.name]
        statement = {"name": strategy.name, "parameters": strategy.parameters}
        if strategy.sound:
            checker.check_strategy(statement, rule)
        else:
            with pytest.raises(checker.RejectedError, match="not a sound strategy"):
                checker.check_strategy(statement, rule)
        assert set(allowed) == set(strategy.parameters)


@given(st.integers(-(10**9), 10**9), st.integers(0, 40))
def test_coarser(x, shift):
    (high,), (low,) = (checker.coarser([{0: x}], shift, up)[0].values() for up in (True, False))
    assert (low << shift) <= x <= (high << shift) and high - low <= 1


def test_rounding_beyond_floor_and_ceiling():
    """Counting from above, deep harms are raised to the floor; from below they are left out. A decisive harm decides either way."""
    above = checker.Steps(1, [0, 0], 1).rounded([{0: -100, 1: 0}, {0: 50}], up=True)
    assert above.D[0] == {0: -1, 1: 0} and above.counts([0, 0])
    below = checker.Steps(1, [0, 0], 1).rounded([{0: -100, 1: 0}, {0: 50}], up=False)
    assert below.D[0] == {1: 0} and not below.counts([0, 0]) and below.counts([1, 0])
    assert checker.Steps(2, [255, 255], 9).rounded([{0: 0}, {0: 0}], up=True).start == 1
    assert checker.Steps(2, [255, 255], 9).rounded([{0: 0}, {0: 0}], up=False).start == 1
    assert checker.Steps(256, [255, 0], 9).rounded([{0: 0}, {0: 0}], up=True).start == 1
    assert checker.Steps(256, [255, 0], 9).rounded([{0: 0}, {0: 0}], up=False).start == 0
