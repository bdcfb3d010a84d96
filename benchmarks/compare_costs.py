"""Write docs/strategies/costs.md: our FLOPs beside the published ones, for max-of-4 (sizes decide, not weights)."""

import csv
from importlib.resources import files
from pathlib import Path

import compactproofs as cp
from compactproofs.strategies.registry import all_strategies
from compactproofs.strategies.subcubic import QueryHandling
from compactproofs.tasks import task_for

PAGE = Path(__file__).parents[1] / "docs" / "strategies" / "costs.md"

INTRODUCTION = """# Costs, side by side with the paper's

FLOPs of checking each proof at K=4, $v=64$, $d=32$, counted by running the proof on arrays without values, by the paper's conventions (elementwise operations one per entry, a product $(r\\times n)(n\\times c)$
costs $rc(2n-1)$, indexing is free, search is not charged). Regenerate with `python benchmarks/compare_costs.py`.

For threshold proofs the table has the part that depends on sizes only: tables, brackets, terms and harms of tables, every pool of queries included. Walks, harms of single terms, listed sequences and counting depend on the weights; `prove` adds them as executed ([what is charged](../explanation/threshold-proofs.md#10-cost)).

Where we differ by more than 20 %, for these reasons:

- **brute force**: the published 1.41e14 is an error of the counter; a forward pass per input is 8.5e11 (our kernel executes about 3.2e9).
- **cubic**: a threshold on one number per (query, label, token) replaces a softmax per (query, label, token, copies, order).
- **rank-one strategies** (`svd`, `max_diff`, `mean+max_diff`, `max_diff_exact`): the paper charges checking a singular value decomposition, which a proof that holds for any direction does not need.
- **all subcubic**: attention is $O(1)$ per entry by prefix sums instead of a softmax; the direct path of label-only sequences is not multiplied out (erratum B5), which matters for the cheap direct paths; entries
  with query above label, which speak of no sequence, are not looked at. On the other hand both ends of the attention interval are evaluated.

"""


def main() -> None:
    """Write the page."""
    with (files("compactproofs") / "data" / "published_results.csv").open() as stream:
        published = {
            (r["strategy"], r["direct_path"], r["attention_error"], r["query_handling"]): float(r["flops"])
            for r in csv.DictReader(stream)
            if (r["n_ctx"], r["d_vocab"]) == ("4", "64")
        }
    weights = cp.zoo("max-of-4")
    task = task_for(weights)
    lines = ["| strategy | ours | published | ours / published | unexplained dimensions |", "|---|---|---|---|---|"]
    for s in all_strategies():
        p = s.parameters
        key = (s.name, p.get("direct_path", ""), p.get("attention_error", ""), p.get("query_handling", ""))
        length = s.length(weights, task)
        theirs = published.get(key)
        ratio = f"{length.flops / theirs:.2f}" if theirs else ""
        beside = f"{theirs:,.0f}" if theirs else ("not in the paper" if p.get("query_handling") == QueryHandling.ENVELOPE else "")
        lines.append(f"| `{s.label}` | {length.flops:,} | {beside} | {ratio} | {length.unexplained_dimensions:,} |")
    PAGE.write_text(INTRODUCTION + "\n".join(lines) + "\n")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
