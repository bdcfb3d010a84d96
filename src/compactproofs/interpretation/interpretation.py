"""Every measurement of one model."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from compactproofs.bounds.low_rank_scores import find_directions
from compactproofs.errors import UnsupportedError
from compactproofs.interpretation.ablations import DEFAULT_SAMPLES, Ablations, ablations
from compactproofs.interpretation.attention import AttentionSlopes, attention_slopes
from compactproofs.interpretation.copying import Copying, copying
from compactproofs.interpretation.error_terms import error_terms, residual_factors
from compactproofs.interpretation.gaps import Gaps, gap_distribution
from compactproofs.interpretation.numbers import Statistics, finite
from compactproofs.interpretation.residuals import Normality, Resampling, normality, resampling
from compactproofs.interpretation.singular import SingularStructure, singular_structure
from compactproofs.interpretation.sizes import table_sizes
from compactproofs.measuring import accuracy
from compactproofs.model.kinds import Model
from compactproofs.model.weights import Weights
from compactproofs.strategies.shared import Shared
from compactproofs.tasks import task_for
from compactproofs.version import __version__

_MOST_COMPARISONS = 2**31
"""The exact accuracy is measured if it takes at most so many comparisons of logits."""


@dataclass(frozen=True)
class Interpretation:
    """What was measured of one model. Names in CamelCase are the paper's, names in snake_case ours."""

    statistics: Statistics
    """Every scalar by name; None where it has no value."""
    singular: SingularStructure
    slopes: AttentionSlopes
    copying: Copying
    gaps: Gaps
    ablations: Ablations
    residuals: dict[str, Normality]
    """By factor of EQKE_err: WEqqPerp, WQqPerp, WKkPerp, WEkkPerp."""
    resampling: Resampling
    sizes: dict[str, int]
    """d_vocab, d_vocab_out, d_model, d_head, n_ctx."""
    weights_sha256: str
    assumptions: tuple[str, ...]
    """What was assumed about the model file."""
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Plain data: finite numbers, null, strings, lists, objects."""
        return {
            "sizes": self.sizes,
            "statistics": self.statistics,
            "histograms": {
                "attention_slope": self.slopes.histogram.as_json(),
                "EVOU_diagonal_margin": self.copying.margin_histogram.as_json(),
                "EVOU_row_diff": self.copying.row_diff_histogram.as_json(),
                "gap": self.gaps.histogram.as_json(),
                **{name: r.histogram.as_json() | {"expected": _listed(r.expected)} for name, r in self.residuals.items()},
            },
            "arrays": {
                "EQKE_singular_values": _listed(self.singular.values),
                "query_direction": _listed(self.singular.query_direction),
                "size_direction": _listed(self.singular.size_direction),
                "attention_difference_mean_by_gap": _listed(self.slopes.difference_mean_by_gap),
                "attention_difference_std_by_gap": _listed(self.slopes.difference_std_by_gap),
                "EVOU_diagonal_margins": _listed(self.copying.margins),
                "EVOU_row_diffs": _listed(self.copying.row_diffs),
                "copying_failures": list(self.copying.failures),
            },
            "ablations": self.ablations.as_json(),
            "weights_sha256": self.weights_sha256,
            "assumptions": list(self.assumptions),
            "seconds": self.seconds,
            "version": __version__,
        }


def interpret(weights: Model, *, samples: int = DEFAULT_SAMPLES, exact_ablations: bool = False, seed: int = 0) -> Interpretation:
    """Measure everything that the paper's section 3 and its appendix measure. Float64 measurements, no theorems.

    Args:
        weights: a model of max-of-K.
        samples: random sequences per ablation; all sequences if there are no more.
        exact_ablations: evaluate all sequences (at most 2^25) for every ablation; slow.
        seed: of the sample.

    Example:
        >>> import compactproofs as cp
        >>> measured = cp.interpret(cp.zoo("max-of-4"), samples=1000)
        >>> measured.statistics["EQKERatioFirstTwoSingularFloat"] > 100, measured.copying.failures
        (True, (0, 1, 2, 3, 5, 6, 7))
    """
    started = time.perf_counter()
    if not isinstance(weights, Weights):
        raise UnsupportedError(
            f"interpret measures the paper's quantities, of one head without norms and MLP; this network has {weights.described}"
        )
    task = task_for(weights, "max")  # refuses a model without an output for every token
    with np.errstate(all="ignore"):
        shared = Shared(weights, task)
        directions = find_directions(weights)
        factors = residual_factors(weights, directions)
        singular, slopes, copied = singular_structure(weights), attention_slopes(weights), copying(weights)
        gaps, resampled = gap_distribution(weights, shared), resampling(factors)
        residuals = {field.name: normality(getattr(factors, field.name)) for field in fields(factors)}
        ablated = ablations(weights, samples=samples, exact=exact_ablations, seed=seed)
        statistics: Statistics = {"BruteForceAccuracyFloat": _exact_accuracy(weights)}
        statistics |= singular.statistics() | slopes.statistics() | table_sizes(weights) | copied.statistics()
        statistics |= error_terms(weights, directions) | resampled.statistics()
        for name, measured in residuals.items():
            statistics |= measured.statistics(name)
        statistics |= gaps.statistics() | ablated.statistics()
    return Interpretation(
        statistics=statistics,
        singular=singular,
        slopes=slopes,
        copying=copied,
        gaps=gaps,
        ablations=ablated,
        residuals=residuals,
        resampling=resampled,
        sizes={name: getattr(weights, name) for name in ("d_vocab", "d_vocab_out", "d_model", "d_head", "n_ctx")},
        weights_sha256=weights.sha256,
        assumptions=weights.assumptions,
        seconds=time.perf_counter() - started,
    )


def _exact_accuracy(weights: Weights) -> float | None:
    if weights.d_vocab**weights.n_ctx * weights.d_vocab_out > _MOST_COMPARISONS:
        return None
    measured = accuracy(weights, seconds=None)
    return measured.accuracy if not measured.undecided else None


def _listed(values: np.ndarray) -> list[float | None]:
    return [finite(value) for value in values.tolist()]
