"""The page. Every number comes from the files of measurements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from compactproofs_experiments.scale.figures import save_figure
from compactproofs_experiments.scale.groups import COSTS, Group, groups, ranges
from compactproofs_experiments.scale.growth_section import growth_section
from compactproofs_experiments.scale.limits_section import limits_section
from compactproofs_experiments.scale.records import AXES, BRUTE_FORCE_AXIS, SECONDS, Measurement, Memory, SweepCost, beside, read
from compactproofs_experiments.scale.sweep_section import sweep_section, sweep_summary
from compactproofs_experiments.scale.words import listed, span, table

_SHOWN = ("brute-force", "cubic", "subcubic, repaired", "threshold-quadratic-pooled", "threshold-cubic-pooled", "threshold-quartic")
"""What the summary tells."""


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
        growth_section(rows, found),
        _memory(memory),
        sweep_section(sweeps),
        limits_section(found, rows),
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

Written by `python -m compactproofs_experiments.scale.measure FOLDER --sweep-results RESULTS --page docs/results/scale.md`; the measurements are in {_files(out)}.

**Models.** One for each size, seed 0 of the [recipe](../explanation/training.md). $v$ is the vocabulary, $k$ the sequence length, $d=d_\\text{{model}}=d_\\text{{head}}$. One size varies at a time:

{_sizes(rows)}

**Strategies.** {which}

**Time** is processor time of one thread, for a proof on its own: the search for hints is in it, and nothing is shared with other proofs. Kernels were compiled before, on tiny models, and FLOPs were counted before. Quick proofs
were run three times and the least time counts; the slowest of the three took {median(repeated):.0%} more in the median, and {max(repeated):.0%} more at worst. {busy}
All runs together took {total:.0f} minutes. The limit for a proof was {SECONDS:g} s; what is expected to take longer is refused.

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
