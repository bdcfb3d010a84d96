"""The rows of the paper's table 1 (`tab:proof-complexity-bound`), and which strategies each of them is about.

The paper's sources name the strategy of the rows that are about a single one, and group the others by the cost of the direct path and of
attention ("Proof strategies grouped by complexity"); a group has on each model the bound of its best strategy there.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from compactproofs.strategies.subcubic import PUBLISHED_QUERY_HANDLINGS, AttentionError, DirectPath, QueryHandling

EXACT_DIRECT = (DirectPath.MAX_DIFF_EXACT, DirectPath.GLOBAL_MAX_DIFF_EXACT)
QUADRATIC_DIRECT = (DirectPath.MEAN_QUERY, DirectPath.SVD_QUERY, DirectPath.MAX_DIFF)
EXACT_ATTENTION = (AttentionError.EXACT_EQKE, AttentionError.MAX_DIFF_EXACT)
LOW_RANK_ATTENTION = (
    *(AttentionError.SVD, AttentionError.MAX_DIFF, AttentionError.MEAN_MAX_DIFF),
    *(AttentionError.MAX_DIFF_SUBPRODUCT, AttentionError.MEAN_MAX_DIFF_SUBPRODUCT),
)
QUADRATIC_ATTENTION = (
    *(AttentionError.MAX_DIFF_SUBPRODUCT_RECURSIVE, AttentionError.MEAN_MAX_DIFF_SUBPRODUCT_RECURSIVE),
    AttentionError.MEAN_RECURSIVE,
)


@dataclass(frozen=True)
class Group:
    """One row of table 1."""

    title: str
    complexity: str
    """As the paper has it, in LaTeX: v is d_vocab, k is n_ctx, d is d_model."""
    labels: tuple[str, ...]
    """The strategies that the row is about."""

    @property
    def envelope_labels(self) -> tuple[str, ...]:
        """The same strategies with the query handling `envelope`."""
        subcubic = (label.rsplit("/", 1)[0] for label in self.labels if label.startswith("subcubic/"))
        return tuple(dict.fromkeys(f"{start}/{QueryHandling.ENVELOPE}" for start in subcubic))


def _one(direct: DirectPath, attention: AttentionError, handling: QueryHandling = QueryHandling.MEAN_QUERY_DIFF) -> tuple[str, ...]:
    return (f"subcubic/{direct}/{attention}/{handling}",)


def _all(direct: tuple[DirectPath, ...], attention: tuple[AttentionError, ...]) -> tuple[str, ...]:
    return tuple("/".join(("subcubic", *choice)) for choice in product(direct, attention, PUBLISHED_QUERY_HANDLINGS))


_BEST = DirectPath.MAX_DIFF_EXACT, AttentionError.EXACT_EQKE

TABLE_1 = (
    Group("Brute force", "$O(v^{k+1} k d)$", ("brute-force",)),
    Group("Cubic", "$O(v^3 k^2)$", ("cubic",)),
    Group("Sub-cubic", "$O(v^2 k^2 + v^2 d)$", _one(*_BEST)),
    Group("↳ without mean+diff", "", _one(*_BEST, QueryHandling.DROP)),
    Group("Low-rank QK", "$O(v^2 k^2 + v d^2 + v^2 d)$", _all(EXACT_DIRECT, LOW_RANK_ATTENTION)),
    Group("↳ SVD only", "", _one(DirectPath.MAX_DIFF_EXACT, AttentionError.SVD)),
    Group("Low-rank EU", "$O(v^2 k^2 + v d + v^2 d)$", _all(QUADRATIC_DIRECT, EXACT_ATTENTION)),
    Group("↳ SVD only", "", _one(DirectPath.SVD_QUERY, AttentionError.EXACT_EQKE)),
    Group("Low-rank QK & EU", "$O(v^2 k^2 + v d^2 + v d + v^2 d)$", _all(QUADRATIC_DIRECT, LOW_RANK_ATTENTION)),
    Group("↳ SVD only", "", _one(DirectPath.SVD_QUERY, AttentionError.SVD)),
    Group("Quadratic QK", "$O(v^2 k^2 + v d + v^2 d)$", _all(EXACT_DIRECT, QUADRATIC_ATTENTION)),
    Group("Quadratic QK & EU", "$O(v^2 k^2 + v d + v^2 d)$", _all(QUADRATIC_DIRECT, QUADRATIC_ATTENTION)),
)
"""The rows in the paper's order."""


@dataclass(frozen=True)
class Legend:
    """One entry of the legend of the paper's figure of the Pareto frontier, for max-of-4.

    Mean and standard deviation over models of bound / accuracy of the group's best strategy.
    """

    group: Group
    main: tuple[float, float]
    appendix: tuple[float, float]
    """In the copy of the figure in the appendix, which differs (erratum A5)."""


_ALL_SUBCUBIC = Group("Sub-cubic", "", _all(EXACT_DIRECT, EXACT_ATTENTION))

LEGEND = (
    Legend(TABLE_1[1], (0.9539, 0.0080), (0.9539, 0.0080)),
    Legend(_ALL_SUBCUBIC, (0.700, 0.036), (0.821, 0.013)),
    Legend(TABLE_1[4], (0.675, 0.035), (0.795, 0.014)),
    Legend(TABLE_1[6], (0.633, 0.062), (0.653, 0.060)),
    Legend(TABLE_1[8], (0.610, 0.060), (0.628, 0.060)),
    Legend(TABLE_1[10], (0.316, 0.037), (0.390, 0.032)),
    Legend(TABLE_1[11], (0.283, 0.037), (0.286, 0.036)),
)
"""As in the paper's `fig:pareto-frontier` and `fig:pareto-frontier:again`."""

NOT_RANK_ONE = AttentionError.EXACT_EQKE
"""Strategies with this attention error do not replace EQKE by a matrix of rank one."""
