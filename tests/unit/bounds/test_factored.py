import numpy as np
import pytest

from compactproofs.arrays.arithmetic import Float64
from compactproofs.bounds.factored import Direct, RowMaxima, WeightedOutputs, Windows, dyadic_blocks, signed


@pytest.mark.parametrize(("n", "centre"), [(1, 0), (2, 1), (8, 7), (64, 63), (9, 3), (5, 0)])
def test_dyadic_blocks_partition_the_tokens(n, centre):
    blocks = dyadic_blocks(n, centre)
    assert [first for first, _ in blocks] == [0, *(end for _, end in blocks)][:-1]
    assert blocks[-1][1] == n and all(first < end for first, end in blocks)
    assert (centre, centre + 1) in blocks


@pytest.mark.parametrize(("larger", "reduce"), [(np.maximum, np.max), (np.minimum, np.min)])
def test_windows_answer_for_every_range(larger, reduce):
    x = np.random.default_rng(0).normal(size=(3, 11))
    windows = Windows.of(x, larger)
    for first in range(11):
        for end in range(first + 1, 12):
            assert np.array_equal(windows.over(first, end), reduce(x[:, first:end], axis=1))


def test_signed_takes_the_worse_end_of_attention():
    bracket, lower, upper = np.array([2.0, -2.0]), np.array([1.0, 1.0]), np.array([3.0, 3.0])
    assert signed(bracket, lower, upper).tolist() == [6.0, -2.0]


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_brackets_bound_every_output_by_the_margin_of_either_sign(exact, weighted):
    rng = np.random.default_rng(0)
    V, PVOU, EU, margin = (rng.normal(size=shape) for shape in ((1, 4, 5), (3, 5), (4, 5), (4, 5)))
    w = rng.integers(1, 100, size=(5, 5)) if weighted else np.ones((5, 5), dtype=np.int64)
    rest = np.array([(row[:, None] - row).max() for row in EU])  # at least every difference
    direct = Direct(np.zeros(5), table=EU) if exact else Direct(np.zeros(5), rest_upper=rest)
    outputs = WeightedOutputs(V, PVOU, direct, w, margin, Float64()) if weighted else RowMaxima.of(V, PVOU, direct, margin, Float64())
    labels, tokens = np.array([0, 3]), np.arange(4)
    b = outputs.brackets(labels, tokens)
    for x, m in enumerate(labels.tolist()):
        for o in (o for o in range(5) if o != m):
            assert (b.s[x] >= w[m, o] * (EU[:, o] - EU[:, m] + margin[:, m]) - 1e-9).all()
            assert (b.r[x] >= w[m, o] * (V[:, :, o] - V[:, :, m]) - 1e-9).all()
