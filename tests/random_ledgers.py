"""Ledgers from nowhere: random parts, splits, terms, grids and lists, about any question."""

import numpy as np

from compactproofs.bounds.factors import Factors
from compactproofs.counting.grid import Grid
from compactproofs.form.embedded import is_affine
from compactproofs.ledger.ledger import Apart, Both, Factored, Joint, Leaf, Ledger, Part, Split, Spoiler, Spoilers
from compactproofs.model.network import Network


def random_ledger(weights, question, seed, *, factored=False, upper=True):
    """Terms that may or may not cover the outputs, on grids that may or may not suit them."""
    rng = np.random.default_rng(seed)
    factors = random_factors(weights, rng) if factored else None
    lower = [part for label in question.task.labels for part in _parts(weights, question, label, rng, factors is not None)]
    above = [part for label in question.task.labels for part in _parts_above(weights, question, label, rng)] if upper else None
    return Ledger(question, weights.sha256, tuple(lower), None if above is None else tuple(above), factors)


def random_factors(weights, rng):
    out, v = weights.d_vocab_out, weights.d_vocab
    heavy = int(rng.choice([1, 10, 1 << 30]))
    return Factors(
        mu=rng.choice([0.0, 1.0, 100.0]) * rng.normal(size=out),
        output_weights=None if rng.random() < 0.3 else rng.integers(1, heavy + 1, size=(out, out)),
        centres=None if rng.random() < 0.4 else rng.integers(0, v, size=out),
        blocks=bool(rng.random() < 0.2),
    )


def _parts(weights, question, label, rng, factored):
    tokens = question.label_automaton(label).tokens
    waiting = rng.permutation(tokens)
    while len(waiting):
        size = int(rng.choice([1, 1, 2, len(waiting)]))
        queries, waiting = waiting[:size], waiting[size:]
        if rng.random() < 0.9:
            tree = random_tree(tokens, weights.n_ctx, rng, lambda: _leaf(weights, question, label, rng, factored))
            yield Part(int(label), tuple(sorted(queries.tolist())), tree)


def random_tree(tokens, k, rng, leaf, depth=0):
    """Splits by any token, as often as you like."""
    if rng.random() < 0.6 + 0.2 * depth:
        return leaf()
    halves = [random_tree(tokens, k, rng, leaf, depth + 1) for _ in range(2)]
    return Split(int(rng.choice(tokens)), int(rng.choice([1, 1, 2, k])) if k > 1 else 1, *halves)


def _leaf(weights, question, label, rng, factored):
    if rng.random() < 0.05:
        return None
    others = [o for o in range(weights.d_vocab_out) if o != label]
    if factored:
        return Leaf((Factored(random_grid(weights, rng)),)) if others else Leaf(())
    waiting, terms, covered = rng.permutation(others).tolist(), [], []
    if rng.random() < 0.3:
        waiting = waiting[: int(rng.integers(0, len(waiting) + 1))]
    while waiting:
        if covered and rng.random() < 0.6:
            o = waiting.pop()
            term = _about(weights, o, others, covered, rng)
            terms.append(Both(term, _about(weights, o, others, covered, rng), _reach(rng)) if rng.random() < 0.5 else term)
            covered.append(o)
        else:
            size = int(rng.choice([1, 2, len(waiting)]))
            named, waiting = waiting[:size], waiting[size:]
            terms.append(_joint(weights, named, rng))
            covered += named
    return Leaf(tuple(terms), _some_sequences(question, label, rng))


def _joint(weights, outputs, rng):
    w = tuple(int(x) for x in rng.integers(1, int(rng.choice([2, 10, 1 << 20])), size=len(outputs)))
    return Joint(tuple(outputs), w, random_grid(weights, rng))


def _about(weights, o, others, covered, rng):
    """A term that covers an output, and perhaps others."""
    if rng.random() < 0.4:
        return _joint(weights, [o, *rng.choice(others, size=int(rng.integers(0, 2))).tolist()], rng)
    factor, less = (int(rng.choice([0, 1, rng.integers(1, 1 << 20)])) for _ in range(2))
    return Apart(o, int(rng.choice(covered)), factor, less, random_grid(weights, rng))


def _reach(rng):
    return int(rng.choice([1, 2, 5, 60, 1000]))


def _several_spoilers(weights, others, rng):
    named = [int(o) for o in rng.permutation(others)[: int(rng.integers(2, 4))]]
    overlaps = []
    for x, o in enumerate(named):
        cut = int(rng.integers(0, x + 1))
        for group in filter(None, (named[:cut], named[cut:x])):
            some = group + rng.choice(others, size=int(rng.integers(0, 2))).tolist()
            overlaps.append(Both(_joint(weights, [o], rng), _joint(weights, some, rng), _reach(rng)))
    return (*(Spoiler(o, random_grid(weights, rng)) for o in named), *(overlaps[x] for x in rng.permutation(len(overlaps))))


def _parts_above(weights, question, label, rng):
    # about whole blocks there are no two spoilers at once
    two = not isinstance(weights, Network) or is_affine(weights, by_margin=question.margin is not None)
    tokens = question.label_automaton(label).tokens
    others = [o for o in range(weights.d_vocab_out) if o != label]
    for query in tokens.tolist():

        def leaf():
            terms = (Spoiler(int(rng.choice(others)), random_grid(weights, rng)),) if others and rng.random() < 0.8 else ()
            if terms and two and rng.random() < 0.5:
                factors = (int(x) for x in rng.integers(1, int(rng.choice([2, 10, 1 << 20])), size=2))
                terms = (Spoilers(terms[0].output, int(rng.choice(others)), *factors, terms[0].grid),)
            if terms and rng.random() < 0.4:
                return Leaf(_several_spoilers(weights, others, rng))
            return Leaf(terms, _some_sequences(question, label, rng))

        yield Part(int(label), (query,), random_tree(tokens, weights.n_ctx, rng, leaf))


def _some_sequences(question, label, rng):
    """Sequences from anywhere; those that may not be listed prove nothing, which is up to `verify`."""
    if rng.random() < 0.5:
        return ()
    tokens, k = question.label_automaton(label).tokens, question.task.n_ctx
    return tuple(tuple(row) for row in np.unique(rng.choice(tokens, size=(int(rng.integers(1, 6)), k)), axis=0).tolist())


def random_grid(weights, rng):
    offsets = tuple(int(x) for x in rng.integers(0, 256, size=weights.n_ctx)) if rng.random() < 0.5 else (0,) * weights.n_ctx
    return Grid(int(rng.integers(1, 1 << 16)), int(rng.integers(-60, 40)), int(rng.choice([1, 5, 300, 20000])), offsets)
