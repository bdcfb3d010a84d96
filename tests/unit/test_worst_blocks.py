"""The worst case over blocks: what is proven of each block is true, and the linear programme is solved."""

import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import compactproofs as cp
import oracle
from command import done, refused
from compactproofs.errors import StrategyError, TaskError
from compactproofs.worst_blocks import Block, in_words, least_accuracy, worst_blocks
from models import mostly_right, random_weights


def vertices(shares, factor):
    """Weights from p / factor to factor p that add up to 1, all but one of them at an end."""
    for free in range(len(shares)):
        for ends in product((1 / factor, factor), repeat=len(shares) - 1):
            others = [p for i, p in enumerate(shares) if i != free]
            weights = [end * p for end, p in zip(ends, others, strict=True)]
            weights.insert(free, 1 - sum(weights))
            if shares[free] / factor <= weights[free] <= factor * shares[free]:
                yield weights


def test_the_linear_programme_is_solved():
    """Against all vertices, in exact fractions."""
    rng = np.random.default_rng(0)
    for n in range(1, 6):
        for _ in range(8):
            totals = rng.integers(1, 20, n)
            blocks = [Block(0, i, int(rng.integers(0, total + 1)), int(total)) for i, total in enumerate(totals)]
            shares = [Fraction(int(total), int(totals.sum())) for total in totals]
            for factor in (Fraction(1), Fraction(3, 2), Fraction(7)):
                values = [sum(w * b.share for w, b in zip(weights, blocks, strict=True)) for weights in vertices(shares, factor)]
                assert least_accuracy(blocks, factor) == min(values)
            assert least_accuracy(blocks, None) == min(b.share for b in blocks) <= least_accuracy(blocks, Fraction(10**9))
            assert least_accuracy(blocks, Fraction(1)) == Fraction(sum(b.proven for b in blocks), int(totals.sum()))


QUESTIONS = [{}, {"where": "max>=2"}, {"distribution": "product:1,2,0,3,1"}, {"prefix": (4,)}]


@pytest.mark.parametrize("strategy", ["threshold-best", "threshold-cubic-pooled"])
@pytest.mark.parametrize("options", QUESTIONS)
def test_what_is_proven_of_each_block_is_true(strategy, options):
    """By brute force from the definition, so the guarantee holds for every distribution of the set."""
    for seed in range(2):
        weights = mostly_right(seed) if seed else random_weights(3)
        task = cp.task_for(weights, **options)
        found = worst_blocks(cp.prove(weights, strategy, task, seconds=5), 3)
        right, total = {}, {}
        for x in product(range(5), repeat=3):
            mass = 1 if task.masses is None else int(np.prod([task.masses[i, t] for i, t in enumerate(x)]))
            label = int(task.automaton.label([x])[0])
            if mass and label >= 0:
                total[label, x[-1]] = total.get((label, x[-1]), 0) + mass
                right[label, x[-1]] = right.get((label, x[-1]), 0) + mass * oracle.is_correct(weights, x, label)
        assert {(b.label, b.last): b.total for b in found.blocks} == total
        assert all(b.proven <= right[b.label, b.last] for b in found.blocks)
        assert [b.share for b in found.blocks] == sorted(b.share for b in found.blocks)
        true = [Block(label, last, right[label, last], mass) for (label, last), mass in total.items()]
        assert found.accuracy_at_least <= least_accuracy(true, Fraction(3))
        if strategy == "threshold-best":  # it decides all sequences of so small models where masses are equal
            assert task.uniform is False or found.accuracy_at_least == least_accuracy(true, Fraction(3))


def test_at_a_position():
    weights = mostly_right(2)
    found = worst_blocks(cp.prove(weights, position=1), 2)
    assert len(found.blocks) == 15 and "the same token at position 1" in found.theorem
    assert found.lower <= float(found.accuracy_at_least)


def test_what_has_no_blocks_is_refused():
    weights = random_weights(0)
    for name in ("cubic", "brute-force"):
        with pytest.raises(StrategyError, match="Try the threshold strategies"):
            worst_blocks(cp.prove(weights, name))
    for factor in (0, Fraction(1, 2), 1.5, True):
        with pytest.raises(TaskError, match="at least 1"):
            worst_blocks(cp.prove(weights), factor)


def test_numbers_are_rounded_down():
    assert in_words(Fraction(2, 3), 2) == "0.66" and in_words(Fraction(1)) == "1.00000000" and in_words(Fraction(1, 10**9)) == "0.00000000"


def test_the_command(tmp_path):
    path = tmp_path / "model.safetensors"
    cp.save(mostly_right(1), path)
    out = done("prove", path, "--worst-blocks", "any").stdout
    assert "the blocks of which least is proven, of 15" in out and "whatever the weights of these blocks" in out
    result = done(
        "prove", path, "--worst-blocks", "3/2", "--strategy", "threshold-best", "--strategy", "cubic", "--json", tmp_path / "a.json"
    )
    assert "at least 1 / (3/2) and at most 3/2 times its share" in result.stdout
    worst = {each["strategy"]: each.get("worst_blocks") for each in json.loads((tmp_path / "a.json").read_text())}
    assert worst["cubic"] is None and worst["threshold-best"]["factor"] == "3/2" and len(worst["threshold-best"]["blocks"]) == 15
    assert "expected any, or a factor of at least 1" in refused("prove", path, "--worst-blocks", "0.5")
    assert "about one position" in refused("prove", path, "--worst-blocks", "2", "--position", "every")
