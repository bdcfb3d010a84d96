"""Whether EVOU copies: is the diagonal of each row its largest entry, and by how much?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compactproofs.bounds.row_spreads import spread
from compactproofs.form.tables import float_circuits
from compactproofs.interpretation import sequences
from compactproofs.interpretation.numbers import Histogram, Statistics, finite, histogram, mean_and_std
from compactproofs.model.weights import Weights


@dataclass(frozen=True)
class Copying:
    """Rows of EVOU against their diagonals."""

    failures: tuple[int, ...]
    """Tokens t whose diagonal EVOU[t, t] is not strictly the largest entry of row t."""
    failing_sequences: float
    """Share of sequences whose largest token is one of them."""
    margins: np.ndarray
    """(d_vocab,): max_{o != t} EVOU[t, o] - EVOU[t, t]; negative where t is copied. -inf if there is no other output."""
    margin_mean: float
    """Mean margin, each token weighted by the number of sequences in which it is largest."""
    margin_std: float
    """Standard deviation, weighted alike."""
    off_diagonal_mean: float
    """Mean of EVOU[t, o] - EVOU[t, t] over o != t."""
    row_diffs: np.ndarray
    """(d_vocab,): largest minus smallest entry of each row."""
    margin_histogram: Histogram
    """Of the margins, weighted by sequences: the total is the number of sequences."""
    row_diff_histogram: Histogram
    """Of the row spreads, one per token."""

    def statistics(self) -> Statistics:
        mean, std = mean_and_std(self.row_diffs)
        return {
            "EPVOUInputsWithCopyingFailureMaxFloat": float(max(self.failures)) if self.failures else None,
            "copying_failures": float(len(self.failures)),
            "copying_failures_sequence_fraction": finite(self.failing_sequences),
            "EPVOUCenteredOffDiagonalMeanFloat": finite(self.off_diagonal_mean),
            "EVOUHistMinAboveDiagDupBySeqCountMeanFloat": finite(self.margin_mean),
            "EVOUHistMinAboveDiagDupBySeqCountStdDevFloat": finite(self.margin_std),
            "EVOUHistMinAboveDiagDupBySeqCountMinFloat": finite(self.margins.min()),
            "EVOUHistMinAboveDiagDupBySeqCountMaxFloat": finite(self.margins.max()),
            "EPVOUMaxRowDiffMeanFloat": finite(mean),
            "EVOU_row_diff_std": finite(std),
            "EVOU_row_diff_min": finite(self.row_diffs.min()),
            "EVOU_row_diff_max": finite(self.row_diffs.max()),
        }


def copying(weights: Weights) -> Copying:
    """Measure copying. Cost: O(d_vocab d_vocab_out). Needs an output for every token."""
    EVOU, v, k = float_circuits(weights).EVOU, weights.d_vocab, weights.n_ctx
    tokens = np.arange(v)
    differences = EVOU - EVOU[tokens, tokens][:, None]
    others = np.ones_like(differences, dtype=bool)
    others[tokens, tokens] = False
    margins = np.where(others, differences, -np.inf).max(axis=1)
    counts = [sequences.with_label(t, k) for t in range(v)]
    shares = np.array([count / v**k for count in counts])
    failures = np.flatnonzero(margins >= 0)
    measurable = bool(np.isfinite(margins).all())
    margin_mean, margin_std = mean_and_std(margins, shares) if measurable else (np.nan, np.nan)
    row_diffs = np.asarray(spread(EVOU))
    return Copying(
        failures=tuple(failures.tolist()),
        failing_sequences=float(shares[failures].sum()),
        margins=margins,
        margin_mean=margin_mean,
        margin_std=margin_std,
        off_diagonal_mean=mean_and_std(differences[others])[0],
        row_diffs=row_diffs,
        margin_histogram=histogram(margins, counts) if measurable else Histogram(np.zeros(2), (0,)),
        row_diff_histogram=histogram(row_diffs),
    )
