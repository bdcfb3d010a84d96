"""Lengths of proofs, computed once for each strategy and sizes: many models have the same ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from compactproofs.model.kinds import Model
from compactproofs.model.network import Network
from compactproofs.strategies.base import AbstractStrategy, ProofLength
from compactproofs.tasks import AbstractTask


@dataclass(frozen=True)
class _Case:
    """What a length depends on, and weights that have these sizes."""

    strategy: AbstractStrategy
    task_sha256: str
    sizes: tuple[int | str, ...]
    task: AbstractTask = field(compare=False)
    weights: Model = field(compare=False)


def length_by_sizes(strategy: AbstractStrategy, weights: Model, task: AbstractTask) -> ProofLength:
    """`strategy.length(weights, task)`, which by its law depends on the sizes only."""
    try:
        hash(strategy)
    except TypeError:  # somebody's strategy with a list in it
        return strategy.length(weights, task)
    kind = weights.described if isinstance(weights, Network) else ""
    sizes = (weights.d_vocab, weights.d_vocab_out, weights.d_model, weights.d_head, weights.n_ctx, kind)
    return _length(_Case(strategy, task.sha256, sizes, task, weights))


@lru_cache(maxsize=4096)
def _length(case: _Case) -> ProofLength:
    return case.strategy.length(case.weights, case.task)
