"""Numpy functions that every duck array answers by its method of the same name."""

from collections.abc import Callable
from typing import Any

import numpy as np

METHOD_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.max: lambda x, axis=None: x.max(axis),
    np.min: lambda x, axis=None: x.min(axis),
    np.sum: lambda x, axis: x.sum(axis),
    np.mean: lambda x, axis: x.mean(axis),
    np.cumsum: lambda x, axis: x.cumsum(axis),
}
