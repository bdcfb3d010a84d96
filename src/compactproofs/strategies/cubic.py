"""The paper's cubic proof, in the form that needs no softmax.

For fixed query q and label m the proof replaces all non-label tokens (query aside) by copies of one token t, in the worst order. With
c such copies, the paper bounds the logit difference by eu + num / den, where num and den are sums over positions of attention times
value and of attention. The denominator is positive, so "below zero" means

    G(q) + X G(m) + Y G(t) < 0,    G(t) = exp(EQKE[q, t]) (ep[m, t] + eu[m, q]),

with X and Y the positional attention of the label's and of t's positions. That is a threshold on G(t): one comparison per (q, m, t, c).

    D[m, o]  = max_i (PVOU[i, o] - PVOU[i, m])                  the worst position, whatever the attention
    ep[m, t] = max_{o != m} (EVOU[t, o] - EVOU[t, m] + D[m, o])
    eu[m, q] = max_{o != m} (EU[q, o] - EU[q, m])
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

import numpy as np

from compactproofs.arrays import FlopCounter
from compactproofs.arrays.arithmetic import AbstractArithmetic, Counting, Rigorous, certain
from compactproofs.arrays.environment import require_ieee754
from compactproofs.bounds.excluding import excluding_label, max_excluding_label, worst_position
from compactproofs.form.tables import Circuits, circuits
from compactproofs.model.kinds import Model
from compactproofs.model.weights import Weights
from compactproofs.strategies.base import AbstractStrategy, Bound, ProofLength, Request, require_max_of_k, require_no_margin, require_plain
from compactproofs.tasks import AbstractTask

_LABELS_AT_ONCE = 16


@dataclass(frozen=True)
class Cubic(AbstractStrategy):
    """Certify the pure sequences of each (query, label, number of copies): the paper's cubic proof."""

    name: ClassVar[str] = "cubic"
    family: ClassVar[str] = "cubic"

    @property
    def complexity(self) -> str:
        return "O(d_vocab^3 n_ctx)"

    @property
    def source(self) -> str:
        return 'paper, "Cubic proof"'

    @property
    def parameters(self) -> dict[str, Any]:
        return {}

    def bound(self, request: Request) -> Bound:
        """Count the sequences that the cubic argument covers.

        Guarantee: correct_at_least is at most the number of correct sequences.
        Assumes: the task is max-of-K.
        Cost: O(d_vocab^3 n_ctx) plus the tables.
        Source: the module's docstring; soundness in docs/strategies/cubic.md.
        """
        require_max_of_k(request.task, self.name)
        require_no_margin(request, self.name)
        require_ieee754()
        count = cubic_count(require_plain(request.weights, self.name), Rigorous())
        return Bound(count, None, "interval arithmetic over the reals")

    def by_pair(self, request: Request) -> dict[int, list[int]]:
        require_max_of_k(request.task, self.name)
        require_no_margin(request, self.name)
        require_ieee754()
        return dict(enumerate(cubic_counts(require_plain(request.weights, self.name), Rigorous())))

    def unproven(self, request: Request) -> dict[int, list[list[int] | None]]:
        """The most harmful token in as few places as it takes, or the label alone."""
        require_max_of_k(request.task, self.name)
        require_no_margin(request, self.name)
        weights, arithmetic = require_plain(request.weights, self.name), Rigorous()
        tables, k = circuits(weights, arithmetic), weights.n_ctx
        found: dict[int, list[list[int] | None]] = {}
        for m in range(weights.d_vocab):
            labels = np.array([m])
            tokens, label_only, G = _certified(tables, labels, k, arithmetic)
            harm = G.upper[0]
            found[m] = []
            for q in range(m + 1):
                failing = [c for c in range(1, k if q == m else k - 1) if tokens[0, q, c] < m]
                example: list[int] | None = None
                if not label_only[0, q] and (k > 1 or q == m):
                    example = [m] * (k - 1) + [q]
                elif failing:
                    example = [int(harm[q, :m].argmax())] * failing[0] + [m] * (k - 1 - failing[0]) + [q]
                found[m].append(example)
        return found

    def length(self, weights: Model, task: AbstractTask) -> ProofLength:
        counter = FlopCounter()
        cubic_count(require_plain(weights, self.name), Counting(counter))
        v, k = weights.d_vocab, weights.n_ctx
        return ProofLength(
            flops_breakdown=dict(counter.steps),
            integer_ops=v * v * k,
            unexplained_dimensions=(v + 2 * weights.d_vocab_out) * v + k * (v + weights.d_vocab_out),
        )


def cubic_count(weights: Weights, arithmetic: AbstractArithmetic) -> int:
    """The number of sequences that the cubic argument certifies, in any arithmetic (only `Rigorous` proves)."""
    return sum(map(sum, cubic_counts(weights, arithmetic)))


def cubic_counts(weights: Weights, arithmetic: AbstractArithmetic) -> list[list[int]]:
    """The same for every label, by query."""
    tables = circuits(weights, arithmetic)
    k = weights.n_ctx
    counts: list[list[int]] = []
    for start in range(0, weights.d_vocab, _LABELS_AT_ONCE):
        labels = np.arange(start, min(start + _LABELS_AT_ONCE, weights.d_vocab))
        tokens, label_only, _ = _certified(tables, labels, k, arithmetic)
        for row, m in enumerate(labels.tolist()):
            counts.append([])
            for q in range(m + 1):
                alone = int(label_only[row, q]) if k > 1 or q == m else 0
                most_copies = k - 1 if q == m else k - 2
                others = sum(comb(k - 1, c) * int(tokens[row, q, c]) ** c for c in range(1, most_copies + 1))
                counts[-1].append(alone + others)
    return counts


def _certified(tables: Circuits[Any], labels: np.ndarray, k: int, arithmetic: AbstractArithmetic) -> tuple[np.ndarray, np.ndarray, Any]:
    """For each label m and query q <= m: how many tokens t < m are certified with c copies, whether c = 0 is, and G."""
    n = int(labels[-1]) + 1  # tokens that can occur with these labels
    EQKE, EQKP = tables.EQKE[:n, :n], tables.EQKP[:n]
    EVOU, EU = tables.EVOU[:n], tables.EU[:n]
    with arithmetic.step("harm of tokens"):
        D = excluding_label(worst_position(tables.PVOU, labels), labels)
        own = EVOU[:, labels].T
        ep = (EVOU[None] + D[:, None]).max(axis=2) - own
        eu = max_excluding_label(EU, labels).T - EU[:, labels].T
    with arithmetic.step("attention"):
        A = np.exp(EQKE - EQKE.max(axis=1)[:, None])
        positions = np.sort(np.exp(EQKP[:, :-1] - EQKP[:, -1:]), axis=1)
        rows = np.arange(n)
    with arithmetic.step("thresholds"):
        G = A[None] * (ep[:, None] + eu[:, :, None])
        G_query = G[:, rows, rows]
        G_label = G[np.arange(len(labels)), :, labels]
        tokens = np.zeros((len(labels), n, k), dtype=np.int64)
        below = rows[None, :] < labels[:, None]
        for c in range(1, k):
            ascending = _threshold(G_query, G_label, positions[:, : k - 1 - c], positions[:, k - 1 - c :])
            descending = _threshold(G_query, G_label, positions[:, c:], positions[:, :c])
            holds = certain(np.minimum(ascending, descending)[:, :, None] > G)
            tokens[:, :, c] = (holds & below[:, None]).sum(axis=2)
    with arithmetic.step("label alone"):
        label_only = _label_only(tables, labels, A, positions, D)
    return tokens, label_only, G


def _threshold(G_query: Any, G_label: Any, label_positions: Any, token_positions: Any) -> Any:
    """The value that G(t) must stay below, for one arrangement of the label's and the token's positions."""
    fixed = G_query if label_positions.shape[1] == 0 else G_query + label_positions.sum(axis=1) * G_label
    return -fixed / token_positions.sum(axis=1)


def _label_only(tables: Circuits[Any], labels: np.ndarray, A: Any, positions: Any, D: Any) -> np.ndarray:
    """Whether the sequence of label tokens (query aside) is certified, jointly over outputs: booleans (label, query)."""
    n = A.shape[0]
    EVOU, EU = tables.EVOU[:n], tables.EU[:n]
    direct = EU[None] - EU[:, labels].T[:, :, None] + D[:, None]
    at_query = EVOU[None] - EVOU[:, labels].T[:, :, None] + direct
    at_label = (EVOU[labels] - EVOU[labels, labels][:, None])[:, None] + direct
    if positions.shape[1] == 0:
        return certain(at_query.max(axis=2) < 0.0)
    label_weight = A[:, labels].T * positions.sum(axis=1)
    own_weight = A[np.arange(n), np.arange(n)]
    harm = label_weight[:, :, None] * at_label + own_weight[None, :, None] * at_query
    harm = np.where(np.arange(harm.shape[2])[None, None] == labels[:, None, None], -np.inf, harm)
    return certain(harm.max(axis=2) < 0.0)
