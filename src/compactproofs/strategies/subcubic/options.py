"""How the paper's subcubic proofs treat queries, under the published names."""

from enum import StrEnum


class QueryHandling(StrEnum):
    """How the maximum over outputs is taken when the attention to the label depends on the query."""

    MEAN_QUERY_DIFF = "mean_query+diff"
    DROP = "drop_average_query_per_output_logit_reasoning"
    ENVELOPE = "envelope"


PUBLISHED_QUERY_HANDLINGS = (QueryHandling.MEAN_QUERY_DIFF, QueryHandling.DROP)
"""`envelope` is ours; the paper's hundred strategies use these two."""
