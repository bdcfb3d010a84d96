import numpy as np
import pytest

from compactproofs.bounds.factored import Windows, dyadic_blocks, signed


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
