"""Marabou beside us, on the bundled max-of-4: can any output reach the label, for a label at the first position, a query, other tokens anything?

    python benchmarks/compare_marabou.py [--squares 10] [--seconds 5] [--json docs/explanation/marabou.json]

Marabou answers questions about continuous inputs. A token is therefore a point of a simplex, with the tokens as corners: its score and its
values are averages of those of the tokens. "unsat" says that no point, so no token, lets the output reach the label. "sat" names a point that
need not be a token, so it decides nothing; neither does a time-out. Softmax and products are constraints that Marabou has; everything before
the softmax is evaluated before. A square (label, query) is decided if every output is "unsat". Marabou computes in float64 with tolerances.

Marabou is not needed by anything else: `pip install --no-deps maraboupy` (2.0.0, Python up to 3.11). Each question is asked in a process of its own,
because some end it: with the tightening by default, and then with another.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from compare_blocks import processor_seconds
from mechanism_pictures import square

import compactproofs as cp

MODEL = "max-of-4"
_ROOM = 1e-9
GAPS = (0, 5)
"""Tokens between the first and the last are at most the label less so much"""


def question(asking: tuple[int, int, int, int], tightening: str, seconds: int, into: Any) -> None:
    """Ask Marabou whether the output can reach the label; put the answer into a queue."""
    from maraboupy import MarabouCore

    label, query, output, gap = asking
    of, asked, numbers = square(label, query), MarabouCore.InputQuery(), 0
    attention, brackets, k = of.attention, of.brackets(output), of.n_ctx
    sets = [[label], *[list(range(max(label - gap, 0) + 1))] * (k - 2), [query]]

    def variable(low: float, high: float) -> int:
        nonlocal numbers
        numbers += 1
        asked.setNumberOfVariables(numbers)
        asked.setLowerBound(numbers - 1, low)
        asked.setUpperBound(numbers - 1, high)
        return numbers - 1

    def equal(terms: list[tuple[float, int]], value: float) -> None:
        equation = MarabouCore.Equation()
        for factor, number in terms:
            equation.addAddend(float(factor), number)
        equation.setScalar(value)
        asked.addEquation(equation)

    scores, values, inputs = [], [], 0
    for i, tokens in enumerate(sets):
        corner = [variable(0.0, 1.0) for _ in tokens]
        for number in corner:
            asked.markInputVariable(number, inputs)
            inputs += 1
        equal([(1.0, number) for number in corner], 1.0)
        for table, known in ((np.log(attention[i, tokens]), scores), (brackets[i, tokens], values)):
            known.append(variable(float(table.min()) - _ROOM, float(table.max()) + _ROOM))
            equal([*zip(table, corner, strict=True), (-1.0, known[-1])], 0.0)
    shares = [variable(0.0, 1.0) for _ in sets]
    MarabouCore.addSoftmaxConstraint(asked, scores, shares)
    products, most = [], float(np.abs(brackets).max())
    for share, value in zip(shares, values, strict=True):
        products.append(variable(-most, most))
        MarabouCore.addBilinearConstraint(asked, share, value, products[-1])
    difference = variable(0.0, most)  # at least 0: the output reaches the label
    equal([*((1.0, p) for p in products), (-1.0, difference)], 0.0)
    asked.markOutputVariable(difference, 0)
    options = MarabouCore.Options()
    options._verbosity, options._timeoutInSeconds, options._tighteningStrategy = 0, seconds, tightening
    into.put(MarabouCore.solve(asked, options, "")[0])


def answer(asking: tuple[int, int, int, int], seconds: int) -> str:
    """What Marabou says: `unsat`, `sat`, `UNKNOWN`, `TIMEOUT`, or how its process ended. What crashes is asked again with simpler bounds."""
    context = multiprocessing.get_context("fork")
    for tightening in ("deeppoly", "sbt"):
        into = context.Queue()
        process = context.Process(target=question, args=(asking, tightening, seconds, into))
        process.start()
        process.join(seconds + 20)
        if process.is_alive():
            process.kill()
            process.join()
            return "did not end"
        if process.exitcode == 0:
            return into.get(timeout=5)
    return "crashed"


def main() -> None:
    """Ask about squares drawn at random."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--squares", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=5, help="for each question")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    v, draw = cp.zoo(MODEL).d_vocab, np.random.default_rng(0)
    chosen = []
    while len(chosen) < options.squares:
        label, query = map(int, draw.integers(0, v, 2))
        if query <= label:
            chosen.append((label, query))
    began, rows = time.perf_counter(), []
    for gap in GAPS:
        answers, decided, safe = Counter(), 0, 0
        for label, query in chosen:
            of = square(label, query)
            said = [answer((label, query, output, gap), options.seconds) for output in range(v) if output != label]
            answers.update(said)
            decided += set(said) == {"unsat"}
            others = of.sequences[:, 1:-1]
            safe += not of.rivals(of.sequences[(of.sequences[:, 0] == label) & (others <= max(label - gap, 0)).all(axis=1)])
        rows.append({"gap": gap, "squares": len(chosen), "decided": decided, "safe": safe, "answers": dict(answers)})
        print(rows[-1], f"{processor_seconds():.0f} s", flush=True)
    result = {
        "limit": options.seconds,
        "seconds": round(processor_seconds(), 1),
        "wall": round(time.perf_counter() - began, 1),
        "rows": rows,
    }
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
