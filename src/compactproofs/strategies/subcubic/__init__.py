"""The paper's subcubic proofs: three choices, composed."""

from compactproofs.strategies.subcubic.options import PUBLISHED_QUERY_HANDLINGS, AttentionError, DirectPath, QueryHandling
from compactproofs.strategies.subcubic.strategy import Subcubic

__all__ = ["PUBLISHED_QUERY_HANDLINGS", "AttentionError", "DirectPath", "QueryHandling", "Subcubic"]
