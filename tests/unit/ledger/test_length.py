"""The length of a proof is what checking it executes: phantoms against arrays that count what is done to them."""

from collections import Counter

import numpy as np
import pytest

import compactproofs as cp
from compactproofs.arrays.arithmetic import Float64
from compactproofs.bounds.terms import Terms
from compactproofs.counting.subject import subject_of
from compactproofs.form.additive import additive_form
from compactproofs.ledger.ledger import Apart, Joint
from models import mostly_right


class Instrumented(np.ndarray):
    """Float64 numbers that charge every arithmetic operation on them as the paper does: one for each number that it makes."""

    done = Counter()

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        plain = [np.asarray(x) for x in inputs]
        result = getattr(ufunc, method)(*plain, **options)
        if ufunc not in (np.negative, np.less, np.isnan):
            size = plain[0].size - np.asarray(result).size if method == "reduce" else np.asarray(result).size
            Instrumented.done[ufunc.__name__] += size
        return np.asarray(result).view(Instrumented) if np.asarray(result).dtype.kind == "f" else result


class Executed(Float64):
    """Runs in float64 and counts."""

    def array(self, values):
        return np.asarray(values, dtype=np.float64).view(Instrumented)


def executed(weights, ledger):
    """FLOPs of the terms and harms of a ledger, by running the array code on real numbers."""
    form = additive_form(weights, Executed())
    Instrumented.done.clear()
    for part in ledger.lower:
        subject, query = subject_of(ledger.question, part.label), part.queries[0]
        attention = np.asarray(form.only_head().attention(query)).view(Instrumented)
        before = sum(Instrumented.done.values())
        terms = Terms.of(form, query, attention, subject, 0.0, Executed())
        yield "terms", sum(Instrumented.done.values()) - before
        for term in (term for leaf in part.leaves for term in leaf.terms):
            before = sum(Instrumented.done.values())
            if isinstance(term, Joint):
                terms.joint(np.array(term.outputs), np.array(term.weights))
                yield "joint", sum(Instrumented.done.values()) - before
            elif isinstance(term, Apart):
                terms.apart(term.output, term.parent, term.factor, term.less)
                yield "apart", sum(Instrumented.done.values()) - before


@pytest.mark.parametrize("name", ["threshold-quartic", "threshold-exact-output"])
def test_flops_are_those_of_an_execution(name):
    weights = mostly_right(3, v=6, k=4, noise=0.6)
    proof = cp.prove(weights, name)
    found = Counter()
    for step, flops in executed(weights, proof.ledger):
        found[step] += flops
    claimed = proof.length.flops_breakdown
    assert found["terms"] == claimed["terms"] and found["joint"] == claimed["joint"] and found["apart"] == claimed.get("apart", 0)


def test_counting_is_charged_as_executed():
    weights = mostly_right(3, v=6, k=4, noise=0.6)
    for name in ("threshold-quartic", "threshold-exact-output", "threshold-cubic", "threshold-cubic-pooled"):
        proof = cp.prove(weights, name)
        assert cp.verify(proof.ledger, weights).operations == proof.integer_ops == proof.length.flops_breakdown["counting"], name


def test_an_upper_bound_is_free():
    weights = mostly_right(3, noise=0.6)
    one, both = (cp.prove(weights, "threshold-best", upper=upper) for upper in (False, True))
    assert one.flops == both.flops
