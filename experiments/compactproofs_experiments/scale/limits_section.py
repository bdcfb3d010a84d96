"""The part of the page about limits."""

from __future__ import annotations

from collections.abc import Sequence

import compactproofs as cp
from compactproofs.interpretation.explorer import LARGEST_VOCABULARY
from compactproofs_experiments.scale.groups import Group
from compactproofs_experiments.scale.models import random_weights
from compactproofs_experiments.scale.records import SECONDS, Measurement
from compactproofs_experiments.scale.words import clock, listed, number, table

FARTHEST = 10_000
"""No extrapolation goes beyond this vocabulary."""


def limits_section(found: Sequence[Group], rows: Sequence[Measurement]) -> str:
    """How far it goes: time by extrapolation, counts, certificates, reports."""
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
    first = {v: next(k for k in range(1, 100) if v**k >= 2**62) for v in (64, 128, 256)}
    beyond = listed([f"$k={k}$ at $v={v}$" for v, k in first.items()])
    return f"""## Limits

**Time.** The vocabulary at which a proof ($k=4$, $d=32$, one thread) would take a minute and an hour. **These are extrapolations**, beyond the largest measured size in most
rows: by the fit, and by the line through the two largest sizes, which is the more cautious one where small sizes are mostly overhead. Two digits at most mean something. Memory is not in them.

{table(head, lines)}

**Estimates.** Threshold proofs are refused before they start if a formula says that they take longer than `--seconds`. It only decides what is worth starting: {_estimate(rows)}
Give more seconds to run a refused proof.

**Large counts.** Sequences are counted in 64-bit integers as long as $v^k<2^{{62}}$. From {beyond} on, counts are kept in units of a power of two and rounded up, which keeps
the bound true. Nothing overflows, and there is no largest $k$ on this account.

**Certificates.** The checker takes models with $k\\le512$ and fewer than $10^{{4000}}$ sequences and certificates of at most $2^{{26}}$ bytes, and meters its work ([the limits](../certificate-format.md#limits)). Sizes and
times for the bundled models are [there too](../certificate-format.md#measured).

**The largest model so far** has $v=512$, $k=20$ ($2^{{180}}$ inputs): `threshold-cubic-pooled` proves 0.9667 ([details](../explanation/threshold-proofs.md#11-measured)). Its certificate (of format
version 1) had 14.6 MB and was checked in 157 s, on a busy machine.

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
