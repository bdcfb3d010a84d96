"""The paper's subcubic proofs: three choices, composed."""

from compactproofs.bounds.direct_path import DirectPath
from compactproofs.bounds.low_rank_scores import AttentionError
from compactproofs.strategies.subcubic.gap_table import GapTable, gap_table
from compactproofs.strategies.subcubic.options import PUBLISHED_QUERY_HANDLINGS, QueryHandling
from compactproofs.strategies.subcubic.strategy import Subcubic

__all__ = ["PUBLISHED_QUERY_HANDLINGS", "AttentionError", "DirectPath", "GapTable", "QueryHandling", "Subcubic", "gap_table"]
