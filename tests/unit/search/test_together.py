"""Looks by two sums at once: their bounds are true, are what the ledger proves, and the draws that lead them are of the leaf."""

import numpy as np
import pytest

import compactproofs as cp
from compactproofs.bounds.pairs import pair_for
from compactproofs.counting.brute_force import brute_force
from compactproofs.ledger.counters import counter_of
from compactproofs.ledger.ledger import Both, Ledger, Spoiler
from compactproofs.ledger.sources import source_of
from compactproofs.search import growth
from compactproofs.search.branches import look, look_by_twos
from compactproofs.search.drawing import spoiled_draws
from compactproofs.search.experience import Experience
from compactproofs.search.grids import leaf_of
from compactproofs.search.pairs import Tries
from compactproofs.search.records import part_of_tree
from compactproofs.search.together import Twos, by_size
from compactproofs.tasks import task_for
from compactproofs.tasks.question import Question
from models import mostly_right, random_weights
from unit.search.test_growth import plot_of, truth

SIDES = {"below": False, "above": True}


def spoiled_a_lot(seed):
    """A network that several outputs spoil."""
    return mostly_right(seed, v=6, k=4, noise=1.2) if seed % 2 else random_weights(seed, n_ctx=4, scale=[0.5, 2.0, 4.0][seed % 3])


def verified(plot, branch, side, weights):
    """What the record of a look proves by itself: how much may fail, or be right."""
    part = part_of_tree(plot.subject, plot.query, branch, side)
    parts = ((part,), None) if side == "below" else ((), (part,))
    found = cp.verify(Ledger(Question(task_for(weights)), weights.sha256, *parts), weights)
    return found.failing[0] if side == "below" else found.right[0]


@pytest.mark.parametrize("steps", [1, 3, 40])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("seed", range(6))
def test_looks_by_twos_are_true_and_are_what_the_ledger_proves(seed, side, steps):
    weights = spoiled_a_lot(seed)
    label = weights.d_vocab - 1
    for query in range(weights.d_vocab):
        plot, root = plot_of(weights, label, query)
        root.learn(look(plot, root, Tries(1, 0, 0, True, False, True)))
        found = look_by_twos(plot, root, Twos(steps, 0, SIDES[side]))
        total, right = truth(weights, label, query)
        assert total - found.failing <= right <= found.right
        root.below = root.above = found
        assert verified(plot, root, side, weights) == (found.failing if side == "below" else found.right)


@pytest.mark.parametrize("side", SIDES)
def test_two_sums_at_once_are_used_and_win(side):
    """On some branches of some models; else the tests above would say nothing."""
    used = better = 0
    for seed in range(1, 24, 2):
        weights = spoiled_a_lot(seed)
        for query in range(weights.d_vocab):
            plot, root = plot_of(weights, weights.d_vocab - 1, query)
            plain = look(plot, root, Tries(1000, 0, 0, True, True, True))
            root.learn(plain)
            found = look_by_twos(plot, root, Twos(60, 0, SIDES[side]))
            root.below = root.above = found
            leaf = part_of_tree(plot.subject, query, root, side).tree
            used += any(isinstance(term, Both) for term in leaf.terms)
            better += found.failing < plain.failing if side == "below" else found.right < plain.right
    assert used > 3 and better > 3


def test_one_spoiler_is_written_as_ever_and_nobody_is_spoiled_without_outputs():
    weights = mostly_right(0, v=5, k=4, noise=0.05)
    plot, root = plot_of(weights, 4, 4)
    found = [look_by_twos(plot, root, Twos(20, 0, above)) for above in (False, True)]
    total, right = truth(weights, 4, 4)
    assert total - found[0].failing <= right <= found[1].right


@pytest.mark.parametrize("seed", range(4))
def test_draws_are_of_the_leaf_and_tell_overlaps(seed):
    weights = spoiled_a_lot(2 * seed + 1)
    plot, _ = plot_of(weights, weights.d_vocab - 1, 1)
    pair = pair_for(plot.evaluation, plot.subject.tokens, plot.subject.label, 1, plot.candidates)
    leaf = leaf_of(plot.masses, plot.subject.automaton, plot.subject.usual, plot.subject.usual)
    ranking = by_size(pair, plot.candidates, leaf)
    few = len(ranking.outputs)
    spoils, weight = spoiled_draws(pair, ranking, few, leaf, 300)
    for x in range(few):
        assert weight[x].sum() == pytest.approx(1.0) or not weight[x].any()
        assert spoils[x, weight[x] > 0, x].all() and (weight[x] >= 0).all()


def test_masses_beyond_62_bits_are_taken_off_exactly():
    """Bounds by several spoilers take off whole leaves: masses rounded up would take off too much."""
    several = 0
    for seed in (2, 5):
        weights = mostly_right(seed, v=7, k=24, noise=2.0)
        plot, root = plot_of(weights, 6, 6)
        found = look_by_twos(plot, root, Twos(60, 0, True))
        root.below = root.above = found
        leaf = part_of_tree(plot.subject, 6, root, "above").tree
        harms = source_of(weights, Question(task_for(weights)), intervals=False)(plot.subject, np.array([6]))
        automaton = root.automaton
        spoilers = [term for term in leaf.terms if isinstance(term, Spoiler)]
        counted = sum(counter_of(t, harms, plot.masses, automaton, strict=isinstance(t, Spoiler)).mass for t in leaf.terms)
        assert plot.unit > 0 and plot.mass(automaton) > 7**23
        assert found.right == min(counted - (len(spoilers) - 1) * 7**23, root.mass)
        assert verified(plot, root, "above", weights) in (found.right, plot.mass(automaton))
        several += len(spoilers) > 1 and found.right < root.mass
    assert several


@pytest.mark.parametrize("k", [31, 48, 63])
def test_sums_of_counts_do_not_overflow(k):
    """Nearly every sequence has the label, and most fail, by several outputs each: counts are about 2^61, and there are many."""
    large = 0
    for seed in range(12):
        weights = random_weights(seed, n_ctx=k, d_vocab=9, d_vocab_out=9) if seed % 2 else mostly_right(seed, v=9, k=k, noise=6.0)
        plot, root = plot_of(weights, 8, 8)
        for steps in (1, 5, 100):
            found = look(plot, root, Tries(steps, 0, 0, seed % 3 == 0, True, True))
            looks = [found, *(look_by_twos(plot, root, Twos(steps, 0, above)) for above in (False, True))]
            assert all(0 <= each.failing <= root.mass and 0 <= each.right <= root.mass for each in looks)
            assert min(each.failing for each in looks) + min(each.right for each in looks) >= root.mass
            for each, side in zip(looks[1:], SIDES, strict=True):
                root.below = root.above = each
                assert verified(plot, root, side, weights) == (each.failing if side == "below" else each.right)
        large += root.mass >> plot.unit > 1 << 61
    assert large == 12 or k != 63


def test_a_search_by_twos_has_certificates_and_flops(monkeypatch):
    monkeypatch.setattr(growth, "COUNTABLE", 0)
    monkeypatch.setattr(growth, "LEVELS", (2, 4))
    monkeypatch.setattr(growth, "TWOS", (3, 6))
    weights = mostly_right(1, v=6, k=4, noise=1.2)
    proof = cp.prove(weights, "threshold-best", upper=True, seconds=20.0)
    terms = [term for part in (*proof.ledger.lower, *proof.ledger.upper) for leaf in part.leaves if leaf is not None for term in leaf.terms]
    assert any(isinstance(term, Both) for term in terms) and proof.flops > 0
    assert proof.correct_at_least <= brute_force(weights, task_for(weights), threads=1).correct <= proof.correct_at_most
    certificate = proof.certificate
    assert certificate.correct_at_least >= proof.correct_at_least and certificate.correct_at_most <= proof.correct_at_most
    assert cp.check(certificate, weights).accepted


def test_what_is_learnt_replaces_what_was_expected():
    known = Experience(0.5)
    assert known.part == 0.5 and known.slowness == 1.0
    for _ in range(200):
        known.learn(gap=1.0, closed=0.1, estimated=1.0, seconds=3.0)
    assert known.part == pytest.approx(0.1, abs=0.05) and known.slowness == pytest.approx(3.0, abs=0.2)
    assert np.isfinite(Experience(0.1).part)
