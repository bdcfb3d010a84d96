"""The figures of docs/explanation/how-proofs-work.md: the bundled max-of-4 model, its tables, and one proof of it, step by step.

Everything is computed here in float64 by going through all sequences of one label and query: these are pictures of proofs, not proofs.
`picture_pages.py` writes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from drawing import AMOUNTS, SIGNS, Box, bar, heat, line, rotated, scale, svg, text, ticks

import compactproofs as cp
from compactproofs.form.tables import Circuits, float_circuits

MODEL = "max-of-4"
SHOWN = [0, 16, 32, 48, 63]
"""Tokens that are named beside a table."""
LABEL, QUERY = 45, 44
"""Of the sequences that are counted; the only output that can win is the query's token."""
RIGHT, WRONG = (7, 45, 23, 44), (44, 45, 44, 44)
STEPS = 8
"""Of the grid that is drawn, to what one copy of the label takes off"""
SPLIT = (18, 16, 16, 2)
"""A label and a query where several outputs win, and a split: by a token, and how often it occurs at least."""


@dataclass(frozen=True)
class Square:
    """All sequences of one label that end in one query, and what each position does to each output."""

    tables: Circuits[np.ndarray]
    n_ctx: int
    label: int
    query: int

    @cached_property
    def sequences(self) -> np.ndarray:
        """(sequence, position)"""
        tokens = range(self.label + 1)
        every = (x for x in product(tokens, repeat=self.n_ctx - 1) if self.label in x or self.label == self.query)
        return np.array([(*x, self.query) for x in every])

    @cached_property
    def attention(self) -> np.ndarray:
        """(position, token): not normalised; one copy of the label at the first position has 1"""
        scores = self.tables.EQKE[self.query][None, :] + self.tables.EQKP[self.query][:, None]
        return np.exp(scores - scores[0, self.label])

    def brackets(self, output: int) -> np.ndarray:
        """(position, token): by how much the output would beat the label if all attention were there."""
        values = self.tables.EVOU[None] + self.tables.PVOU[:, None] + self.tables.EU[self.query]
        return values[..., output] - values[..., self.label]

    def harms(self, output: int) -> np.ndarray:
        """(position, token): attention times bracket, as parts of what a copy of the label takes off."""
        own = self.attention * self.brackets(output)
        return own / abs(own[0, self.label])

    def sums(self, harms: np.ndarray, sequences: np.ndarray | None = None) -> np.ndarray:
        """Of all sequences, or of these."""
        x = self.sequences if sequences is None else sequences
        return sum(harms[i, x[:, i]] for i in range(self.n_ctx))

    def rivals(self, sequences: np.ndarray) -> list[int]:
        """Outputs that reach the label on one of the sequences, or more."""
        others = (o for o in range(self.tables.EU.shape[1]) if o != self.label)
        return [o for o in others if (self.sums(self.harms(o), sequences) >= 0).any()]

    def counted(self, sequences: np.ndarray) -> int:
        """By one sum that covers all rivals: the largest of their harms at each position and token."""
        rivals = self.rivals(sequences)
        if not rivals:
            return 0
        return int((self.sums(np.max([self.harms(o) for o in rivals], axis=0), sequences) >= 0).sum())

    def failing(self, sequences: np.ndarray) -> int:
        """Sequences on which some output reaches the label."""
        spoiled = [self.sums(self.harms(o), sequences) >= 0 for o in self.rivals(sequences)]
        return int(np.any(spoiled, axis=0).sum()) if spoiled else 0


def square(label: int, query: int) -> Square:
    """Of the bundled model."""
    weights = cp.zoo(MODEL)
    return Square(float_circuits(weights), weights.n_ctx, label, query)


def attention_table(tables: Circuits[np.ndarray]) -> str:
    """Scores of tokens for every query, each row less its largest."""
    scores = tables.EQKE - tables.EQKE.max(axis=1, keepdims=True)
    said = "64 by 64 table, queries downwards and key tokens across. Every row is dark at the left and grows bright to the right: larger tokens are attended to more, whatever the query."
    return _table(
        scores, (-60.0, 0.0), AMOUNTS, ("Attention: EQKE", said, "key token", "query token", ["-60", "-40", "-20", "0, the most"])
    )


def value_table(tables: Circuits[np.ndarray]) -> str:
    """What tokens add to logits, each row less its mean."""
    values = tables.EVOU - tables.EVOU.mean(axis=1, keepdims=True)
    said = "64 by 64 table, tokens that are attended to downwards and outputs across. The diagonal is strongly positive, the rest is pale: a token raises its own logit."
    return _table(values, (-40.0, 40.0), SIGNS, ("Values: EVOU", said, "output", "token attended to", ["-40", "-20", "0", "20", "+40"]))


def _table(values: np.ndarray, limits: tuple[float, float], colours: tuple[str, ...], words: tuple[str, str, str, str, list[str]]) -> str:
    title, said, across, down, meaning = words
    box = Box(58, 34, 272, 272)
    parts = [
        text(box.x + box.width / 2, 16, title, "strong"),
        heat(values, limits, colours, box),
        *ticks(box, SHOWN, len(values)),
        text(box.x + box.width / 2, box.y + box.height + 30, across, "small"),
        rotated(16, box.y + box.height / 2, down),
        *scale(colours, meaning, Box(box.x, box.y + box.height + 46, box.width, 10)),
    ]
    return svg((350, 384), title, said, parts)


def one_sequence(of: Square, sequence: tuple[int, ...]) -> str:
    """Position by position: the share of attention, by how much the rival would win there, the product; and the sum."""
    attention = np.array([of.attention[i, t] for i, t in enumerate(sequence)])
    shares = attention / attention.sum()
    brackets = np.array([of.brackets(of.query)[i, t] for i, t in enumerate(sequence)])
    parts_of_sum = shares * brackets
    total = float(parts_of_sum.sum())
    wins = total < 0
    title = f"{', '.join(map(str, sequence))}: the sum is {total:+.2f}, so {of.label if wins else of.query} wins"
    parts = [
        text(240, 16, title, "strong"),
        text(40, 44, "token", "small"),
        text(120, 44, "attention", "small"),
        text(250, 44, f"logit of {of.query} less {of.label}", "small"),
        text(400, 44, "product", "small"),
    ]
    greatest, largest = float(np.abs(brackets).max()), float(np.abs(parts_of_sum).max())
    for row, token in enumerate(sequence):
        y = 72 + 34 * row
        parts += [
            text(40, y, str(token), "strong"),
            bar(Box(84, y - 9, 60 * shares[row], 18), "faint"),
            text(88 + 60 * shares[row], y, f"{100 * shares[row]:.0f} %", "small left"),
            *_signed((250, y), brackets[row], 42 / greatest, f"{brackets[row]:+.0f}".replace("+0", "0")),
            *_signed((400, y), parts_of_sum[row], 38 / largest, f"{parts_of_sum[row]:+.2f}".replace("-0.00", "0").replace("+0.00", "0")),
        ]
    y = 72 + 34 * len(sequence)
    parts += [
        line([(20, y - 18), (465, y - 18)]),
        text(180, y + 4, f"sum: {'negative, the label wins' if wins else 'not negative, the label does not win'}", "strong"),
        text(400, y + 4, f"{total:+.2f}", "strong"),
    ]
    said = "; ".join(
        f"token {t}: {100 * s:.0f} % of attention times {b:+.1f} is {p:+.2f}"
        for t, s, b, p in zip(sequence, shares, brackets, parts_of_sum, strict=True)
    )
    return svg((480, y + 24), title, f"{said}. Sum {total:+.2f}.", parts)


def _signed(at: tuple[float, float], value: float, unit: float, words: str) -> list[str]:
    """A bar to the left of a line if negative, to the right if positive."""
    x, y = at
    length = max(abs(value) * unit, 0.5)
    box = Box(x - length if value < 0 else x, y - 9, length, 18)
    beside = text(x - length - 4, y, words, "small right") if value < 0 else text(x + length + 4, y, words, "small left")
    return [bar(box, "good" if value < 0 else "bad"), line([(x, y - 13), (x, y + 13)]), beside]


def on_grid(harms: np.ndarray, steps: int) -> np.ndarray:
    """Rounded up, in steps, less a quarter of a step; sums begin with 1 for the four quarters (Lemma G, offsets of 64)."""
    return np.ceil(harms * steps - 0.25).astype(int)


def sums_on_grid(of: Square, steps: int) -> np.ndarray:
    """Of all sequences."""
    return of.sums(on_grid(of.harms(of.query), steps)) + 1


def grid_picture(of: Square) -> str:
    """The harms of the tokens just below the label, and what they become on the grid."""
    tokens = list(range(of.label - 9, of.label + 1))
    harms = of.harms(of.query)[0]
    rounded = on_grid(harms, STEPS)
    left, top, step, unit = 62, 46, 40, 18
    zero = top + unit * (max(rounded[t] for t in tokens) + 1)
    bottom = zero + unit * (STEPS + 1)
    parts = [text(270, 16, f"Harms at the first position: {of.query} against {of.label}", "strong")]
    for n in range(-STEPS, int(max(rounded[t] for t in tokens)) + 1):
        y = zero - unit * n
        parts += [line([(left, y), (left + step * len(tokens), y)]), text(left - 8, y, f"{n}", "small right")]
    for column, token in enumerate(tokens):
        x, exact, above = left + step * (column + 0.5), harms[token] * STEPS, int(rounded[token])
        height = abs(exact) * unit
        parts += [
            bar(Box(x - 9, zero - max(exact, 0) * unit, 18, max(height, 1.5)), "good" if exact < 0 else "bad"),
            line([(x - 15, zero - unit * above), (x + 15, zero - unit * above)], "badline" if above > 0 else "goodline"),
            text(x, bottom + 4, str(token), "small"),
        ]
    parts += [
        text(left + step * len(tokens) / 2, bottom + 24, "token at the first position", "small"),
        rotated(18, (top + bottom) / 2, f"steps; a {of.label} takes off {STEPS}"),
    ]
    said = f"Tokens up to {of.label - 2} do nothing worth a step and are rounded up to 0 or 1. {of.query} harms: {rounded[of.query]} steps. {of.label} takes off {-rounded[of.label]}."
    return svg((left + step * len(tokens) + 20, bottom + 42), "Harms on a grid", said, parts)


def counts(of: Square) -> list[tuple[int, int]]:
    """For some grids, how many sequences have integers that add up to zero or more."""
    return [(steps, int((sums_on_grid(of, steps) >= 0).sum())) for steps in (2, 4, 8, 16, 64, 256)]


def counting_picture(of: Square) -> str:
    """How many sequences have which sum of integers."""
    sums = sums_on_grid(of, STEPS)
    low, high = int(sums.min()), int(sums.max())
    left, top, height, step = 66, 52, 170, 440 / (high - low + 1)
    most = math.ceil(math.log10(max(np.bincount(sums - low))))
    failing = int((sums >= 0).sum())
    title = f"{len(sums):,} sequences by their sum: {failing} are at zero or above"
    parts = [text(280, 16, title, "strong")]
    for power in range(most + 1):
        y = top + height - height * (power + 0.3) / (most + 0.3)
        parts += [line([(left, y), (left + 440, y)]), text(left - 6, y, f"{10**power:,}", "small right")]
    for z in range(low, high + 1):
        n = int((sums == z).sum())
        if n:
            tall = height * (math.log10(n) + 0.3) / (most + 0.3)
            parts.append(bar(Box(left + step * (z - low) + 1, top + height - tall, step - 2, tall), "bad" if z >= 0 else "good"))
        if z % 4 == 0:
            parts.append(text(left + step * (z - low + 0.5), top + height + 12, str(z), "small"))
    x = left + step * -low
    parts += [
        line([(x, top - 14), (x, top + height)], "greyline"),
        text(x - 6, top - 10, "the label wins", "small right"),
        text(x + 6, top - 10, "counted as failing", "small left"),
        text(left + 220, top + height + 32, "sum of integers", "small"),
        rotated(16, top + height / 2, "sequences"),
    ]
    said = f"Histogram on a logarithmic axis of all {len(sums)} sequences with label {of.label} and query {of.query}. {failing} have a sum of at least zero; {of.failing(of.sequences)} do fail."
    return svg((left + 440 + 14, top + height + 46), title, said, parts)


def split_figures() -> tuple[int, list[tuple[str, int, list[int], int, int]]]:
    """How many sequences fail, and for all of them and both halves: which, how many, which outputs can win, what one sum counts, what fails."""
    label, query, token, least = SPLIT
    of = square(label, query)
    copies = (of.sequences == token).sum(axis=1)
    kinds = [
        (f"label {label}, query {query}", copies >= 0),
        (f"{token} occurs less than {_times(least)}", copies < least),
        (f"{token} occurs {_times(least)} or more", copies >= least),
    ]
    rows = []
    for name, chosen in kinds:
        x = of.sequences[chosen]
        rows.append((name, len(x), of.rivals(x), of.counted(x), of.failing(x)))
    return rows[0][4], rows


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n} times")


def split_picture() -> str:
    """A tree with two leaves."""
    _, rows = split_figures()
    places = [(155, 40), (5, 160), (305, 160)]
    parts = [line([(250, 108), (130, 160)], "link"), line([(310, 108), (430, 160)], "link")]
    for (name, size, rivals, counted, _), (x, y) in zip(rows, places, strict=True):
        parts += [
            bar(Box(x, y, 250, 68), "box"),
            text(x + 125, y + 14, name, "strong"),
            text(x + 125, y + 34, f"{size:,} sequences, {len(rivals)} outputs can win", "small"),
            text(x + 125, y + 53, f"one sum counts {counted:,}"),
        ]
    halves = sum(row[3] for row in rows[1:])
    title = f"A split: {rows[0][3]} may fail, then {halves}; in truth {rows[0][4]} do"
    said = "; ".join(
        f"{name}: {size} sequences, {len(rivals)} outputs can win, counted {counted}, failing {failing}"
        for name, size, rivals, counted, failing in rows
    )
    return svg((560, 240), title, said + ".", [text(280, 16, title, "strong"), *parts])


KINDS = (
    (0.0, "no output can win: a walk shows it", "#cfe0f7"),
    (1e-9, "fewer than 1 in 20 fail", "#3f6fd1"),
    (0.05, "1 in 20 and more fail", "#f0a63c"),
    (0.5, "half and more fail", "#7f3b08"),
)
"""Squares by the part of their sequences that fails, from so much on"""


def left_picture(left: dict) -> str:
    """Of every label and query, how much the proof leaves; for max-of-4 that is what does fail."""
    many, cell = left["d_vocab"], 5
    values = np.array([[np.nan if query > label else 0.0 for query in range(many)] for label in reversed(range(many))])
    for label, query, failing, mass in left["failing"]:
        values[many - 1 - label, query] = max(level for level, (least, _, _) in enumerate(KINDS) if failing / mass >= least)
    box = Box(58, 34, many * cell, many * cell)
    names = [f"{words} ({int((values == level).sum()):,})" for level, (_, words, _) in enumerate(KINDS)]
    parts = [
        text(box.x + box.width / 2, 16, "Every label and query of max-of-4", "strong"),
        heat(values, (0.0, len(KINDS) - 1.0), tuple(colour for _, _, colour in KINDS), box),
        *(text(box.x + (n + 0.5) * cell, box.y + box.height + 11, str(n), "small") for n in SHOWN),
        *(text(box.x - 5, box.y + (many - n - 0.5) * cell, str(n), "small right") for n in SHOWN),
        text(box.x + box.width / 2, box.y + box.height + 30, "query, the last token", "small"),
        rotated(16, box.y + box.height / 2, "label, the largest token"),
    ]
    for row, (name, (_, _, colour)) in enumerate(zip(names, KINDS, strict=True)):
        y = box.y + box.height + 54 + 20 * row
        parts += [
            f'<rect class="frame" style="fill:{colour}" x="60" y="{y - 7:g}" width="14" height="14"/>',
            text(82, y, name, "small left"),
        ]
    size = (400, box.y + box.height + 54 + 20 * len(names))
    return svg(size, "What is left", ". ".join(names) + ". Failures are at small labels and along the diagonal.", parts)
