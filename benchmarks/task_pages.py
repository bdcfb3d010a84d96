"""The pages on tasks: one for each task of the library, one on tasks of one's own, an index, the table of results, the navigation.

    python benchmarks/task_pages.py          # writes docs/tasks, docs/results/tasks.md and the pages' names in mkdocs.yml

What is written follows from what the package says about its tasks, from their automata, and from docs/tasks/rows.json, which
`compare_tasks.py DIR --rows docs/tasks/rows.json` collects. Nothing is trained or proved. A test compares it with what is committed.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compactproofs.errors import TaskError
from compactproofs.model.files import write_atomically
from compactproofs.tasks import DESCRIBED, NO_LABEL, AbstractTask, Described, NamedTask, Rule, task_of_size
from compactproofs.tasks.imported import RuleTask

ROOT = Path(__file__).resolve().parents[1]
PAGES = Path("docs/tasks")
ROWS = ROOT / PAGES / "rows.json"
BEGIN, END = "<!-- begin: benchmarks/task_pages.py -->", "<!-- end -->"
NAV_BEGIN, NAV_END = "      # begin: benchmarks/task_pages.py", "      # end"

SIZES = ((4, 16), (4, 64), (10, 64))
"""n_ctx and d_vocab of what is trained."""
SEQUENCES = ((5, 9, 2, 9), (1, 7, 2, 0), (3, 3, 3, 12), (15, 5, 5, 8), (2, 4, 10, 1))
"""Examples on every page, of tokens below 16."""
TINY = {"regex": "regex:.* 1 [^1]"}
"""What is drawn, of three tokens below 3, where it is not the example with smaller numbers."""

OWN = Rule[tuple[int, ...]]((), lambda seen, t: (*seen, t)[:2], lambda seen: seen[1])
"""The rule on the page about tasks of one's own."""


# --- results ---


def rows() -> list[dict]:
    """What was measured."""
    return json.loads(ROWS.read_text(encoding="utf-8"))


def width(row: dict) -> float:
    """Of the certified interval, from the counts."""
    return (int(row["correct_at_most"]) - int(row["correct_at_least"])) / int(row["total"])


def table(measured: list[dict]) -> str:
    """Of all that was measured, as Markdown."""
    lines = [
        "| task | K | tokens | constant | accuracy | certified interval | width | certificate | steps | training s | proof s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    order = {each.example: i for i, each in enumerate(DESCRIBED)}
    for r in sorted(measured, key=lambda r: (order.get(r["task"], len(order)), r["n_ctx"], r["d_vocab"])):
        name = _code(r["task"]) + (" (balanced)" if r["sampling"] == "balanced" else "")
        lines.append(
            f"| {name} | {r['n_ctx']} | {r['d_vocab']} | {r['constant']:.4f} | {'' if r['exact'] else '≈ '}{r['accuracy']:.6f} | "
            f"{_interval(r)} | {_width(r)} | {_verdict(r)} | {r['steps']} | {r['training_seconds']:.0f} | {r['seconds']:.1f} |"
        )
    return "\n".join(lines)


def _interval(row: dict) -> str:
    """Rounded outwards; where both bounds are one, the count."""
    least, most, total = (int(row[name]) for name in ("correct_at_least", "correct_at_most", "total"))
    if least == most:
        return "1, all right" if least == total else f"{least} / {total}"
    return f"[{_millionths(least * 10**6 // total)}, {_millionths(-(-most * 10**6 // total))}]"


def _millionths(n: int) -> str:
    return f"{n // 10**6}.{n % 10**6:06d}"


def _width(row: dict) -> str:
    return "0" if width(row) == 0 else f"{width(row):.1e}"


def _verdict(row: dict) -> str:
    """Of the checker, on the certificate of the proof."""
    if row["accepted"] is None:
        return "not made"
    if row["accepted"]:
        return "accepted"
    return "refused, too large" if "more than" in row["reason"] else "refused"


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


# --- figures ---


@dataclass(frozen=True)
class Node:
    """A state after so many tokens."""

    column: int
    state: int
    path: tuple[int, ...]
    """Tokens that lead there"""


_ACROSS, _DOWN, _RADIUS, _LEFT, _TOP = 170, 56, 15, 34, 40
_STYLE = """
text{font:13px system-ui,sans-serif;fill:#222;text-anchor:middle;dominant-baseline:central}
.small{font-size:12px;fill:#555}.edge{stroke:#8a94a6;stroke-width:1.3;fill:none}.node{fill:#e8f0fe;stroke:#3f6fd1;stroke-width:1.5}
.start{fill:#3f6fd1}.out{fill:#fdf1dc;stroke:#b7791f}.none{fill:none;stroke:#8a94a6;stroke-dasharray:3 3}
.on{paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}
@media (prefers-color-scheme:dark){text{fill:#e6e6e6}.small{fill:#b0b6c2}.edge{stroke:#7d8799}.node{fill:#22304d;stroke:#84a9ff}
.start{fill:#84a9ff}.out{fill:#40331a;stroke:#e0b15c}.on{stroke:#1e2129}}
""".replace("\n", "")


_ARROW = """<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0L8 4L0 8z" fill="#8a94a6"/></marker></defs>"""


def figure(task: AbstractTask, words: Callable[[Node], str]) -> str:
    """How the automaton reads: a column of states after each number of tokens, the tokens on the arrows, the right output at the end."""
    columns = _columns(task, words)
    height = _TOP + _DOWN * max(map(len, columns)) + 8
    place = {
        (node.column, node.state): (_LEFT + _ACROSS * node.column, _TOP + (height - _TOP) / 2 + _DOWN * (i - (len(column) - 1) / 2))
        for column in columns
        for i, node in enumerate(column)
    }
    said = {(node.column, node.state): "" if node.column == 0 else words(node) for column in columns for node in column}
    wide = _LEFT + _ACROSS * task.n_ctx + 130
    title = f"The automaton of {task.spec} for {task.n_ctx} tokens from 0 to {task.d_vocab - 1}"
    states = len({node.state for column in columns for node in column})
    saying = f"{title}: {states} states, drawn after 0 to {task.n_ctx} tokens; arrows carry tokens, boxes at the right the right output."
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {height}" width="{wide}" height="{height}" role="img" aria-labelledby="t d">',
        f'<title id="t">{html.escape(title)}</title><desc id="d">{html.escape(saying)}</desc><style>{_STYLE}</style>',
        _ARROW,
        *(f'<text class="small" x="{_LEFT + _ACROSS * i}" y="16">{_read(i)}</text>' for i in range(task.n_ctx + 1)),
        f'<text class="small" x="{wide - 44}" y="16">right output</text>',
    ]
    on_top = []
    for column in columns[:-1]:
        for node in column:
            for following, tokens in _moves(task, node.state).items():
                (x, y), (X, Y) = place[node.column, node.state], place[node.column + 1, following]
                begin, end = x + _half(said[node.column, node.state]), X - _half(said[node.column + 1, following]) - 3
                line, label = _edge((begin, y), (end, Y), ",".join(map(str, tokens)))
                parts.append(line)
                on_top.append(label)
    for column in columns:
        for node in column:
            parts.append(_drawn(place[node.column, node.state], said[node.column, node.state]))
            if node.column == task.n_ctx:
                parts.append(_output(place[node.column, node.state], wide - 44, int(task.automaton.labels[node.state])))
    return "\n".join([*parts, *on_top, "</svg>"]) + "\n"


def _columns(task: AbstractTask, words: Callable[[Node], str]) -> list[list[Node]]:
    columns = [[Node(0, task.automaton.start, ())]]
    for i in range(task.n_ctx):
        found: dict[int, Node] = {}
        for node in columns[-1]:
            for token, following in enumerate(task.automaton.transitions[node.state].tolist()):
                found.setdefault(following, Node(i + 1, following, (*node.path, token)))
        columns.append(sorted(found.values(), key=lambda node: [int(n) for n in re.findall(r"-?\d+", words(node))]))
    return columns


def _moves(task: AbstractTask, state: int) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for token, following in enumerate(task.automaton.transitions[state].tolist()):
        found.setdefault(following, []).append(token)
    return found


def _read(n: int) -> str:
    return "start" if n == 0 else f"{n} token{'s' if n > 1 else ''}"


def _edge(source: tuple[float, float], target: tuple[float, float], tokens: str) -> tuple[str, str]:
    """The arrow, and what is written on it, close to where it begins: there arrows of one state are apart."""
    (x, y), (X, Y) = source, target
    line = f'<path class="edge" d="M{x:g} {y:g}L{X:g} {Y:g}" marker-end="url(#a)"/>'
    at = 34 / math.hypot(X - x, Y - y)
    return line, f'<text class="small on" x="{x + at * (X - x):.1f}" y="{y + at * (Y - y):.1f}">{tokens}</text>'


def _half(text: str) -> float:
    """Half the width of a state with such a text in it."""
    return max(_RADIUS, 4.2 * len(text) + 6) if text else 7


def _drawn(place: tuple[float, float], text: str) -> str:
    x, y = place
    if not text:
        return f'<circle class="start" cx="{x:g}" cy="{y:g}" r="7"/>'
    half = _half(text)
    box = f'<rect class="node" x="{x - half:g}" y="{y - _RADIUS:g}" width="{2 * half:g}" height="{2 * _RADIUS}" rx="{_RADIUS}"/>'
    return f'{box}<text x="{x:g}" y="{y:g}">{html.escape(text)}</text>'


def _output(place: tuple[float, float], x: float, label: int) -> str:
    y, none = place[1], label == NO_LABEL
    box = f'<rect class="{"none" if none else "out"}" x="{x - 22:g}" y="{y - 13:g}" width="44" height="26" rx="4"/>'
    return f'{box}<text x="{x:g}" y="{y:g}">{"none" if none else label}</text>'


def tiny(described: Described) -> AbstractTask:
    """Small enough to be drawn."""
    smaller = re.sub(r"\d+", lambda n: str(min(int(n[0]), 2)), described.example)
    return task_of_size(TINY.get(described.name, smaller), 3, 3)


def in_words(task: AbstractTask) -> Callable[[Node], str]:
    """What a state stands for: what the rule remembers there."""
    if isinstance(task, NamedTask | RuleTask):
        return lambda node: _memory(task.rule, node.path)
    if task.spec == "sign-of-sum":
        return lambda node: f"{sum(2 * t - (task.d_vocab - 1) for t in node.path) / 2:g}"
    return lambda node: f"{node.state}"


def _memory(rule: Rule, path: tuple[int, ...]) -> str:
    memory = rule.start
    for token in path:
        memory = rule.step(memory, token)
    return ", ".join(map(str, memory)) if isinstance(memory, tuple) else str(int(memory))


# --- pages ---


def page(described: Described, measured: list[dict]) -> str:
    """Of one task."""
    name, example = described.name, described.example
    sixteen, drawn = task_of_size(example, 4, 16), tiny(described)
    own = [r for r in measured if r["task"] == example]
    lines = [
        f"# `{described.usage}`",
        "",
        f"**The right output**: {described.title}.",
        "",
        described.definition,
        "",
        "## Examples",
        "",
        f"`--task {_quoted(example)}`, four tokens below 16:",
        "",
        *_examples(sixteen),
        "",
        "## The automaton",
        "",
        f"What is remembered: {described.remembers[0].lower()}{described.remembers[1:]}",
        "",
        *_states(example),
        "",
        *_picture(drawn, name),
        "",
        "## Certified",
        "",
        *(_certified(own) if own else ["No model of this task was measured."]),
        "",
        "```console",
        f"compactproofs train --task {_quoted(example)} --n-ctx 4 --d-vocab 16{_sampling(own)} --steps 5000 --out models",
        "compactproofs prove models/*.safetensors --upper        # the file says what its task is",
        "```",
        "",
        "[All tasks](index.md) · [all results](../results/tasks.md) · [how tasks are named](../reference/tasks.md)",
    ]
    return _generated(lines)


def _generated(lines: list[str]) -> str:
    return "\n".join(["<!-- written by benchmarks/task_pages.py -->", "", *lines]) + "\n"


def _quoted(spec: str) -> str:
    return spec if re.fullmatch(r"[\w:,.-]+", spec) else f"'{spec}'"


def _sampling(measured: list[dict]) -> str:
    return " --sampling balanced" if any(r["sampling"] == "balanced" for r in measured) else ""


def _examples(task: AbstractTask) -> list[str]:
    found = task.automaton.label(list(SEQUENCES)).tolist()
    cells = [f"| {', '.join(map(str, x))} | {'none' if label == NO_LABEL else label} |" for x, label in zip(SEQUENCES, found, strict=True)]
    return ["| sequence | right output |", "|---|---|", *cells]


def _states(spec: str) -> list[str]:
    return ["| K | tokens | states |", "|---|---|---|", *(f"| {k} | {v} | {n_states(spec, k, v)} |" for k, v in SIZES)]


def n_states(spec: str, n_ctx: int, d_vocab: int) -> str:
    """Written out, or that there are too many."""
    try:
        return f"{task_of_size(spec, n_ctx, d_vocab).automaton.n_states:,}"
    except TaskError:
        return "refused"


def _picture(task: AbstractTask, name: str) -> list[str]:
    what = f"How the automaton of {task.spec} reads three tokens below 3: a column of states after each token, and the right output"
    below = (
        "A column for each number of tokens read, with what is remembered; the tokens are on the arrows, the right output is in the boxes."
    )
    return [f"![{what}]({name}.svg)", "", f"`{task.spec}` of three tokens below 3. {below}"]


def _certified(measured: list[dict]) -> list[str]:
    said = "One head, attention only, seed 0. Both bounds are proofs about all sequences; the last column is what the checker said of the certificate."
    if any(r["sampling"] == "balanced" for r in measured):
        said += " One label is rare, so every second sequence to train on had a label that was drawn first."
    lines = ["| K | tokens | constant answer | accuracy | certified interval | width | certificate |", "|---|---|---|---|---|---|---|"]
    for r in sorted(measured, key=lambda r: (r["n_ctx"], r["d_vocab"])):
        accuracy = f"{'' if r['exact'] else '≈ '}{r['accuracy']:.6f}"
        lines.append(f"| {r['n_ctx']} | {r['d_vocab']} | {r['constant']:.4f} | {accuracy} | {_interval(r)} | {_width(r)} | {_verdict(r)} |")
    return [said, "", *lines]


def own_page() -> str:
    """On tasks of one's own."""
    task = RuleTask("mine:second_token", OWN, 4, 16)
    lines = [
        "# `module:name`: a task of your own",
        "",
        "**The right output**: what your rule says. A rule is three things: what is remembered before the first token, how a token changes it,",
        "and which output it stands for. With a file `mine.py`,",
        "",
        "``` {.python .notest}",
        "from compactproofs.tasks import Rule",
        "",
        "second_token = Rule(start=(), step=lambda seen, t: (*seen, t)[:2], label=lambda seen: seen[1])",
        "```",
        "",
        "`--task mine:second_token` is a task. The label -1 (`cp.tasks.NO_LABEL`) means that a sequence is outside the question.",
        "",
        "## Examples",
        "",
        *_examples(task),
        "",
        "## The automaton",
        "",
        "All that can be remembered is walked through, so a memory has to be hashable and there must not be too many: two million moves (states",
        "times tokens), or the task is refused. The rule above has one state for nothing, one for each token and one for each pair:",
        f"{task.automaton.n_states} for 16 tokens.",
        "",
        *_picture(RuleTask("mine:second_token", OWN, 3, 3), "own"),
        "",
        "## Train and prove",
        "",
        "```console",
        "compactproofs train --task mine:second_token --n-ctx 4 --d-vocab 16 --out models",
        "compactproofs prove models/*.safetensors --task mine:second_token --upper",
        "```",
        "",
        "Importing a module runs it, so `prove` is told the name again: a file's word is not enough. A certificate has the automaton in it, and who",
        "checks it needs no module. [A task for the library](../how-to/add-a-task.md) is one function in one file.",
        "",
        "[All tasks](index.md) · [how tasks are named](../reference/tasks.md)",
    ]
    return _generated(lines)


def index(measured: list[dict]) -> str:
    """The list of all tasks."""
    known = {(r["task"], r["n_ctx"], r["d_vocab"]): r for r in measured}
    lines = [
        "# Every task, one page each",
        "",
        "Each page defines the task, draws its automaton, and says what was certified about a model trained for it. `compactproofs tasks` prints the",
        "list. The last columns are certified accuracies over all sequences, a fraction where both bounds are the same; what was trained, and how,",
        "is with [the results](../results/tasks.md).",
        "",
        f"| task | the right output | states, K={SIZES[0][0]}, {SIZES[0][1]} tokens | "
        + " | ".join(f"K={k}, {v} tokens" for k, v in SIZES)
        + " |",
        "|---|---|---|" + "---|" * len(SIZES),
    ]
    for each in DESCRIBED:
        found = [known.get((each.example, k, v)) for k, v in SIZES]
        cells = [n_states(each.example, *SIZES[0]), *("" if r is None else _interval(r) for r in found)]
        lines.append(f"| [`{each.usage}`]({each.name}.md) | {each.title} | {' | '.join(cells)} |")
    lines.append(f"| [`module:name`](own.md) | what your own rule says | | {' | '.join('' for _ in SIZES)} |")
    lines += [
        "",
        "Where a name has a parameter, the figures are of "
        + ", ".join(_code(each.example) for each in DESCRIBED if ":" in each.example)
        + ".",
        "An empty cell was not measured.",
        "",
        _target(measured),
    ]
    return _generated(lines)


def _target(measured: list[dict]) -> str:
    """What the figures come to."""
    good = [r for r in measured if r["accuracy"] > 0.99]
    narrow = [r for r in good if width(r) <= 1e-3]
    said = [f"Of the {len(good)} models with an accuracy above 0.99, {len(narrow)} have an interval of at most 0.001."]
    said += [f"Wider: {', '.join(map(_which, each))}." for each in [[r for r in good if width(r) > 1e-3]] if each]
    said += [
        f"Training did not get to 0.99 with {', '.join(map(_which, each))}." for each in [[r for r in measured if r not in good]] if each
    ]
    short = [r for r in measured if r["n_ctx"] <= 4]
    exact = [r for r in short if width(r) == 0]
    return " ".join([*said, f"Of the {len(short)} models of four tokens, {len(exact)} have equal bounds, the count of brute force."])


def _which(row: dict) -> str:
    return f"{_code(row['task'])} (K={row['n_ctx']}, {row['d_vocab']} tokens)"


def everything() -> dict[Path, str]:
    """What is to be written where, from the root of the repository."""
    measured, found = rows(), {}
    for each in DESCRIBED:
        drawn = tiny(each)
        found[PAGES / f"{each.name}.md"] = page(each, measured)
        found[PAGES / f"{each.name}.svg"] = figure(drawn, in_words(drawn))
    own = RuleTask("mine:second_token", OWN, 3, 3)
    found |= {PAGES / "own.md": own_page(), PAGES / "own.svg": figure(own, in_words(own)), PAGES / "index.md": index(measured)}
    results, nav = Path("docs/results/tasks.md"), Path("mkdocs.yml")
    found[results] = _between((ROOT / results).read_text(encoding="utf-8"), BEGIN, END, table(measured))
    names = [("All of them", "index"), *((each.name, each.name) for each in DESCRIBED), ("Your own", "own")]
    pages = "\n".join(f"      - {title}: tasks/{file}.md" for title, file in names)
    found[nav] = _between((ROOT / nav).read_text(encoding="utf-8"), NAV_BEGIN, NAV_END, pages)
    return found


def _between(whole: str, begin: str, end: str, text: str) -> str:
    assert whole.count(begin) == 1, f"no mark {begin}"
    return re.sub(f"{re.escape(begin)}\n.*?{re.escape(end)}", lambda _: f"{begin}\n{text}\n{end}", whole, flags=re.DOTALL)


def main() -> None:
    """Write it all."""
    for path, text in everything().items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(ROOT / path, text.encode())


if __name__ == "__main__":
    main()
