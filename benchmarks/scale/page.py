"""The page: tables, figures and what follows from them. Every number comes from the files of measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import compactproofs as cp
from compactproofs.counting.additive import count_exponent
from compactproofs.reports.explorer import LARGEST_VOCABULARY
from scale.figures import save_figure
from scale.fits import Fit
from scale.groups import COSTS, Group, groups, ranges
from scale.models import random_weights
from scale.records import AXES, BRUTE_FORCE_AXIS, PORTFOLIO, SECONDS, Measurement, Memory, SweepCost, beside, read
from scale.sweep_section import sweep_section, sweep_summary
from scale.words import clock, formula, listed, number, span, table

FAR = 0.5
"""Exponents that differ by so much are talked about."""

_SHOWN = ("brute-force", "cubic", "subcubic, repaired", "threshold-quadratic-pooled", "threshold-cubic-pooled", "threshold-quartic")
_NAMES = {"v": "In the vocabulary", "k": "In the sequence length", "d": "In the width"}

FARTHEST = 10_000
"""No extrapolation goes beyond this vocabulary."""


def write_page(page: Path, out: Path) -> None:
    """Write the page and its figures from the measurements in `out` and the files beside it."""
    rows = read(out, Measurement)
    found = groups(rows)
    page.parent.mkdir(parents=True, exist_ok=True)
    for cost in COSTS:
        save_figure(page.with_name(f"scale-{cost}.svg"), found, cost)
    memory, sweeps = read(beside(out, "memory"), Memory), read(beside(out, "sweep"), SweepCost)
    sections = [
        "# Scale: what proofs cost as models grow",
        _summary(found, memory, sweeps),
        _introduction(rows, out),
        _exponents(found, groups(rows, by_complexity=True)),
        _figures(),
        *(_axis(axis, found) for axis in AXES),
        _refused(rows),
        _memory(memory),
        sweep_section(sweeps),
        _limits(found, rows),
    ]
    page.write_text("\n\n".join(section.strip() for section in sections) + "\n")


def _summary(found: Sequence[Group], memory: Sequence[Memory], sweeps: Sequence[SweepCost]) -> str:
    """The answers first."""
    size = next(size for size in AXES["v"] if all(size in axis for axis in AXES.values()))
    shown = [group for group in found if group.kind in _SHOWN]
    times = {g.title: [row.seconds for each in g.members.values() for row in each if row.size == size and row.complete] for g in shown}
    last = {g.title: [fit for fit in g.fits("v", "seconds") if fit.sizes[-1] == AXES["v"][-1].v] for g in shown}
    first, second = (each.v for each in AXES["v"][-2:])
    lines = [
        f"At $v={size.v}$, $k={size.k}$, $d={size.d}$, one thread: "
        + ", ".join(f"{title} {span(min(seconds), max(seconds), '{:.2g}')} s" for title, seconds in times.items() if seconds)
        + ".",
        f"From $v={first}$ to $v={second}$ time grows with these exponents: "
        + ", ".join(f"{title} {span(*ranges(fits, 'last_slope'), '{:.1f}')}" for title, fits in last.items() if fits)
        + ". Below, overhead hides part of the growth.",
    ]
    if memory:
        peak = max(memory, key=lambda row: row.peak_bytes)
        lines.append(
            f"The most memory of a proof, among those measured: {peak.peak_bytes / 2**20:.0f} MiB (`{peak.strategy}`, $v={peak.v}$)."
        )
    return "\n".join(f"- {line}" for line in [*lines, *sweep_summary(sweeps)])


def _introduction(rows: Sequence[Measurement], out: Path) -> str:
    repeated = [row.seconds_most / row.seconds - 1 for row in rows if row.runs > 1 and row.seconds > 0.01]
    waited = median(row.wall_seconds / row.seconds for row in rows if row.seconds > 0.1)
    counts = {size: sum(row.size == size for row in rows) for axis in AXES.values() for size in axis}
    full = max(counts.values())
    fewer = listed([f"{count} at $v={size.v}$, $k={size.k}$" for size, count in counts.items() if count < full])
    which = (
        f"All {full} of them, repaired and published. At the largest sizes ({fewer}) there are fewer of the subcubic and the `threshold-cubic-pooled` "
        "variants, chosen so that every option of every class of complexity is there."
        if fewer
        else f"All {full} of them at every size, repaired and published."
    )
    busy = (
        f"The machine was busy with other work: wall time was {waited:.1f} times processor time in the median. "
        "Processor time leaves waiting out, but not what shared caches and memory cost."
        if waited > 1.1
        else "The machine did little else: wall time was about processor time."
    )
    total = sum(row.seconds * row.runs for row in rows) / 60
    return f"""## How it was measured

Written by `python benchmarks/measure_scale.py FOLDER --sweep-results RESULTS --page docs/results/scale.md`; the measurements are in {_files(out)}.

**Models.** One for each size, seed 0 of the [recipe](../explanation/training.md). $v$ is the vocabulary, $k$ the sequence length, $d=d_\\text{{model}}=d_\\text{{head}}$. One size varies at a time:

{_sizes(rows)}

**Strategies.** {which}

**Time** is processor time of one thread, for a proof on its own: the search for hints is in it, and nothing is shared with other proofs. Kernels were compiled before, on tiny models, and FLOPs were counted before. Quick proofs
were run three times and the least time counts; the slowest of the three took {median(repeated):.0%} more in the median, and {max(repeated):.0%} more at worst. {busy}
All runs together took {total:.0f} minutes. A proof may take {SECONDS:g} s; what would take longer is refused.

**FLOPs** are those of checking, [counted as in the paper](../strategies/costs.md), and counting of sequences where a proof counts. The search is not in them.

**Fits** are straight lines through logarithms by least squares. The misfit is the largest distance of a measurement from its line, as a fraction.
There is one model for each size, and counting depends on the weights: exponents of threshold proofs carry the difference between these models."""


def _files(out: Path) -> str:
    return listed([f"[{path.name}]({path.name})" for path in (out, beside(out, "memory"), beside(out, "sweep")) if path.exists()])


def _sizes(rows: Sequence[Measurement]) -> str:
    lines = [
        [f"${axis}$", ", ".join(str(getattr(size, axis)) for size in sizes), _others(axis), _accuracies(rows, axis)]
        for axis, sizes in AXES.items()
    ]
    lines.append(
        ["$k$, brute force", ", ".join(str(s.k) for s in BRUTE_FORCE_AXIS), f"$v={BRUTE_FORCE_AXIS[0].v}$, $d={BRUTE_FORCE_AXIS[0].d}$", ""]
    )
    return table(["axis", "sizes", "the others", "accuracy proven by `threshold-cubic-pooled`"], lines)


def _others(axis: str) -> str:
    size = AXES[axis][0]
    return ", ".join(f"${name}={getattr(size, name)}$" for name in AXES if name != axis)


def _accuracies(rows: Sequence[Measurement], axis: str) -> str:
    by_size = {row.size: row.lower for row in rows if row.label == "threshold-cubic-pooled"}
    return ", ".join(f"{by_size[size]:.3f}" if size in by_size else "-" for size in AXES[axis])


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


def _memory(rows: Sequence[Memory]) -> str:
    if not rows:
        return ""
    sizes = sorted({row.v for row in rows})
    peaks = {(row.strategy, row.v): row.peak_bytes / 2**20 for row in rows}
    names = list(dict.fromkeys(row.strategy for row in rows))
    lines = [[f"`{name}`", *(f"{peaks[name, v]:.0f}" if (name, v) in peaks else "-" for v in sizes)] for name in names]
    base = min(peaks.values())
    return f"""## Memory

Peak of a fresh process that loads a model with $k={rows[0].k}$, $d={rows[0].d}$ and proves once, in MiB. The interpreter, the libraries and the compiled kernels take
most of the {base:.0f} MiB at the smallest size.

{table(["strategy", *(f"$v={v}$" for v in sizes)], lines)}"""


def _limits(found: Sequence[Group], rows: Sequence[Measurement]) -> str:
    lines = []
    for group in found:
        fits = group.fits("v", "seconds")
        if not fits:
            continue
        cells = []
        for seconds in (SECONDS, 3600.0):
            for from_last in (False, True):
                sizes = [fit.size_at(seconds, from_last=from_last) for fit in fits]
                cells.append(_vocabulary(min(sizes), max(sizes)))
        lines.append([group.title, str(max(fits[0].sizes)), *cells])
    head = ["strategy", "largest $v$ measured"]
    head += [f"{time}, {way}" for time in (clock(SECONDS), clock(3600)) for way in ("fit", "largest two")]
    first = {v: next(k for k in range(1, 100) if count_exponent(k, v) > 0) for v in (64, 128, 256)}
    beyond = listed([f"$k={k}$ at $v={v}$" for v, k in first.items()])
    return f"""## Limits

**Time.** The vocabulary at which a proof ($k=4$, $d=32$, one thread) would take a minute and an hour. **These are extrapolations**, beyond the largest measured size in most
rows: by the fit, and by the line through the two largest sizes, which is the more cautious one where small sizes are mostly overhead. Two digits at most mean something. Memory is not in them.

{table(head, lines)}

**Estimates.** Threshold proofs are refused before they start if a formula says that they take longer than `--seconds`. It only decides what is worth starting: {_estimate(rows)}
Give more seconds to run a refused proof.

**Large counts.** Sequences are counted in 64-bit integers as long as $v^k<2^{{61}}$. From {beyond} on, counts are kept in units of a power of two, each rounded in the direction that keeps
the bound true. Nothing overflows, and there is no largest $k$ on this account.

**Certificates.** The checker takes models with $v^2k\\le2^{{24}}$ and $k\\le512$ and certificates of at most $2^{{26}}$ bytes ([the limits](../certificate-format.md#trust)). Sizes and
times for the bundled models are [there too](../certificate-format.md#measured).

**The largest model so far** has $v=512$, $k=20$ ($2^{{180}}$ inputs): `threshold-cubic-pooled` proves 0.9667 ([details](../explanation/threshold-proofs.md#8-measured)). Its certificate has
14.6 MB and was checked in 157 s, on a busy machine.

**Reports.** The [proof explorer](../explanation/reading-a-report.md#where-proofs-lose) is left out of a report for more than {number(LARGEST_VOCABULARY)} tokens: its map has a cell for every pair of tokens."""


def _vocabulary(least: float, most: float) -> str:
    if least > FARTHEST:
        return f"over {FARTHEST:,}"
    end = number(least, 2)
    if most > FARTHEST:
        return f"{end} and more"
    return end if number(most, 2) == end else f"{end} to {number(most, 2)}"


def _estimate(rows: Sequence[Measurement]) -> str:
    row = max((row for row in rows if row.label == "threshold-quartic" and row.complete), key=lambda row: row.seconds)
    estimate = cp.ThresholdQuartic().estimated_seconds(random_weights(*row.size, row.d))
    return f"for `{row.label}` at $v={row.v}$, $k={row.k}$ it says {number(estimate)} s on one thread, and {number(row.seconds)} s were measured."
