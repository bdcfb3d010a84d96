"""How long proofs about whole blocks are: the array code of leaves on phantoms, once for each distinct shape."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from compactproofs.arrays import FlopCounter
from compactproofs.arrays.arithmetic import Counting
from compactproofs.bounds.majorants import Majorants
from compactproofs.bounds.relaxation import NormHints, Relaxation
from compactproofs.bounds.scene import Blend, Scene
from compactproofs.bounds.stream import Stream
from compactproofs.counting.walks import Moves
from compactproofs.form.pooled import pooled
from compactproofs.form.whole_block import WholeBlock, whole_block
from compactproofs.model.network import Network


@dataclass(frozen=True, eq=False)
class _Walked(Scene):
    """A scene on which every premise holds, and is charged."""

    counter: FlopCounter

    @cached_property
    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """Two walks through every token for each head, and a quotient each."""
        heads, (n_states, groups), (k, n) = self.n_heads, self.moves.following.shape, self.attention[0].shape[1:]
        self.counter.charge(2 * heads * (5 * k * n_states * groups + 3 * k * n))
        return self.attention

    def nowhere_positive(self, blend: Blend) -> np.ndarray:
        """For each column, and each head, both ends and the larger of them; sums over heads; the best of each group, and a walk."""
        heads, k, n, columns = blend.parts.shape
        n_states, groups = self.moves.following.shape
        self.counter.charge(columns * ((4 * heads - 1) * k * n + k * n + 2 * k * n_states * groups))
        return np.ones(columns, dtype=np.bool_)


@dataclass(eq=False)
class BlockLengths:
    """FLOPs of one network's form, and of the bounds of leaves.

    The cost of a leaf is linear in a few products of its numbers of tokens, states, places and neurons of each kind (`_features`). So a
    few runs give the cost of all leaves, exactly."""

    network: Network
    _counter: FlopCounter = field(default_factory=FlopCounter)
    _known: dict[Hashable, tuple[list[np.ndarray], list[int]]] = field(default_factory=dict)

    @cached_property
    def _made(self) -> tuple[WholeBlock, dict[str, int]]:
        return whole_block(self.network, Counting(self._counter)), dict(self._counter.steps)

    @property
    def tables(self) -> dict[str, int]:
        """Attention, values and folded matrices, by step."""
        return self._made[1]

    def leaf(self, moves: Moves, hints: Relaxation) -> int:
        """The premises and tables of a leaf, of every output against the label."""
        rows, costs = self._known.setdefault((len(hints.typical.weights), _norm(hints.norm)), ([], []))
        row = _features(moves, hints)
        if rows:
            matrix = np.array(rows).T
            factors = np.linalg.lstsq(matrix, row, rcond=None)[0]
            if (np.abs(matrix @ factors - row) < 1e-9).all():
                return round(float(factors @ np.array(costs)))
        rows.append(row)
        costs.append(self.run(moves, hints))
        return costs[-1]

    def pool(self, queries: int) -> int:
        """Bounding attention for so many queries at once: of every weight both ends are scaled, widened and compared."""
        return queries * 8 * self.network.n_heads * self.network.n_ctx * self.network.d_vocab

    @property
    def shared(self) -> int:
        """What the leaves of a query have in common, for all queries; to be asked for after the leaves."""
        return self._counter.steps.get("neurons", 0) * self.network.d_vocab

    def run(self, moves: Moves, hints: Relaxation) -> int:
        """The same by a run on phantoms."""
        form, _ = self._made
        with self._counter.step("leaf"):
            self._run(form, moves, hints)
        return self._counter.steps.pop("leaf")

    def _run(self, form: WholeBlock, moves: Moves, hints: Relaxation) -> None:
        n, arithmetic, heads = len(moves.group), Counting(self._counter), len(hints.typical.weights)
        if heads > self.network.n_heads:
            form = pooled(form, np.arange(1), 0, arithmetic)
        ends = np.ones((heads, self.network.n_ctx, n))
        scene = _Walked(moves, (ends, ends), self._counter)
        majorants = Majorants.of(Stream(form, scene, np.arange(n), 0, hints.typical, arithmetic), hints)
        blend = majorants.differences_upper(form.W_U - form.W_U[:, [0]], form.b_U - form.b_U[[0]])
        if heads > 1:
            majorants.harms(blend)
        else:
            (blend.parts[0] + blend.constant) * ends[0][:, :, None]


def _features(moves: Moves, hints: Relaxation) -> np.ndarray:
    """Products that costs are linear in, none much larger than 1."""
    n, (n_states, groups), places = len(moves.group) / 64, moves.following.shape, len(hints.typical.tokens) / 64
    modes, walked, neurons = [1.0], [1.0], hints.neurons
    if neurons is not None:
        finite = [((~neurons.bent & np.isfinite(x)).sum()) / 128 for x in (neurons.low, neurons.high)]
        walked += finite
        modes += [float(neurons.bent.any()), neurons.bent.sum() / 128, *finite]
    return np.array([*modes, *(n * x for x in modes), *(n_states * groups / 256 * x for x in walked), places])


def _norm(hints: NormHints | None) -> Hashable:
    return None if hints is None else (hints.bent, bool(hints.up.any()))
