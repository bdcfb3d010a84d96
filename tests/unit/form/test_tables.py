from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

import oracle
from compactproofs.form.tables import float_circuits, interval_circuits
from compactproofs.model.forward import forward
from models import adversarial_models, random_weights

SIZES = [
    {"n_ctx": 4, "d_vocab": 7, "d_vocab_out": 9, "d_model": 5, "d_head": 3},
    {"n_ctx": 6, "d_vocab": 4, "d_vocab_out": 5, "d_model": 2, "d_head": 8},
    {"n_ctx": 1, "d_vocab": 3, "d_vocab_out": 4, "d_model": 5, "d_head": 2},
]


def table_logits(tables, tokens):
    query = tokens[:, -1]
    positions = np.arange(tokens.shape[1])
    scores = tables.EQKE[query[:, None], tokens] + tables.EQKP[query[:, None], positions]
    attention = np.exp(scores - scores.max(axis=1, keepdims=True))
    attention /= attention.sum(axis=1, keepdims=True)
    return tables.EU[query] + np.einsum("bi,bio->bo", attention, tables.EVOU[tokens] + tables.PVOU[positions])


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("divisor", [None, Fraction(1), Fraction(9, 4)])
def test_the_tables_and_the_forward_pass_agree(sizes, divisor):
    options = {} if divisor is None else {"score_divisor_squared": divisor}
    weights = random_weights(1, scale=0.5, **sizes, **options)
    tokens = np.random.default_rng(2).integers(0, sizes["d_vocab"], size=(50, sizes["n_ctx"]))
    np.testing.assert_allclose(table_logits(float_circuits(weights), tokens), forward(weights, tokens), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("sizes", SIZES)
def test_the_forward_pass_agrees_with_the_oracle(sizes):
    weights = random_weights(3, scale=0.5, **sizes)
    tokens = np.random.default_rng(4).integers(0, sizes["d_vocab"], size=(5, sizes["n_ctx"]))
    for row, values in zip(tokens, forward(weights, tokens), strict=True):
        exact = [float(x.mid()) for x in oracle.logits(weights, row.tolist())]
        np.testing.assert_allclose(values, exact, rtol=1e-9, atol=1e-9)
    single = forward(weights, tokens, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, forward(weights, tokens), rtol=1e-3, atol=1e-3)


def _exact_tables(weights):
    """The tables from their definition, in balls of 600 bits."""
    from compactproofs.form.embedded import position_centre

    ctx.prec = oracle.PRECISION
    W = {name: [[arb(float(x)) for x in row] for row in t] for name, t in weights.tensors.items()}
    centre = [arb(float(x)) for x in position_centre(weights)]
    divisor = (arb(weights.score_divisor_squared.numerator) / weights.score_divisor_squared.denominator).sqrt()
    add = lambda a, b: [x + y for x, y in zip(a, b, strict=True)]  # noqa: E731
    minus = lambda a, b: [x - y for x, y in zip(a, b, strict=True)]  # noqa: E731
    queries = [add(row, W["W_pos"][-1]) for row in W["W_E"]]
    keys = [add(row, centre) for row in W["W_E"]]
    positions = [minus(row, centre) for row in W["W_pos"]]
    score = lambda q, h: oracle._dot(oracle._times(q, W["W_Q"]), oracle._times(h, W["W_K"])) / divisor  # noqa: E731
    write = lambda h: oracle._times(oracle._times(oracle._times(h, W["W_V"]), W["W_O"]), W["W_U"])  # noqa: E731
    return {
        "EQKE": [[score(q, h) for h in keys] for q in queries],
        "EQKP": [[score(q, h) for h in positions] for q in queries],
        "EVOU": [write(h) for h in keys],
        "PVOU": [write(h) for h in positions],
        "EU": [oracle._times(q, W["W_U"]) for q in queries],
    }


CASES = [("random", random_weights(5, **SIZES[0])), ("other scale", random_weights(6, score_divisor_squared=Fraction(7, 3)))]


@pytest.mark.parametrize(("name", "weights"), [*CASES, *adversarial_models()], ids=lambda x: x if isinstance(x, str) else "")
def test_interval_circuits_contain_the_exact_tables(name, weights):
    tables = interval_circuits(weights)
    for table, exact in _exact_tables(weights).items():
        found = getattr(tables, table)
        for i, row in enumerate(exact):
            for j, value in enumerate(row):
                assert not arb(float(found.lower[i, j])) > value, (table, i, j)
                assert not arb(float(found.upper[i, j])) < value, (table, i, j)


def test_interval_circuits_of_an_ordinary_model_are_narrow():
    tables = interval_circuits(random_weights(5, scale=1.0))
    for table in ("EQKE", "EQKP", "EVOU", "PVOU", "EU"):
        found = getattr(tables, table)
        assert np.max(found.upper - found.lower) < 1e-12


@pytest.mark.parametrize("tokens", [np.zeros((2, 5), int), np.full((2, 3), 5), np.full((2, 3), -1)])
def test_forward_refuses_tokens_that_do_not_fit(tokens):
    with pytest.raises(ValueError, match="tokens"):
        forward(random_weights(0), tokens)
