import numpy as np
import pytest

from compactproofs.arrays import FlopCounter, Phantom


def cost(function, *shapes):
    counter = FlopCounter()
    result = function(*(Phantom(shape, counter) for shape in shapes))
    return sum(counter.steps.values()), result.shape


@pytest.mark.parametrize(
    ("function", "shapes", "flops", "shape"),
    [
        (lambda a, b: a + b, [(3, 1), (4,)], 12, (3, 4)),
        (lambda a: 2.0 * a, [(5,)], 5, (5,)),
        (lambda a: np.ones((2, 5)) - a, [(5,)], 10, (2, 5)),
        (lambda a: np.exp(a), [(3, 4)], 12, (3, 4)),
        (abs, [(3, 4)], 12, (3, 4)),
        (lambda a: a < 0.0, [(3, 4)], 12, (3, 4)),
        (lambda a, b: a @ b, [(3, 5), (5, 4)], 12 * 9, (3, 4)),
        (lambda a, b: a @ b, [(5,), (5, 4)], 4 * 9, (4,)),
        (lambda a: np.ones((2, 3)) @ a, [(3, 4)], 8 * 5, (2, 4)),
        (lambda a: a.max(axis=1), [(3, 5)], 12, (3,)),
        (lambda a: a.max(), [(3, 5)], 14, ()),
        (lambda a: a.sum(axis=-1), [(2, 3, 5)], 24, (2, 3)),
        (lambda a: a.mean(axis=0), [(3, 5)], 10 + 5, (5,)),
        (lambda a: np.sort(a, axis=1), [(3, 5)], 12, (3, 5)),
        (lambda a: a.cumsum(axis=1), [(3, 5)], 12, (3, 5)),
        (lambda a: np.maximum.accumulate(a, axis=1), [(3, 5)], 12, (3, 5)),
        (lambda a: np.where(np.eye(3, dtype=bool), -np.inf, a), [(3, 3)], 9, (3, 3)),
        (lambda a: a.T[1:, None], [(3, 5)], 0, (4, 1, 3)),
        (lambda a: a[np.zeros((2, 2), int), 1], [(3, 5)], 0, (2, 2)),
        (lambda a: np.concatenate([a, np.zeros((3, 1))], axis=1), [(3, 5)], 0, (3, 6)),
        (lambda a: np.stack([a, a], axis=2), [(3, 5)], 0, (3, 5, 2)),
        (lambda a: a.reshape(5, 3), [(3, 5)], 0, (5, 3)),
    ],
)
def test_costs_follow_the_papers_conventions(function, shapes, flops, shape):
    assert cost(function, *shapes) == (flops, shape)


def test_steps_are_charged_separately_and_nest():
    counter = FlopCounter()
    x = Phantom((4,), counter)
    with counter.step("outer"):
        x = x + 1.0
        with counter.step("inner"):
            x = x * x
        x = x - 1.0
    assert counter.steps == {"outer": 8, "inner": 4}


def test_a_phantom_has_no_values_to_branch_on():
    with pytest.raises(TypeError, match="may not branch"):
        bool(Phantom((1,), FlopCounter()))
    with pytest.raises(ValueError, match="matmul|mismatch"):
        Phantom((2, 3), FlopCounter()) @ Phantom((2, 3), FlopCounter())
    with pytest.raises(TypeError):
        np.median(Phantom((3,), FlopCounter()))
