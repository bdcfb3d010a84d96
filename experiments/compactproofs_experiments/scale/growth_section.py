"""The part of the page about growth: exponents, their misfits, and words that follow them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from compactproofs_experiments.scale.fits import Fit
from compactproofs_experiments.scale.groups import COSTS, Group, groups, ranges
from compactproofs_experiments.scale.records import AXES, BRUTE_FORCE_AXIS, PORTFOLIO, Measurement
from compactproofs_experiments.scale.words import formula, listed, span, table

FAR = 0.5
"""Exponents that differ by so much are talked about."""

_NAMES = {"v": "In the vocabulary", "k": "In the sequence length", "d": "In the width"}


def growth_section(rows: Sequence[Measurement], found: Sequence[Group]) -> str:
    """Tables and figures of exponents, one axis after the other, and what could not be measured."""
    sections = [_exponents(found, groups(rows, by_complexity=True)), _figures(), *(_axis(axis, found) for axis in AXES), _refused(rows)]
    return "\n\n".join(sections)


def _exponents(found: Sequence[Group], classes: Sequence[Group]) -> str:
    head = [*(f"{words} in ${axis}$" for words in ("time", "FLOPs") for axis in AXES)]
    lines = [[group.title, formula(group.stated) or "see below", *_cells(group)] for group in found]
    subcubic = []
    for group in classes:
        if "EQKE: " in group.stated:
            EQKE, EU = (group.stated.rstrip(")").split(f"{name}: ")[1].split(" + ")[0] for name in ("EQKE", "EU"))
            subcubic.append([group.kind.split(", ")[1], f"${EQKE}$", f"${EU}$", str(len(group.members)), *_cells(group)])
    return f"""## Exponents

Cost grows as size to this power. For a group, the range over the members that were measured at every size of the axis. "-" means fewer than three
sizes: refused, or (`{PORTFOLIO}`) stopped by the limit. "Stated" is what `compactproofs strategies` says about checking. Brute
force is exponential in $k$: the base says by what one more position multiplies the cost. Where a fitted exponent is below the stated one, terms of lower order, such as the tables, are still large at these sizes.

{table(["strategy", "stated", *head], lines)}

The subcubic strategies differ in how the direct path (EU) and attention (EQKE) are bounded. All are $O(v^2k+v^2d)$ and the two terms here:

{table(["subcubic", "EQKE", "EU", "members", *head], subcubic)}"""


def _cells(group: Group) -> list[str]:
    return [_slopes(group, axis, cost) for cost in COSTS for axis in AXES]


def _slopes(group: Group, axis: str, cost: str) -> str:
    fits = group.fits(axis, cost)
    if not fits:
        return "-"
    if fits[0].exponential:
        return f"base {fits[0].base:.1f}"
    return span(*ranges(fits, "slope"), "{:.1f}")


def _figures() -> str:
    return """![Processor seconds against v and k](scale-seconds.svg)

![FLOPs against v and k](scale-flops.svg)

Bands go from the cheapest to the dearest subcubic strategy."""


def _axis(axis: str, found: Sequence[Group]) -> str:
    lines = []
    for group in found:
        times, flops = (group.fits(axis, cost) for cost in COSTS)
        if not times:
            continue
        details = [
            span(*ranges(fits, name), form) for fits in (times, flops) for name, form in (("misfit", "{:.0%}"), ("last_slope", "{:.1f}"))
        ]
        if times[0].exponential:
            details[1::2] = [f"{math.exp(fits[0].last_slope):.1f} times" for fits in (times, flops)]
        sizes = f"{times[0].sizes[0]} to {times[0].sizes[-1]} ({len(times[0].sizes)})"
        seconds = [span(*ranges(times, name), "{:.3g}") for name in ("first_cost", "last_cost")]
        lines.append([group.title, sizes, *seconds, *details])
    head = ["strategy", f"${axis}$ (sizes)", "s, smallest", "s, largest"]
    head += [f"{cost}: {what}" for cost in ("time", "FLOPs") for what in ("misfit", "largest two")]
    return "\n\n".join(
        [f"### {_NAMES[axis]}", table(head, lines), '"Largest two" is the exponent between the two largest sizes.', *_compared(axis, found)]
    )


def _compared(axis: str, found: Sequence[Group]) -> list[str]:
    """Where time and FLOPs grow differently, or not as a power, in words."""
    rising, slower, faster, no_power, text = [], [], [], [], []
    for group in found:
        times, flops = (group.fits(axis, cost) for cost in COSTS)
        if not times:
            continue
        if times[0].exponential:
            text.append(_brute_force(times[0]))
            continue
        slope, last, charged = (
            median(fit.slope for fit in times),
            median(fit.last_slope for fit in times),
            median(fit.slope for fit in flops),
        )
        if median(fit.misfit for fit in flops) > 1:
            no_power.append(group.title)
        elif group.exponential and abs(slope) < 0.1 < charged:
            text.append(
                "Brute force is charged a forward pass for every sequence, as in the paper, but works on tables that are made once."
            )
        elif last > slope + FAR:
            rising.append(f"{group.title} ({slope:.1f}, {last:.1f})")
        elif slope < charged - FAR:
            slower.append(f"{group.title} ({slope:.1f}, {charged:.1f})")
        elif slope > charged + FAR:
            faster.append(f"{group.title} ({slope:.1f}, {charged:.1f})")
    if rising:
        text.append(
            f"Between the largest two sizes time grows faster than the fit says, by {FAR} or more in the exponent, for {listed(rising)}: in brackets the "
            f"fit and the largest two. The usual reason is time at the small sizes that does not depend on ${axis}$ (calls of array operations, preparing "
            "tables). The fit is then too low to extrapolate from."
        )
    if slower:
        text.append(
            f"Time grows more slowly than FLOPs, by {FAR} or more, for {listed(slower)}: in brackets time and FLOPs. The steps whose FLOPs grow fastest take "
            "little of the time at these sizes."
        )
    if faster:
        text.append(
            f"Time grows faster than FLOPs, by {FAR} or more, for {listed(faster)}: in brackets time and FLOPs. The time has the search for hints in it, "
            "and work that FLOPs do not charge, such as indexing and sorting."
        )
    if no_power:
        text.append(
            f"FLOPs are not a power of ${axis}$ for {listed(no_power)}: the misfit is above 100 %. They are mostly counting, which depends on the weights "
            "of the one model at each size, and on how finely a proof counts. Do not extrapolate these."
        )
    return text


def _brute_force(times: Fit) -> str:
    steps = times.sizes[-1] - times.sizes[0]
    overhead = times.first_cost > 2 * times.last_cost * math.exp(-times.last_slope * steps)
    return (
        f"Brute force takes {math.exp(times.last_slope):.1f} times as long for one more position between the two largest sizes (there are $v={BRUTE_FORCE_AXIS[0].v}$ "
        f"times as many sequences, and each is longer)"
        + (f"; the fit says {times.base:.1f} because the shortest sequences take only the time that every call takes." if overhead else ".")
    )


def _refused(rows: Sequence[Measurement]) -> str:
    lines = [[f"`{row.label}`", str(row.size), row.reason.split(". ")[0]] for row in rows if row.status == "infeasible"]
    lines += [
        [f"`{row.label}`", str(row.size), "took all the time it was allowed"]
        for row in rows
        if row.status != "infeasible" and not row.complete
    ]
    done = {(row.label, row.size) for row in rows}
    named = dict.fromkeys(row.label for row in rows if row.label == row.strategy)
    sizes = dict.fromkeys(size for axis in AXES.values() for size in axis)
    lines += [[f"`{name}`", str(size), "not measured"] for name in named for size in sizes if (name, size) not in done]
    return "### What was not carried out\n\n" + (table(["strategy", "size", "why"], lines) if lines else "Nothing: every proof was.")
