"""Measurements of the mechanism: what the paper's section 3 and appendix say about a model, as numbers with names."""

from compactproofs.interpretation.explanations import explain
from compactproofs.interpretation.interpretation import Interpretation, interpret
from compactproofs.interpretation.published import PublishedStatistic, comparable, published_statistics
from compactproofs.interpretation.summary import Summary, summarise, summarise_statistics

__all__ = [
    "Interpretation",
    "PublishedStatistic",
    "Summary",
    "comparable",
    "explain",
    "interpret",
    "published_statistics",
    "summarise",
    "summarise_statistics",
]
