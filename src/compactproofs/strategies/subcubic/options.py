"""The three choices that make up a subcubic proof, under their published names."""

from enum import StrEnum


class DirectPath(StrEnum):
    """How the direct path EU[q, o] - EU[q, m] is bounded."""

    MEAN_QUERY = "mean_query+max_diff"
    SVD_QUERY = "svd_query+max_diff"
    MAX_DIFF = "max_diff"
    MAX_DIFF_EXACT = "max_diff_exact"
    GLOBAL_MAX_DIFF_EXACT = "global_max_diff_exact"


class AttentionError(StrEnum):
    """What replaces EQKE, and how the error of the replacement is bounded."""

    SVD = "svd"
    MAX_DIFF = "max_diff"
    MAX_DIFF_SUBPRODUCT = "max_diff_subproduct"
    MAX_DIFF_SUBPRODUCT_RECURSIVE = "max_diff_subproduct_recursive"
    MEAN_MAX_DIFF = "mean+max_diff"
    MEAN_MAX_DIFF_SUBPRODUCT = "mean+max_diff_subproduct"
    MEAN_MAX_DIFF_SUBPRODUCT_RECURSIVE = "mean+max_diff_subproduct_recursive"
    MEAN_RECURSIVE = "mean_recursive+max_diff_subproduct_recursive"
    EXACT_EQKE = "exact_EQKE+max_diff_exact"
    MAX_DIFF_EXACT = "max_diff_exact"


class QueryHandling(StrEnum):
    """How the maximum over outputs is taken when the attention to the label depends on the query."""

    MEAN_QUERY_DIFF = "mean_query+diff"
    DROP = "drop_average_query_per_output_logit_reasoning"
    ENVELOPE = "envelope"


PUBLISHED_QUERY_HANDLINGS = (QueryHandling.MEAN_QUERY_DIFF, QueryHandling.DROP)
"""`envelope` is ours; the paper's hundred strategies use these two."""
