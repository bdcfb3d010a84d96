"""Upper bounds on the spread of a row of a matrix product, without multiplying the matrices out.

The spread (row-diff) of a row is its largest entry minus its smallest. All functions are array code; every bound holds for every matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_POWER_STEPS = 3


def spread(B: Any) -> Any:
    """Exact spread of each row (last axis). Cost: two comparisons per entry."""
    return B.max(axis=-1) - B.min(axis=-1)


def spread_of_product_upper(A: Any, B: Any, *, mean: bool) -> Any:
    """Upper-bound the spread of each row of A @ B.

    Guarantee: result[q] >= spread((A @ B)[q]).
    Cost: O(size of A + size of B); with `mean`, one row times B more.
    Source: paper, max row-diff; with `mean`, mean+diff applied to the rows of A.

    (A B)[q, i] - (A B)[q, j] = sum_k A[q, k] (B[k, i] - B[k, j]) <= sum_k |A[q, k]| spread(B[k]). Splitting off any row h, the
    same for every q, adds spread(h B) and leaves A - h.
    """
    if not mean:
        return np.abs(A) @ spread(B)
    h = A.mean(axis=0)
    return spread(h @ B) + np.abs(A - h) @ spread(B)


def spread_of_split_product_upper(factors: tuple[Any, ...], *, mean: bool) -> Any:
    """The smallest of the bounds above over all places to split a product of several factors in two.

    Guarantee: result[q] >= spread of row q of the product.
    Cost: the partial products from both ends.
    Source: paper, max row-diff over subproducts.
    """
    left, right = [factors[0]], [factors[-1]]
    for i in range(1, len(factors) - 1):
        left.append(left[-1] @ factors[i])
        right.append(factors[-1 - i] @ right[-1])
    bounds = [spread_of_product_upper(a, b, mean=mean) for a, b in zip(left, reversed(right), strict=True)]
    result = bounds[0]
    for bound in bounds[1:]:
        result = np.minimum(result, bound)
    return result


def spread_recursive_upper(factors: tuple[Any, ...], *, mean: bool, mean_below: bool) -> Any:
    """Upper-bound the spread of each row of a product by absolute values all the way down; no two matrices are multiplied.

    Guarantee: result[q] >= spread of row q of the product.
    Cost: O(total size of the factors); a mean costs a row times the remaining factors.
    Source: paper, recursive max row-diff.
    """
    if len(factors) == 1:
        return spread(factors[0])
    first, rest = factors[0], factors[1:]
    below = spread_recursive_upper(rest, mean=mean_below, mean_below=mean_below)
    if not mean:
        return np.abs(first) @ below
    h = first.mean(axis=0)
    row = h
    for factor in rest:
        row = row @ factor
    return spread(row) + np.abs(first - h) @ below


def spread_by_singular_value_upper(X: Any, Y: Any) -> Any:
    """Upper-bound the spread of every row of X @ Y by its largest singular value, without trusting an SVD.

    Guarantee: result >= sqrt(2) sigma_1(X Y) >= spread of any row of X @ Y.
    Cost: O(d_vocab d_model^2 + d_model^3).
    Source: paper (svd), with a certified singular value in place of a computed one.

    The row difference is (X Y)[q] applied to a vector of norm sqrt(2). The eigenvalues of P = (X^T X)(Y Y^T) are those of
    (X Y)^T (X Y), hence real and not negative, and the largest is at most trace(P^p)^(1/p) for every p >= 1; here p = 16. The bound is
    loose by a factor of at most d_model^(1/32).
    """
    P = (X.T @ X) @ (Y @ Y.T)
    for _ in range(_POWER_STEPS):
        P = P @ P
    bound = (P * P.T).sum(axis=0).sum(axis=0)
    for _ in range(_POWER_STEPS + 2):
        bound = np.sqrt(np.maximum(bound, 0.0))
    return bound * _SQRT_2_UPPER


_SQRT_2_UPPER = float(np.nextafter(np.sqrt(2.0), 2.0))
