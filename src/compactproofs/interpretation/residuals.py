"""Whether the residual factors look like noise: entries against a normal distribution; the error term of shuffled or redrawn factors."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from compactproofs.bounds.row_spreads import spread
from compactproofs.interpretation.error_terms import ResidualFactors
from compactproofs.interpretation.numbers import Histogram, Statistics, finite, histogram, mean_and_std

DRAWS = 100
SEED = 1234


@dataclass(frozen=True)
class Normality:
    """The entries of one matrix beside a normal distribution of the same mean and standard deviation."""

    mean: float
    std: float
    skewness: float
    """Zero for a normal distribution; NaN if all entries are equal."""
    excess_kurtosis: float
    """Zero for a normal distribution; positive if there are more outliers."""
    kolmogorov_distance: float
    """Largest difference between the two cumulative distributions."""
    histogram: Histogram
    """Of the entries."""
    expected: np.ndarray
    """How many entries a normal distribution would put into each bin (the density integrated over the bin: erratum C16)."""

    def statistics(self, name: str) -> Statistics:
        return {
            f"{name}_mean": finite(self.mean),
            f"{name}_std": finite(self.std),
            f"{name}_skewness": finite(self.skewness),
            f"{name}_excess_kurtosis": finite(self.excess_kurtosis),
            f"{name}_normal_distance": finite(self.kolmogorov_distance),
        }


@dataclass(frozen=True)
class Resampling:
    """The largest row spread of EQKE_err, and of products of random factors like its own (attention scale not included)."""

    actual: float
    shuffled_mean: float
    """Factors with their own entries in random order."""
    shuffled_std: float
    normal_mean: float
    """Factors with normal entries of their own mean and standard deviation."""
    normal_std: float

    def statistics(self) -> Statistics:
        unusual = (self.actual - self.shuffled_mean) / self.shuffled_std if self.shuffled_std > 0 else math.nan
        return {
            "ResampleEQKEErrMeanFloat": finite(self.shuffled_mean),
            "ResampleEQKEErrStdDevFloat": finite(self.shuffled_std),
            "ResampleNormalEQKEErrMeanFloat": finite(self.normal_mean),
            "ResampleNormalEQKEErrStdDevFloat": finite(self.normal_std),
            "resample_deviations_above_shuffled": finite(unusual),
        }


def normality(matrix: np.ndarray) -> Normality:
    """Compare the entries of a matrix with a normal distribution. Cost: O(size log size)."""
    entries = np.sort(matrix, axis=None)
    mean, std = mean_and_std(entries)
    counted = histogram(entries)
    if not std > 0:
        return Normality(mean, std, math.nan, math.nan, math.nan, counted, np.array([float(len(entries))]))
    standard = (entries - mean) / std
    below = _normal_cdf(standard)
    ranks = np.arange(len(entries) + 1) / len(entries)
    distance = max(np.abs(below - ranks[1:]).max(), np.abs(below - ranks[:-1]).max())
    expected = len(entries) * np.diff(_normal_cdf((counted.edges - mean) / std))
    return Normality(mean, std, float((standard**3).mean()), float((standard**4).mean() - 3.0), float(distance), counted, expected)


def resampling(factors: ResidualFactors, *, draws: int = DRAWS, seed: int = SEED) -> Resampling:
    """Redraw the factors. Deterministic for a seed. Cost: O(draws d_vocab^2 d_model)."""
    generator = np.random.default_rng(seed)
    originals = [getattr(factors, field.name) for field in fields(factors)]
    moments = [mean_and_std(original.ravel()) for original in originals]
    shuffled, normal = np.empty(draws), np.empty(draws)
    for draw in range(draws):
        shuffled[draw] = _largest_spread([generator.permuted(original.ravel()).reshape(original.shape) for original in originals])
        redrawn = [mean + std * generator.standard_normal(original.shape) for original, (mean, std) in zip(originals, moments, strict=True)]
        normal[draw] = _largest_spread(redrawn)
    return Resampling(float(spread(factors.product).max()), *mean_and_std(shuffled), *mean_and_std(normal))


def _largest_spread(factors: list[np.ndarray]) -> float:
    return float(spread(ResidualFactors(*factors).product).max())


def _normal_cdf(x: np.ndarray) -> np.ndarray:
    return np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in x.tolist()])
