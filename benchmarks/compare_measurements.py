"""Rewrite the comparison in docs/explanation/measurements.md: statistics of trained models beside the published ones, for max-of-4.

compactproofs interpret FOLDER --json measured.json
python benchmarks/compare_measurements.py measured.json
"""

import json
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "measurements.md"
START, END = "<!-- written by benchmarks/compare_measurements.py -->\n", "<!-- end -->\n"


def number(value: float | None, digits: int = 5) -> str:
    """Significant digits, or a dash."""
    return "-" if value is None else f"{value:.{digits}g}"


def main() -> None:
    """Write the tables."""
    data = json.loads(Path(sys.argv[1]).read_text())
    summary, models = data["summary"], len(data["models"])
    lines = [f"{models} freshly trained models of max-of-4; the published numbers are over the authors' 151 models.\n"]
    lines += ["| statistic | published | ours | std apart |", "|---|---|---|---|"]
    for name, theirs in data["published"].items():
        ours, apart = summary[name], theirs["std_apart"]
        published = f"{number(theirs['mean'])} ± {number(theirs['std'], 3)}"
        lines.append(
            f"| `{name}` | {published} | {number(ours['mean'])} ± {number(ours['std'], 3)} | {'-' if apart is None else f'{apart:+.2f}'} |"
        )
    distances = [abs(p["std_apart"]) for p in data["published"].values() if p["std_apart"] is not None]
    # Both means are over many models: their difference has this standard error, in units of the published deviation.
    error = (1 / models + 1 / 151) ** 0.5
    lines.append(
        f"\nThe largest distance is {max(distances):.2f} published standard deviations, which is {max(distances) / error:.1f} standard errors of the "
        f"difference of two such means; {sum(d <= 2 * error for d in distances)} of {len(distances)} are within two standard errors.\n"
    )
    lines += [
        "Zero-ablations over the same models (mean ± standard deviation over models):\n",
        "| zeroed | accuracy | mean -log p |",
        "|---|---|---|",
    ]
    for name in summary:
        if name.startswith("accuracy_zeroing_"):
            tables = name.removeprefix("accuracy_zeroing_")
            accuracy, loss = summary[name], summary[f"loss_zeroing_{tables}"]
            words = "nothing" if tables == "none" else ", ".join(tables.split("_"))
            lines.append(
                f"| {words} | {accuracy['mean']:.5f} ± {accuracy['std']:.5f} | {number(loss['mean'], 4)} ± {number(loss['std'], 2)} |"
            )
    text = PAGE.read_text()
    before, after = text.split(START)[0], text.split(END)[1]
    PAGE.write_text(before + START + "\n" + "\n".join(lines) + "\n\n" + END + after)
    print(f"wrote {PAGE.name}: {models} models, largest distance {max(distances):.2f}")


if __name__ == "__main__":
    main()
