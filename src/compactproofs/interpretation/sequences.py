"""How many sequences have a given largest token: exact integers."""

from __future__ import annotations

from math import comb


def with_label(label: int, n_ctx: int) -> int:
    """Sequences of tokens at most `label` that contain it."""
    return int((label + 1) ** n_ctx - label**n_ctx)


def with_label_and_query(label: int, query: int, n_ctx: int) -> int:
    """Those among them whose last token is `query`.

    If the query is the label, the other tokens are free up to it; if it is smaller, the label must be among them.
    (The published code counts label^(n_ctx - 1) sequences for each query: erratum C15.)
    """
    if query > label:
        return 0
    others: int = (label + 1) ** (n_ctx - 1)
    return others if query == label else others - label ** (n_ctx - 1)


def in_stratum(label: int, others: int, n_ctx: int) -> int:
    """Sequences with a given query and label, and exactly `others` tokens before the query that are not the label."""
    return int(comb(n_ctx - 1, others) * label**others)
