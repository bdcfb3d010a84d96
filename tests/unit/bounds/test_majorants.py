"""Every bound of a leaf against every sequence of it: blends, harms, both sides, hints from the search and from nowhere.

The truth is the network in float64; bounds are compared with room for its rounding, 1e-9 of what is compared.
"""

from dataclasses import replace
from functools import cache, cached_property

import numpy as np
import pytest

import blocks
from compactproofs.arrays.arithmetic import Float64, Rigorous, Uniformly
from compactproofs.arrays.uniform import Uniform
from compactproofs.bounds import final_norm, neuron_bounds, norm_bounds
from compactproofs.bounds import jensen as jensen_module
from compactproofs.bounds import majorants as majorants_module
from compactproofs.bounds.majorants import Majorants
from compactproofs.bounds.scene import Blend, Scene, middles
from compactproofs.bounds.stream import Stream, UnprovenError
from compactproofs.counting.count_up import Automaton
from compactproofs.counting.splits import with_fewer, with_more
from compactproofs.counting.subject import for_queries, subject_of
from compactproofs.counting.walks import frequencies, moves_of
from compactproofs.form.block import activated
from compactproofs.form.whole_block import uniform_block, whole_block
from compactproofs.ledger.sources import scene_of
from compactproofs.search.relaxing import relaxed, typical_attention
from compactproofs.tasks import task_for
from compactproofs.tasks.question import Question
from hostile import hostile_hints
from thinned import thinned

SEEDS = (0,)


class Case:
    """A leaf of a tiny block, and the truth about its sequences."""

    def __init__(self, network, label, q, splits, form, floats):
        self.network, self.label, self.form, self.floats = network, label, form, floats
        self.subject = subject_of(Question(task_for(network)), label)
        self.query = int(self.subject.tokens[q])
        self.automaton, self.masses = self.subject.automaton, for_queries(self.subject, np.array([q]))
        for token, n, more in splits:
            self.automaton = (with_more if more else with_fewer)(self.automaton, token, n)
        self.scene = scene_of(form, self.subject, self.query, self.automaton, self.masses)
        self.typical = typical_attention(self.form, self.scene, frequencies(self.masses, self.scene.moves))

    @cached_property
    def sequences(self):
        """(sequence, position)"""
        return np.array([x for x in blocks.SEQUENCES if self._accepts(x)], dtype=np.int64).reshape(-1, blocks.K)

    def _accepts(self, x):
        if max(x) != self.label or x[-1] != self.query:
            return False
        state = self.automaton.first
        for t in x:
            state = self.automaton.following[state, t]
            if state < 0:
                return False
        return bool(self.automaton.accepting[state])

    def stream(self, arithmetic=None, typical=None):
        form = whole_block(self.network, Rigorous()) if isinstance(arithmetic, Rigorous) else self.form
        return Stream(form, self.scene, self.subject.tokens, self.query, typical or self.typical, arithmetic or Uniformly())

    def search(self):
        return relaxed(self.form, self.scene, self.subject.tokens, self.query, self.typical)

    def along(self, table):
        """(sequence, head, position, ...): entries of a table (head, position, token, ...) along every sequence."""
        return np.moveaxis(table[:, np.arange(blocks.K), self.sequences], 1, 0)

    @cached_property
    def attention(self):
        """(sequence, head, position)"""
        a = self.along(self.floats.attention[0][:, self.query])
        return a / a.sum(axis=2, keepdims=True)

    def averages(self, table):
        """(sequence, ...): the sum over heads of what attention averages."""
        return np.einsum("shk,shk...->s...", self.attention, self.along(table))

    def blends(self, blend):
        """(sequence, column)"""
        return middles(blend.constant) + self.averages(middles(blend.parts))

    @cached_property
    def true_differences(self):
        """(sequence, output): s s_f (logit_o - logit_m)"""
        form, r = self.floats, self.floats.base[self.query] + self.averages(self.floats.values)
        s = np.ones((len(r), 1)) if form.sigma_2 is None or form.mlp is None else divisor(r, form.sigma_2)
        out = r
        if form.mlp is not None:
            y = r @ form.mlp.W_in / s + form.mlp.b_in
            out = r + form.mlp.b_out + activated(form.mlp.act, y, Float64()) @ form.mlp.W_out
        s_f = np.ones((len(r), 1)) if form.sigma_final is None else divisor(out, form.sigma_final)
        logits = out @ form.W_U / s_f + form.b_U
        return s * s_f * (logits - logits[:, [self.label]])


def divisor(x, sigma):
    x = x - x.mean(axis=1, keepdims=True) if sigma.centred else x
    return np.sqrt((x * x).mean(axis=1, keepdims=True) + sigma.eps)


@cache
def forms(seed, kind, harder):
    if kind == "straddling":
        network = blocks.straddling_block(seed)
    elif kind == "MLP with a large eps":
        network = blocks.block_of(seed, act="relu", final="LN", harder=harder, eps=30.0)
    else:
        network = blocks.tiny_block(seed, kind, harder=harder)
    return network, uniform_block(network), whole_block(network, Float64())


def cases(kind, seeds=SEEDS, harder=(False, True)):
    """Leaves of different widths of some networks."""
    for seed in seeds:
        for hard in harder:
            network, form, floats = forms(seed, kind, hard)
            rng = np.random.default_rng(seed)
            for label in (4, 3, 1):
                for q in {0, label, int(rng.integers(0, label + 1))}:
                    token = int(rng.integers(0, label + 1))
                    for splits in ([], [(label, 2, False)], [(token, 1, True)], [(token, 1, False)]):
                        case = Case(network, label, q, splits, form, floats)
                        if len(case.sequences):
                            yield case


def violations(case, majorants):
    """Sequences and outputs for which a bound is below what it bounds."""
    form, m = case.form, case.label
    D, db = form.W_U - form.W_U[:, [m]], form.b_U - form.b_U[[m]]
    found = []
    for sign in (1.0, -1.0):
        blend = majorants.differences_upper(D * sign, db * sign)
        error = blend.constant.error + case.network.n_heads * blend.parts.error
        harms = middles(majorants.harms(blend)) if case.network.n_heads > 1 else None
        true, bound = sign * case.true_differences, case.blends(blend)
        room = error + 1e-9 * (1.0 + np.abs(true) + np.abs(bound))
        found += [(x, o) for x, o in zip(*np.nonzero(bound + room < true), strict=True)]
        if harms is not None:
            total = np.einsum("kso->so", np.stack([harms[:, i, case.sequences[:, i]].T for i in range(blocks.K)]))
            found += [(x, o, "harms") for x, o in zip(*np.nonzero(total + room + 1e-9 * np.abs(harms).max() < bound), strict=True)]
    return found


@pytest.mark.parametrize("kind", thinned([*blocks.KINDS, "straddling"]))
def test_majorants_are_above_every_sequence(kind):
    tight = 0
    for case in cases(kind, seeds=blocks.STRADDLING if kind == "straddling" else SEEDS):
        found = case.search()
        if found is None:
            continue
        hints, majorants = found
        checked = Majorants.of(case.stream(), hints)  # the search's own premises hold
        assert violations(case, majorants) == []
        D = case.form.W_U - case.form.W_U[:, [case.label]]
        one, other = (m.differences_upper(D, case.form.b_U - case.form.b_U[[case.label]]) for m in (majorants, checked))
        assert np.array_equal(middles(one.parts), middles(other.parts))
        tight += 1
    assert tight > 12


@pytest.mark.parametrize(("seed", "rounds"), [(7, 2), pytest.param(8, 4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", thinned(blocks.KINDS))
def test_majorants_of_any_hints_are_above_every_sequence_or_unproven(kind, seed, rounds):
    """Hints from nowhere: centres, ranges, directions, shares, tangents."""
    rng = np.random.default_rng(seed)
    proven = 0
    for case in cases(kind, seeds=(1,)):
        found = case.search()
        for _ in range(rounds):
            hints = hostile_hints(found[0], case.network.n_heads, rng) if found is not None else None
            if hints is None:
                continue
            try:
                majorants = Majorants.of(case.stream(typical=hints.typical), hints)
                bad = violations(case, majorants)
            except UnprovenError:
                continue
            assert bad == []
            proven += 1
    assert proven > 10


MUTANTS = {
    "only one end of s": ["LN, MLP", "two heads, LN, MLP"],
    "tangents of their own at each end": ["straddling"],
    "a chord over half its range": ["MLP", "two heads, MLP"],
    "the tangent where a chord or J belongs": ["MLP", "GELU"],
    "shares that add up to more than 1": ["two heads, MLP", "two heads, LN, MLP"],
    "the larger share where the part is negative": ["two heads", "three heads"],
    "a final norm above without what neurons are off": ["MLP, final LN", "LN, MLP", "GELU, final LN"],
    "a final norm above without what the norm before is off": ["LN, MLP", "two heads, LN, MLP"],
    "a final norm above by the length of the centre": ["MLP, final LN", "two heads, LN, MLP"],
    "references of neurons without their biases": ["MLP, final LN", "LN, MLP"],
    "a norm above by its tangent": ["LN, MLP", "final LN"],
    "the direct path at the lower end of s": ["LN, MLP", "two heads, LN, MLP"],
    "the bias of the final norm left out": ["final LN", "LN, MLP"],
    "the eps of a final norm left out": ["MLP with a large eps"],
    "g2 by J instead of its tangent": ["GELU", "three heads, GELU"],
}
"""Mistakes, each with kinds of networks on which it must be found."""


def mistaken(mutant, monkeypatch):
    """Put a mistake into the package."""
    lines = neuron_bounds.Neurons._lines_of_relu
    match mutant:
        case "only one end of s":
            monkeypatch.setattr(Majorants, "larger", lambda self, cases: cases[-1])
        case "tangents of their own at each end":

            def upper(self, D, rest, original=Majorants.stream_upper):
                if self.neurons is None or not self.neurons.ends.behind_norm:
                    return original(self, D, rest)
                found = []
                for x in range(2):
                    y = self.neurons.inputs(x, np.arange(len(self.neurons.hints.point)))
                    typical = middles(y.constant) + self.stream.averages(y.parts).sum(axis=0)
                    hints = replace(self.neurons.hints, point=typical)
                    found.append(original(replace(self, neurons=replace(self.neurons, hints=hints)), D, rest)[x])
                return found

            monkeypatch.setattr(Majorants, "stream_upper", upper)
        case "a chord over half its range":

            def narrow(self):
                h = self.hints
                middle = 0.5 * (h.low + h.high)
                both = np.isfinite(h.low) & np.isfinite(h.high)
                inner = replace(h, low=np.where(both, 0.5 * (h.low + middle), h.low), high=np.where(both, 0.5 * (h.high + middle), h.high))
                return lines(replace(self, hints=inner))

            monkeypatch.setattr(neuron_bounds.Neurons, "_lines_of_relu", narrow)
        case "the tangent where a chord or J belongs":

            def tangent(self, D, rest, original=Majorants.stream_upper):
                found = self.neurons.lines
                flat = replace(found, up_slope=found.down_slope, up_rest=found.down_rest)
                mine = replace(self.neurons, hints=replace(self.neurons.hints, bent=np.zeros_like(self.neurons.hints.bent)))
                mine.__dict__["lines"] = flat
                return original(replace(self, neurons=mine), D, rest)

            monkeypatch.setattr(Majorants, "stream_upper", tangent)
        case "shares that add up to more than 1":

            def generous(perspective, blend, shares):
                b = np.ones_like(shares)[:, None, None, :]
                at = perspective(blend.constant[None], np.ones(1))
                return Blend(at.reshape(-1), perspective(blend.constant * b + blend.parts, b) - at * b)

            for module in (jensen_module, neuron_bounds, norm_bounds, final_norm, majorants_module):
                monkeypatch.setattr(module, "jensen", generous)
        case "the larger share where the part is negative":
            original = Scene.shares.func
            monkeypatch.setattr(Scene, "shares", property(lambda self: (original(self)[1],) * 2))
        case "a final norm above without what neurons are off":
            monkeypatch.setattr(neuron_bounds.Neurons, "widths", lambda self, x, weights: self.stream.constant(0.0))
        case "a final norm above without what the norm before is off":
            monkeypatch.setattr(final_norm, "_middle", lambda low, high: (0.5 * (low + high), 0.0))
        case "a final norm above by the length of the centre":
            monkeypatch.setattr(
                final_norm, "jensen", lambda f, blend, shares: Blend(f(blend.constant[None], 1.0)[0], blend.parts[..., :1] * 0.0)
            )
        case "references of neurons without their biases":
            original_upper = final_norm.final_lengths_upper

            def without(neurons, sigma, shares):
                mlp = replace(neurons.mlp, b_in=neurons.mlp.b_in * 0.0)
                found = replace(neurons, mlp=mlp)
                found.__dict__.update(lines=neurons.lines, curves=neurons.curves)
                return original_upper(found, sigma, shares)

            monkeypatch.setattr(majorants_module, "final_lengths_upper", without)
        case "the eps of a final norm left out":
            original_upper = final_norm.final_lengths_upper

            def exact(neurons, sigma, shares):
                return original_upper(neurons, replace(sigma, eps=0.0), shares)

            monkeypatch.setattr(majorants_module, "final_lengths_upper", exact)
        case "a norm above by its tangent":
            monkeypatch.setattr(norm_bounds.Divisor, "upper", property(lambda self: self.lower))
        case "the direct path at the lower end of s":
            original_of = neuron_bounds.Ends.of

            def of(stream, divisor):
                found = original_of(stream, divisor)
                return replace(found, high=found.low)

            monkeypatch.setattr(neuron_bounds.Ends, "of", of)
        case "the bias of the final norm left out":
            original_differences = Majorants.differences_upper
            monkeypatch.setattr(Majorants, "differences_upper", lambda self, D, db: original_differences(self, D, db * 0.0))
        case "g2 by J instead of its tangent":

            def swapped(self, original=neuron_bounds.Neurons._lines_of_others):
                found = original(self)
                return replace(found, up_rest=found.up_rest - 0.05)

            monkeypatch.setattr(neuron_bounds.Neurons, "_lines_of_others", swapped)
        case _:
            raise AssertionError(mutant)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mistakes_are_found(mutant, monkeypatch):
    """Each mistake that the theory warns of makes some bound fall below the truth."""
    mistaken(mutant, monkeypatch)
    rng = np.random.default_rng(0)
    for kind in MUTANTS[mutant]:
        seeds = {"seeds": blocks.STRADDLING, "harder": (False,)} if kind == "straddling" else {"seeds": range(6)}
        for case in cases(kind, **seeds):
            found = case.search()
            if found is None:
                continue
            hints, majorants = found
            if violations(case, majorants) or any(is_broken(case, hostile_hints(hints, case.network.n_heads, rng)) for _ in range(2)):
                return
    raise AssertionError(f"nothing was found for: {mutant}")


def is_broken(case, hints):
    try:
        return bool(violations(case, Majorants.of(case.stream(typical=hints.typical), hints)))
    except UnprovenError:
        return False


WRONG_SHAPES = {
    "on by no range": ("MLP", "neurons", {"low": lambda h: np.full_like(h.low, np.inf), "bent": lambda h: np.zeros_like(h.bent)}),
    "off by no range": ("MLP", "neurons", {"high": lambda h: np.full_like(h.high, -np.inf), "bent": lambda h: np.zeros_like(h.bent)}),
    "one share for two heads": (
        "two heads, MLP",
        "neurons",
        {"bent": lambda h: np.ones_like(h.bent), "shares": lambda h: np.ones((1, h.shares.shape[1]))},
    ),
    "one share of a norm for two heads": ("two heads, LN, MLP", "norm", {"bent": lambda h: True, "shares": lambda h: np.ones(1)}),
    "one neuron for all": ("MLP", "neurons", {"bent": lambda h: np.array([True])}),
    "one coordinate for all": ("LN without a final norm, MLP", "norm", {"bent": lambda h: False, "spread": lambda h: h.spread[:1]}),
}
"""Hints that numpy would broadcast, or whose infinite ranges no walk looks at. Each once gave a false bound."""


@pytest.mark.parametrize("name", WRONG_SHAPES)
def test_hints_of_another_shape_prove_nothing(name):
    kind, part, changes = WRONG_SHAPES[name]
    case = next(case for case in cases(kind, seeds=range(6)) if case.search() is not None)
    hints, _ = case.search()
    old = getattr(hints, part)
    changed = replace(hints, **{part: replace(old, **{field: change(old) for field, change in changes.items()})})

    def tables(hints):
        return Majorants.of(case.stream(typical=hints.typical), hints).differences_upper(case.form.W_U, case.form.b_U)

    assert tables(hints).parts.known
    with pytest.raises(UnprovenError):
        tables(changed)


def test_rounding_of_a_constant_is_room_for_walks():
    """Parts that cancel a large constant: what that may be off decides."""
    c = 1.5 * 2.0**30
    parts = np.array([1 - c, -1 - c, 1 - c, -1 - c - 2.0**-22]).reshape(1, 4, 1, 1)
    automaton = Automaton(np.zeros((1, 1), np.int64), np.ones(1, bool), 0)
    scene = Scene(moves_of(automaton, np.ones((4, 1), np.int64)), (np.ones((1, 4, 1)), np.ones((1, 4, 1))))
    constant = Uniform(np.array([c]), 0.99 * 2.0**-23, c)
    assert not scene.nowhere_positive(Blend(constant, Uniform.exact(parts))).any()
