"""Straight lines through logarithms: how a cost grows with a size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Fit:
    """cost = factor * size ** slope, or factor * e ** (slope * size), by least squares in log(cost)."""

    slope: float
    factor: float
    exponential: bool
    misfit: float
    """The largest relative distance of a measured cost from the line, as a factor minus one: 0.1 means within 10 %."""
    last_slope: float
    """The slope between the two largest sizes."""
    sizes: tuple[int, ...]
    first_cost: float
    """The cost at the smallest size."""
    last_cost: float
    """The cost at the largest size."""

    @property
    def base(self) -> float:
        """By what one more multiplies the cost, if the growth is exponential."""
        return math.exp(self.slope)

    def at(self, size: float) -> float:
        """The cost that the line gives."""
        return self.factor * math.exp(self.slope * (size if self.exponential else math.log(size)))

    def size_at(self, cost: float, *, from_last: bool = False) -> float:
        """The size at which the cost is reached: on the line, or on the line through the two largest sizes. Infinite if it falls."""
        slope = self.last_slope if from_last else self.slope
        if slope <= 0:
            return math.inf
        largest = self.sizes[-1]
        start, factor = (largest, self.last_cost) if from_last else (1, self.at(1))
        steps = math.log(cost / factor) / slope
        if self.exponential:
            return start + steps
        return start * math.exp(steps) if steps < 700 else math.inf


def fit(sizes: Sequence[int], costs: Sequence[float], *, exponential: bool = False) -> Fit:
    """Fit a power of the size, or (`exponential`) a power with the size in the exponent. Needs two sizes and positive costs."""
    points = sorted(zip(sizes, costs, strict=True))
    x = [float(size) if exponential else math.log(size) for size, _ in points]
    y = [math.log(cost) for _, cost in points]
    if len(set(x)) < 2:
        raise ValueError(f"sizes={list(sizes)}: a line needs at least two different ones")
    x_mean, y_mean = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True)) / sum((a - x_mean) ** 2 for a in x)
    intercept = y_mean - slope * x_mean
    worst = max(abs(b - intercept - slope * a) for a, b in zip(x, y, strict=True))
    return Fit(
        slope=slope,
        factor=math.exp(intercept),
        exponential=exponential,
        misfit=math.expm1(worst),
        last_slope=(y[-1] - y[-2]) / (x[-1] - x[-2]),
        sizes=tuple(size for size, _ in points),
        first_cost=points[0][1],
        last_cost=points[-1][1],
    )
