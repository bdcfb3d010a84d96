from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest

from compactproofs import Weights
from compactproofs.errors import ModelError
from models import random_weights, with_tensors


def changed(**changes):
    return {**random_weights(0).tensors, **changes}


def test_weights_are_frozen_copies():
    source = np.array(random_weights(0).W_E)
    weights = Weights(**changed(W_E=source))
    source[0, 0] = 99
    assert weights.W_E[0, 0] != 99
    with pytest.raises(ValueError, match="read-only"):
        weights.W_E[0, 0] = 1
    with pytest.raises(FrozenInstanceError):
        weights.W_E = source


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"W_E": np.full((5, 4), np.nan, np.float32)}, r"W_E\[0, 0\] is nan \(20 such entries\); expected finite"),
        ({"W_U": np.full((4, 5), np.inf, np.float32)}, r"W_U\[0, 0\] is inf"),
        ({"W_Q": np.zeros((4, 2), np.float16)}, "W_Q has dtype float16; expected float32"),
        ({"W_Q": np.zeros((4, 2), np.int64)}, "W_Q has dtype int64"),
        ({"W_Q": np.full((4, 2), 0.1)}, r"W_Q\[0, 0\] = .*0.1.* is not a float32 number"),
        ({"W_Q": np.full((4, 2), 1e300)}, "is not a float32 number"),
        ({"W_K": np.zeros((4, 3), np.float32)}, "d_head is 2 in W_Q but 3 in W_K"),
        ({"W_E": np.zeros((5, 3), np.float32)}, "d_model is 3 in W_E but 4 in W_pos"),
        ({"W_O": np.zeros((4, 2), np.float32)}, "shapes do not fit together"),
        ({"W_V": np.zeros((1, 4, 2), np.float32)}, "W_V has shape .*; expected two axes"),
        ({"W_pos": np.zeros((0, 4), np.float32)}, "W_pos has shape .*must be at least 1"),
        ({"score_divisor_squared": Fraction(1, 10**100)}, "must be a Fraction between"),
        ({"W_E": np.ma.masked_array(np.ones((5, 4), np.float32), mask=True)}, "masked array"),
        ({"score_divisor_squared": Fraction(-1)}, "must be a Fraction between"),
    ],
)
def test_bad_weights_are_refused_with_the_offending_value(changes, message):
    with pytest.raises(ModelError, match=message):
        Weights(**changed(**changes))


def test_exact_float64_values_are_accepted():
    tensors = {name: t.astype(np.float64) for name, t in random_weights(0).tensors.items()}
    assert Weights(**tensors) == random_weights(0)


def test_from_mapping_names_what_is_missing_and_what_is_extra():
    tensors = {name: t for name, t in random_weights(0).tensors.items() if name != "W_K"}
    with pytest.raises(ModelError, match="missing: W_K; not expected: b_U"):
        Weights.from_mapping({**tensors, "b_U": np.zeros(5)})
    assert Weights.from_mapping(random_weights(0).tensors) == random_weights(0)


def test_the_hash_depends_on_every_bit_of_the_function_and_on_nothing_else():
    base = random_weights(0)
    W_E = np.array(base.W_E)
    W_E[2, 1] = np.nextafter(W_E[2, 1], np.float32(np.inf))
    different = [
        with_tensors(base, W_E=W_E),
        with_tensors(base, W_Q=base.W_K, W_K=base.W_Q),
        Weights(**base.tensors, score_divisor_squared=Fraction(1)),
        random_weights(0, d_vocab=10, d_model=2),
    ]
    assert len({base.sha256, *(w.sha256 for w in different)}) == 5
    same = Weights(**base.tensors, assumptions=("no config",))
    assert same == base and hash(same) == hash(base) and same != "something else"


def test_the_canonical_hash_is_stable():
    """Certificates carry this hash; changing its definition is a change of format."""
    ones = Weights(**{name: np.ones_like(t) for name, t in random_weights(0).tensors.items()})
    assert ones.sha256 == "7dcc7b76f0549edaa2514a28b0dd37b6de07ab8f51e177b7562d0b3d87bc83aa"


def test_repr_shows_the_dimensions():
    assert repr(random_weights(0)).startswith("Weights(d_vocab=5, d_vocab_out=5, d_model=4, d_head=2, n_ctx=3, sha256=")
