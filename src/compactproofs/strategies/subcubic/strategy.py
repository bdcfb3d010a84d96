"""The paper's hundred subcubic proofs (and fifty more with the envelope), each as published and as repaired."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from compactproofs.arrays import FlopCounter
from compactproofs.arrays.arithmetic import AbstractArithmetic, Counting, Rigorous, certain
from compactproofs.arrays.environment import require_ieee754
from compactproofs.bounds.direct_path import DirectPath
from compactproofs.bounds.low_rank_scores import AttentionError, Directions
from compactproofs.errors import StrategyError
from compactproofs.model.kinds import Model
from compactproofs.model.weights import Weights
from compactproofs.strategies.base import AbstractStrategy, Bound, ProofLength, Request, require_max_of_k, require_no_margin, require_plain
from compactproofs.strategies.shared import Shared
from compactproofs.strategies.subcubic.counting import count_covered, covered_by_pair, unproven_by_pair
from compactproofs.strategies.subcubic.entries import Entries
from compactproofs.strategies.subcubic.gap_bound import attention_bounds, wrong_logit_gap_upper
from compactproofs.strategies.subcubic.options import QueryHandling
from compactproofs.strategies.subcubic.published import published_count
from compactproofs.strategies.subcubic.search import ENVELOPE_POINTS, Hints, find_hints
from compactproofs.strategies.subcubic.workbench import Workbench
from compactproofs.tasks import AbstractTask

_QUADRATIC_DIRECT = (DirectPath.MEAN_QUERY, DirectPath.SVD_QUERY, DirectPath.MAX_DIFF)
_QUADRATIC_ATTENTION = (
    AttentionError.MAX_DIFF_SUBPRODUCT_RECURSIVE,
    AttentionError.MEAN_MAX_DIFF_SUBPRODUCT_RECURSIVE,
    AttentionError.MEAN_RECURSIVE,
)
_CUBIC_ATTENTION = (AttentionError.EXACT_EQKE, AttentionError.MAX_DIFF_EXACT)


@dataclass(frozen=True)
class Subcubic(AbstractStrategy):
    """Gap tables with a choice of direct path, attention error and query handling."""

    direct_path: DirectPath | str = DirectPath.MAX_DIFF_EXACT
    """How the direct path is bounded (a `DirectPath` or its name)."""
    attention_error: AttentionError | str = AttentionError.EXACT_EQKE
    """What replaces EQKE and how its error is bounded (an `AttentionError` or its name)."""
    query_handling: QueryHandling | str = QueryHandling.ENVELOPE
    """How the maximum over outputs is taken (a `QueryHandling` or its name)."""
    repaired: bool = True
    """False computes what the authors' code computes, which is not a proof."""

    name: ClassVar[str] = "subcubic"
    family: ClassVar[str] = "subcubic"

    def __post_init__(self) -> None:
        for name, kind in (("direct_path", DirectPath), ("attention_error", AttentionError), ("query_handling", QueryHandling)):
            try:
                object.__setattr__(self, name, kind(getattr(self, name)))
            except ValueError:
                raise StrategyError(f"{name}={getattr(self, name)!r}; expected one of {', '.join(kind)}") from None
        if not self.repaired and self.query_handling is QueryHandling.ENVELOPE:
            raise StrategyError("query_handling='envelope' is not among the published strategies; it exists repaired only")

    @property
    def choices(self) -> tuple[DirectPath, AttentionError, QueryHandling]:
        """The three choices as enumeration members."""
        return DirectPath(self.direct_path), AttentionError(self.attention_error), QueryHandling(self.query_handling)

    @property
    def variant(self) -> str:
        return "repaired" if self.repaired else "published"

    @property
    def sound(self) -> bool:
        return self.repaired

    @property
    def label(self) -> str:
        return f"{self.name}/{self.direct_path}/{self.attention_error}/{self.query_handling}"

    @property
    def complexity(self) -> str:
        attention = "d_vocab d_model" if self.attention_error in _QUADRATIC_ATTENTION else "d_vocab d_model^2"
        if self.attention_error in _CUBIC_ATTENTION:
            attention = "d_vocab^2 d_model"
        direct = "d_vocab d_model" if self.direct_path in _QUADRATIC_DIRECT else "d_vocab^2 d_model"
        return f"O(d_vocab^2 n_ctx + EVOU: d_vocab^2 d_model + EQKE: {attention} + EU: {direct})"

    @property
    def source(self) -> str:
        if self.query_handling is QueryHandling.ENVELOPE:
            return 'ours, after the paper\'s "Subcubic proof"'
        return 'paper, "Subcubic proof"' + (", with the errata repaired" if self.repaired else "; authors' code")

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "direct_path": str(self.direct_path),
            "attention_error": str(self.attention_error),
            "query_handling": str(self.query_handling),
            "repaired": self.repaired,
        }

    def bound(self, request: Request) -> Bound:
        """Search for gaps, then count what they prove.

        Guarantee (repaired): correct_at_least is at most the number of correct sequences, for every weight setting.
        Assumes: the task is max-of-K.
        Cost: see `complexity`; the search is not part of the proof.
        Source: paper, "Subcubic proof"; docs/strategies.
        """
        require_max_of_k(request.task, self.name)
        require_no_margin(request, self.name)
        bench = Workbench(require_plain(request.weights, self.name), request.shared)
        if not self.repaired:
            count = published_count(*self.choices, bench)
            return Bound(count, None, "float64 without rounding control, as published: not a proof")
        require_ieee754()
        started = time.perf_counter()
        hints = find_hints(*self.choices, bench)
        searched = time.perf_counter()
        credited = self._credited(bench, hints, Rigorous())
        bounded = time.perf_counter()
        return Bound(
            count_covered(hints.gaps, credited),
            None,
            "interval arithmetic over the reals",
            search_seconds=searched - started,
            counting_seconds=time.perf_counter() - bounded,
        )

    def by_pair(self, request: Request) -> dict[int, list[int]] | None:
        require_max_of_k(request.task, self.name)
        require_no_margin(request, self.name)
        if not self.repaired:
            return None
        require_ieee754()
        bench = Workbench(require_plain(request.weights, self.name), request.shared)
        hints = find_hints(*self.choices, bench)
        return dict(enumerate(covered_by_pair(hints.gaps, self._credited(bench, hints, Rigorous()))))

    def unproven(self, request: Request) -> dict[int, list[list[int] | None]] | None:
        """Tokens nearer to the label than the gap, or any if there is no gap that works."""
        require_max_of_k(request.task, self.name)
        require_no_margin(request, self.name)
        if not self.repaired:
            return None
        bench = Workbench(require_plain(request.weights, self.name), request.shared)
        hints = find_hints(*self.choices, bench)
        return unproven_by_pair(hints.gaps, self._credited(bench, hints, Rigorous()))

    def count(self, bench: Workbench, hints: Hints, arithmetic: AbstractArithmetic) -> int:
        """The number of sequences that the hints prove.

        Guarantee (with `Rigorous` arithmetic): at most the number of correct sequences, whatever the hints are.
        Assumes: hints of the right shapes, which is checked.
        """
        return count_covered(hints.gaps, self._credited(bench, hints, arithmetic))

    def _credited(self, bench: Workbench, hints: Hints, arithmetic: AbstractArithmetic) -> np.ndarray:
        """Entries of the gap table whose bound is certainly negative: booleans (q, m, c)."""
        self._check_shapes(hints, bench.weights)
        direct_path, attention_error, query_handling = self.choices
        attention = bench.attention(attention_error, hints.directions, arithmetic)
        outputs = bench.outputs(direct_path, hints.directions, arithmetic)
        entries = Entries.applicable(hints.gaps)
        with arithmetic.step("attention bounds"):
            bounds = attention_bounds(attention, entries)
        with arithmetic.step("wrong logits"):
            gap = wrong_logit_gap_upper(query_handling, bounds, outputs, entries, self._checked(hints.outputs), arithmetic)
            return entries.placed(certain(gap < 0.0), into=np.zeros(hints.gaps.shape, dtype=bool))

    def _check_shapes(self, hints: Hints, weights: Weights) -> None:
        v, k, d = weights.d_vocab, weights.n_ctx, weights.d_model
        if hints.gaps.shape != (v, v, k) or hints.gaps.dtype.kind not in "iu":
            raise StrategyError(f"gap table of shape {hints.gaps.shape} and type {hints.gaps.dtype}; expected integers {(v, v, k)}")
        found = [np.shape(direction) for direction in vars(hints.directions).values()]
        if found != [(v,)] * 4 + [(d,)] * 3:
            raise StrategyError(f"directions of shapes {found}; expected four of ({v},) and three of ({d},)")
        outputs = {QueryHandling.MEAN_QUERY_DIFF: (v, k), QueryHandling.ENVELOPE: (v, *np.shape(hints.outputs)[1:2])}
        expected = outputs.get(QueryHandling(self.query_handling))
        if expected is not None and (np.shape(hints.outputs) != expected or len(expected) != 2 or expected[1] < 1):
            raise StrategyError(f"output hint of shape {np.shape(hints.outputs)}; expected {expected}")

    def _checked(self, hint: np.ndarray) -> np.ndarray:
        """The output hint, made to satisfy what the bound assumes of it: finite, and breakpoints increasing from 0 to 1."""
        if self.query_handling is QueryHandling.DROP:
            return hint
        hint = np.nan_to_num(np.asarray(hint, dtype=np.float64), nan=0.5, posinf=1.0, neginf=0.0)
        if self.query_handling is QueryHandling.MEAN_QUERY_DIFF:
            return np.asarray(np.clip(hint, 0.0, 1.0))
        points = np.sort(np.clip(hint, 0.0, 1.0), axis=1)
        if points.shape[1] < 2:
            return np.tile([0.0, 1.0], (len(points), 1))
        even = np.broadcast_to(np.linspace(0.0, 1.0, points.shape[1]), points.shape)
        usable = (points[:, 0] == 0) & (points[:, -1] == 1) & (np.diff(points, axis=1) > 0).all(axis=1)
        return np.where(usable[:, None], points, even)

    def length(self, weights: Model, task: AbstractTask) -> ProofLength:
        counter, weights = FlopCounter(), require_plain(weights, self.name)
        v, k = weights.d_vocab, weights.n_ctx
        hints = Hints(
            directions=Directions.blank(weights),
            gaps=np.ones((v, v, k), dtype=np.int64),
            outputs=np.zeros((v, k)) if self.query_handling is QueryHandling.MEAN_QUERY_DIFF else np.zeros((v, ENVELOPE_POINTS)),
        )
        self._credited(Workbench(weights, Shared(weights, task)), hints, Counting(counter))
        return ProofLength(dict(counter.steps), v * v * k, self._unexplained_dimensions(weights))

    def _unexplained_dimensions(self, weights: Weights) -> int:
        """The paper's measure: what of each table enters the proof without an explanation (paper, appendix)."""
        v, d, out = weights.d_vocab, weights.d_model, weights.d_vocab_out
        match self.direct_path:
            case DirectPath.GLOBAL_MAX_DIFF_EXACT:
                direct = 2
            case DirectPath.MAX_DIFF_EXACT:
                direct = 2 * v
            case DirectPath.MAX_DIFF:
                direct = v * d + 2
            case _:
                direct = v + v * d + 2
        match self.attention_error:
            case AttentionError.SVD:
                attention = 2 * v
            case AttentionError.MAX_DIFF_EXACT:
                attention = 4 * v
            case AttentionError.EXACT_EQKE:
                attention = v * v
            case AttentionError.MAX_DIFF | AttentionError.MAX_DIFF_SUBPRODUCT | AttentionError.MAX_DIFF_SUBPRODUCT_RECURSIVE:
                attention = 2 * v + 2 * d
            case _:
                attention = 3 * v + 2 * d
        return v * out + out + direct + attention
