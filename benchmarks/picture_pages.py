"""Figures and tables of the pages that explain: how proofs work, how softmax is treated, what it is compared with; and the gallery.

    python benchmarks/picture_pages.py     # writes docs/explanation/pictures, docs/gallery, and tables between marks in pages

What is written follows from the bundled max-of-4 model and from measurements that are committed beside the pages: `measure_gallery.py`,
`compare_softmax.py`, `compare_methods.py`, `compare_marabou.py`, `compare_verifiers.py --json`. A test compares it with what is committed.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from drawing import Box, bar, line, rotated, svg, text
from mechanism_pictures import (
    LABEL,
    QUERY,
    RIGHT,
    WRONG,
    attention_table,
    counting_picture,
    counts,
    grid_picture,
    left_picture,
    one_sequence,
    split_picture,
    square,
    value_table,
)
from task_pages import _interval, _width

from compactproofs.model.files import write_atomically

ROOT = Path(__file__).resolve().parents[1]
EXPLAINED, PICTURES, GALLERY = Path("docs/explanation"), Path("docs/explanation/pictures"), Path("docs/gallery")
END = "<!-- end -->"
WAYS = {
    "interval": ("intervals for attention, multiplied by intervals for values", "badline"),
    "vertex": ("the best bound that ranges of scores and values allow", "greyline"),
    "identity": ("the threshold identity", "goodline"),
}
"""Of `compare_softmax.py`, in words, with how they are drawn"""


def read(path: Path) -> Any:
    """What was measured."""
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


def between(page: str, name: str, lines: list[str]) -> str:
    """A page with other lines between its marks."""
    begin = f"<!-- begin: benchmarks/picture_pages.py {name} -->"
    assert page.count(begin) == 1, f"no mark {begin}"
    written = "\n".join([begin, "", *lines, "", END])
    return re.sub(f"{re.escape(begin)}\n.*?{re.escape(END)}", lambda _: written, page, count=1, flags=re.DOTALL)


# --- the gallery ---


def failing_picture(row: dict) -> str:
    """What of each label may fail, on a logarithmic axis."""
    shares = [int(failing) / int(of) for failing, of in zip(row["failing"], row["of"], strict=True)]
    left, top, width, height, decades = 58, 26, 320, 110, 6
    step = width / len(shares)
    parts = [text(left + width / 2, 11, "at most this part of a label fails", "strong")]
    for power in range(0, decades + 1, 2):
        y = top + height * power / decades
        parts += [line([(left, y), (left + width, y)]), text(left - 5, y, "1" if power == 0 else f"1e-{power}", "small right")]
    for label, share in enumerate(shares):
        if share > 10**-decades:
            tall = height * (1 + math.log10(share) / decades)
            parts.append(bar(Box(left + step * label, top + height - tall, max(step - 1, 1), tall), "bad"))
    for label in (0, len(shares) // 4, len(shares) // 2, 3 * len(shares) // 4, len(shares) - 1):
        parts.append(text(left + step * (label + 0.5), top + height + 11, str(label), "small"))
    parts += [text(left + width / 2, top + height + 28, "label", "small"), rotated(12, top + height / 2, "part that may fail")]
    clean = sum(share == 0 for share in shares)
    said = f"{clean} of {len(shares)} labels are proven without an exception. Of label {max(range(len(shares)), key=shares.__getitem__)} the greatest part may fail."
    return svg((392, top + height + 40), f"Where {row['model']} may fail", said, parts)


def verdict(row: dict) -> str:
    """What became of the certificate."""
    if row["accepted"] is None:
        return "not made"
    size = f"{row['bytes'] / 1000:,.0f} kB" if row["bytes"] < 10**6 else f"{row['bytes'] / 10**6:.1f} MB"
    return f"{'accepted' if row['accepted'] else 'refused'}, {size}, {row['checking_seconds']:g} s"


def gallery_table(rows: list[dict]) -> list[str]:
    """Every bundled model."""
    lines = [
        "| model | network | K | tokens | certified interval | width | proof, s | certificate: checker, size, time |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return lines + [
        f"| [`{r['model']}`](#{r['model']}) | {r['described']} | {r['n_ctx']} | {r['d_vocab']} | {_interval(r)} | {_width(r)} | {r['seconds']:g} | {verdict(r)} |"
        for r in rows
    ]


def gallery_models(rows: list[dict]) -> list[str]:
    """A figure for each."""
    lines = []
    for r in rows:
        clean, labels = sum(each == "0" for each in r["failing"]), len(r["failing"])
        size = f"{r['described'][0].upper()}{r['described'][1:]}, {r['n_ctx']} tokens below {r['d_vocab']}."
        proven = f"{clean} of {labels} labels are proven without an exception; most of what may fail has the label"
        worst = max(range(labels), key=lambda label: int(r["failing"][label]))
        lines += [
            f"### {r['model']}",
            "",
            f"![Where {r['model']} may fail, by label]({r['model']}.svg)",
            "",
            f"{size} {_accuracy(r)} {proven} {worst}.{_uncertified(r)}",
            "",
        ]
    return lines[:-1]


def _accuracy(row: dict) -> str:
    if row["correct_at_least"] == row["correct_at_most"]:
        return "The bounds meet: exactly this many inputs are answered right."
    return f"In a sample of a million {row['accuracy']:.6f} are right."


def _uncertified(row: dict) -> str:
    if row["accepted"]:
        return ""
    said = "There is no certificate" if row["accepted"] is None else "The checker refuses the certificate"
    return f" {said}: " + row["reason"].rstrip(".").replace("|", "\\|") + "."


# --- softmax ---


def softmax_picture(found: dict) -> str:
    """How much is certified after how many blocks."""
    left, top, width, height = 56, 24, 440, 210
    powers = range(2, 6)
    total = next(iter(found["ways"].values()))["total"]

    def place(blocks: int, certified: int) -> tuple[float, float]:
        return left + width * (math.log10(max(blocks, 100)) - 2) / (len(powers) - 0.5), top + height * (1 - certified / total)

    parts = [text(left + width / 2, 11, "Certified inputs of max-of-4, after so many blocks", "strong")]
    for quarter in range(5):
        y = top + height * quarter / 4
        parts += [line([(left, y), (left + width, y)]), text(left - 5, y, f"{100 - 25 * quarter} %", "small right")]
    for power in powers:
        x, _ = place(10**power, 0)
        parts += [line([(x, top), (x, top + height)]), text(x, top + height + 12, f"{10**power:,}", "small")]
    for row, (name, (words, kind)) in enumerate(WAYS.items()):
        points = [place(blocks, certified) for blocks, certified in found["ways"][name]["curve"]]
        y = top + height + 56 + 20 * row
        parts += [line(points, kind), line([(left, y), (left + 34, y)], kind), text(left + 42, y, words, "small left")]
    parts.append(text(left + width / 2, top + height + 32, "blocks looked at", "small"))
    said = "; ".join(
        f"{WAYS[name][0]}: {each['certified'] / total:.3f} after {each['blocks']:,} blocks" for name, each in found["ways"].items()
    )
    return svg((left + width + 20, top + height + 56 + 20 * len(WAYS)), "Ways to treat the softmax", f"{said}.", parts)


def softmax_table(found: dict, crown: dict) -> list[str]:
    """The same in numbers, with CROWN."""
    lines = ["| bound | certified at once, nothing cut | certified in the end | blocks | processor s |", "|---|---|---|---|---|"]
    for name, (words, _) in WAYS.items():
        r = found["ways"][name]
        end = f"{_down(r['certified'], r['total'])}{', all that is right' if r['finished'] else ', time was up'}"
        lines.append(f"| {words} | {_down(r['uncut'], r['total'], 3)} | {end} | {r['blocks']:,} | {r['seconds']:g} |")
    c = crown["found"]
    end = f"{_down(c['by_blocks'] + c['singly'], c['total'], 3)}{'' if c['finished'] else ', time was up'}"
    lines.append(
        f"| CROWN (auto_LiRPA 0.3): linear bounds of exp and 1/x | {_down(c['at_first'], c['total'], 3)} | {end} | {c['blocks']:,} | {c['processor_seconds']:.0f} |"
    )
    return lines


def crown() -> dict:
    """What `compare_verifiers.py` wrote about the bundled model."""
    (rows,) = read(EXPLAINED / "crown.json").values()
    (row,) = (row for row in rows if row["method"] == "CROWN, tokens")
    return row


def _down(part: int, total: int, digits: int = 6) -> str:
    return f"{part * 10**digits // total / 10**digits:.{digits}f}"


# --- compared with ---


def methods_table(rows: list[dict]) -> list[str]:
    """Brute force, sampling and proofs."""
    lines = ["| model | method | states | interval | width | processor s |", "|---|---|---|---|---|---|"]
    for r in rows:
        if r["interval"] is None:
            inputs = re.search(r"over (\d+\^\d+)", r["what"])
            lines.append(f"| `{r['model']}` | {r['method']} | not run: {inputs[1] if inputs else 'too many'} inputs | | | |")
            continue
        low, high = r["interval"]
        sampled, method = r["method"] == "sampling", f"`{r['method']}`" if r["method"].startswith("threshold") else r["method"]
        states = f"99 % confidence, {int(r['what'].split()[0]):,} samples" if sampled else "theorem"
        width = "0" if low == high else f"{high - low:.1e}"
        lines.append(f"| `{r['model']}` | {method} | {states} | {_ends(low, high)} | {width} | {r['seconds']:.2g} |")
    return lines


def _ends(low: float, high: float) -> str:
    """Rounded outwards."""
    if low == high:
        return f"{low:.8f}"
    return f"[{math.floor(low * 10**6) / 10**6:.6f}, {math.ceil(high * 10**6) / 10**6:.6f}]"


def marabou_table(found: dict) -> list[str]:
    """What Marabou answered."""
    lines = [
        "| tokens between the first and the last | questions | cannot win | not decided | squares decided | squares where no output wins |",
        "|---|---|---|---|---|---|",
    ]
    for r in found["rows"]:
        asked = sum(r["answers"].values())
        words = "any up to the label" if r["gap"] == 0 else f"at least {r['gap']} below the label"
        unsat = r["answers"].get("unsat", 0)
        lines.append(
            f"| {words} | {asked} | {unsat} | {asked - unsat} | {r['decided']} of {r['squares']} | {r['safe']} of {r['squares']} |"
        )
    return lines


def counts_table() -> list[str]:
    """Grids of the counting picture."""
    of = square(LABEL, QUERY)
    found = counts(of)
    lines = ["| steps to a unit | " + " | ".join(str(steps) for steps, _ in found) + " | real numbers |", "|---" * (len(found) + 2) + "|"]
    return [*lines, "| counted as failing | " + " | ".join(f"{n:,}" for _, n in found) + f" | {of.failing(of.sequences)} |"]


def everything() -> dict[Path, str]:
    """What is to be written where, from the root of the repository."""
    of, rows, softmax = square(LABEL, QUERY), read(GALLERY / "rows.json"), read(EXPLAINED / "softmax.json")
    found = {
        PICTURES / "attention.svg": attention_table(of.tables),
        PICTURES / "values.svg": value_table(of.tables),
        PICTURES / "right.svg": one_sequence(of, RIGHT),
        PICTURES / "wrong.svg": one_sequence(of, WRONG),
        PICTURES / "grid.svg": grid_picture(of),
        PICTURES / "counting.svg": counting_picture(of),
        PICTURES / "split.svg": split_picture(),
        PICTURES / "left.svg": left_picture(read(PICTURES / "left.json")),
        PICTURES / "softmax.svg": softmax_picture(softmax),
        **{GALLERY / f"{row['model']}.svg": failing_picture(row) for row in rows},
    }
    tables = {
        EXPLAINED / "how-proofs-work.md": {"grids": counts_table()},
        EXPLAINED / "softmax.md": {"softmax": softmax_table(softmax, crown())},
        EXPLAINED / "compared-with.md": {
            "methods": methods_table(read(EXPLAINED / "methods.json")),
            "marabou": marabou_table(read(EXPLAINED / "marabou.json")),
        },
        GALLERY / "index.md": {"table": gallery_table(rows), "models": gallery_models(rows)},
    }
    for path, written in tables.items():
        page = (ROOT / path).read_text(encoding="utf-8")
        for name, lines in written.items():
            page = between(page, name, lines)
        found[path] = page
    return found


def main() -> None:
    """Write it all."""
    for path, words in everything().items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(ROOT / path, words.encode())


if __name__ == "__main__":
    main()
