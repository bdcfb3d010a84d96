"""One line on each statistic, for people who read the table."""

from __future__ import annotations

from compactproofs.bounds.low_rank_scores import AttentionError

_SLOPE = "EQKEHistAttentionDifferenceOverGapDupBySeqCount"
_MARGIN = "EVOUHistMinAboveDiagDupBySeqCount"

SECTIONS: dict[str, dict[str, str]] = {
    "whole model": {
        "BruteForceAccuracyFloat": "share of all sequences answered correctly, exact over the reals",
    },
    "EQKE is almost rank one (attention scale not included)": {
        "EQKEFirstSingularFloat": "largest singular value of EQKE",
        "EQKESecondSingularFloat": "second singular value: what is left without the first direction",
        "EQKERatioFirstTwoSingularFloat": "their ratio; large means one direction decides attention",
        "EQKESizeDirectionDiffsMeanFloat": "mean step of the size direction from token to token",
        "EQKEQueryDirectionMeanFloat": "mean of the query direction; 1/sqrt(d_vocab) if all queries are alike",
        "query_direction_std": "standard deviation of the query direction; 0 if all queries are alike",
        "size_direction_decreasing_steps": "steps at which the size direction decreases; 0 if it is monotone",
    },
    "larger tokens get more attention (scale included)": {
        f"{_SLOPE}MeanFloat": "score difference per unit of token difference, mean weighted by sequences",
        f"{_SLOPE}StdDevFloat": "its standard deviation",
        f"{_SLOPE}MinFloat": "its smallest value",
        f"{_SLOPE}MaxFloat": "its largest value",
        "attention_ratio_per_token": "exp of the mean: how much more attention token t + 1 gets than t",
    },
    "positions and the direct path are small": {
        "EQKPWithAttnScaleAbsMaxFloat": "largest |EQKP|, scale included",
        "EQKP_abs_mean": "mean |EQKP|, scale included",
        "EQKP_row_diff_max": "largest difference between two positions for one query",
        "PVOU_abs_max": "largest |PVOU|",
        "PVOU_row_diff_max": "largest difference between two logits from one position",
        "EUPUAbsMaxFloat": "largest |EU|",
        "EU_row_diff_max": "largest difference between two logits from one query",
        "EU_row_diff_mean": "mean over queries of the largest such difference",
    },
    "EVOU copies": {
        "EPVOUInputsWithCopyingFailureMaxFloat": "largest token whose diagonal is not the largest entry of its row",
        "copying_failures": "number of such tokens",
        "copying_failures_sequence_fraction": "share of sequences whose largest token is one of them",
        "EPVOUCenteredOffDiagonalMeanFloat": "mean of off-diagonal minus diagonal entries",
        f"{_MARGIN}MeanFloat": "largest off-diagonal minus diagonal entry, mean weighted by sequences",
        f"{_MARGIN}StdDevFloat": "its standard deviation",
        f"{_MARGIN}MinFloat": "its smallest value",
        f"{_MARGIN}MaxFloat": "its largest value; negative if every token is copied",
        "EPVOUMaxRowDiffMeanFloat": "largest minus smallest entry of a row, mean over rows",
        "EVOU_row_diff_std": "its standard deviation",
        "EVOU_row_diff_min": "its smallest value",
        "EVOU_row_diff_max": "its largest value",
    },
    "the error term EQKE_err (scale not included)": {
        "EQKEErrMaxRowDiffFloat": "largest difference within a row: what the bounds below should approach",
        "EQKEErrMaxAbsFloat": "largest entry",
        "EQKEErrMeanDimZeroNormFloat": "norm of the mean row",
        "EQKEErrFirstSingularFloat": "largest singular value",
        "EQKEErrFirstSingularSqrtTwoFloat": "times sqrt 2: bounds the row difference",
        "EQKEErrFroNormFloat": "Frobenius norm",
        "EQKEErrFroNormSqrtTwoFloat": "times sqrt 2: bounds the row difference",
    },
    "bounds on its row difference, by method": {
        "EQKEErrBoundMaxDiffFloat": "max_diff, best split of the four factors",
        "EQKEErrBoundMaxDiffExactFloat": "multiplied out",
        "EQKEErrBoundMaxDiffSubproductFloat": "max_diff_subproduct",
        "EQKEErrBoundMaxDiffSubproductRecursiveFloat": "max_diff_subproduct_recursive",
        "EQKEErrBoundMeanMaxDiffFloat": "mean+max_diff, best split",
        "EQKEErrBoundMeanMaxDiffSubproductFloat": "mean+max_diff_subproduct",
        "EQKEErrBoundMeanMaxDiffSubproductRecursiveFloat": "mean+max_diff_subproduct_recursive",
        "EQKEErrBoundMeanRecursiveMaxDiffSubproductRecursiveFloat": "mean_recursive+max_diff_subproduct_recursive",
        "EQKEErrBoundSvdFloat": "svd",
    },
    "errors compound: products of norms of its factors": {
        "WEqqPerpFirstSingularFloat": "largest singular value of the query embeddings' rest",
        "WQqPerpFirstSingularFloat": "of W_Q's rest",
        "WKkPerpFirstSingularFloat": "of W_K's rest",
        "WEkkPerpFirstSingularFloat": "of the key embeddings' rest",
        "EQKEErrProdFirstSingularFloat": "their product",
        "EQKEErrProdFirstSingularSqrtTwoFloat": "times sqrt 2: bounds the row difference",
        "WEqqPerpFroNormFloat": "Frobenius norm of the query embeddings' rest",
        "WQqPerpFroNormFloat": "of W_Q's rest",
        "WKkPerpFroNormFloat": "of W_K's rest",
        "WEkkPerpFroNormFloat": "of the key embeddings' rest",
        "EQKEErrProdFroNormFloat": "their product",
        "EQKEErrProdFroNormSqrtTwoFloat": "times sqrt 2: bounds the row difference",
    },
    "errors that our strategies allow for (scale included, worst query)": {
        f"attention_error_upper_{error}": f"attention error {error}" for error in AttentionError
    },
    "its factors look random": {
        "ResampleEQKEErrMeanFloat": "largest row difference after shuffling the factors' entries, mean of 100",
        "ResampleEQKEErrStdDevFloat": "its standard deviation",
        "ResampleNormalEQKEErrMeanFloat": "the same with normal entries, mean of 100",
        "ResampleNormalEQKEErrStdDevFloat": "its standard deviation",
        "resample_deviations_above_shuffled": "standard deviations by which the actual row difference exceeds the shuffled ones",
        **{
            f"{factor}_{name}": f"{text} of the entries of {factor}"
            for factor in ("WEqqPerp", "WQqPerp", "WKkPerp", "WEkkPerp")
            for name, text in {
                "mean": "mean",
                "std": "standard deviation",
                "skewness": "skewness (normal: 0)",
                "excess_kurtosis": "excess kurtosis (normal: 0)",
                "normal_distance": "Kolmogorov distance from a normal distribution",
            }.items()
        },
    },
    "gaps (max_diff_exact, exact EQKE, drop)": {
        "gap_mean": "smallest gap below the label that the bound needs, mean weighted by sequences",
        "gap_std": "its standard deviation",
        "gap_median": "its median",
        "gap_95_percent": "a gap that suffices for 95 % of the sequences that have one",
        "gap_none_fraction": "share of sequences whose query, label and number of others have no working gap",
        "gap_dropped_sequence_fraction": "share of sequences that the gap proof does not cover",
    },
}
"""Statistics by section; ablations are added by name."""

_KNOWN = {name: (section, text) for section, names in SECTIONS.items() for name, text in names.items()}


def explain(name: str) -> tuple[str, str]:
    """Section of a statistic and one line on it."""
    if name in _KNOWN:
        return _KNOWN[name]
    measure, _, tables = name.partition("_zeroing_")
    what = "accuracy" if measure == "accuracy" else "mean -log p"
    return f"zero-ablations: {what}", f"{what} with {'nothing' if tables == 'none' else tables.replace('_', ', ')} zeroed"
