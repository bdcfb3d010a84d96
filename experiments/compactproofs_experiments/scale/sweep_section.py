"""The part of the page about many models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean

from compactproofs.sweeps.executors import DaskScheduler
from compactproofs_experiments.scale.records import REPEATS, SweepCost
from compactproofs_experiments.scale.words import clock, listed, number, size, span, table

MODELS = 100_000
CORES = (64, 512)


def sweep_section(costs: Sequence[SweepCost]) -> str:
    """What each model of a measured sweep costs, and what many would; nothing if no sweep was measured."""
    if not costs:
        return ""
    in_flight = DaskScheduler("").in_flight
    guessed = [cost.name for cost in costs if math.isnan(cost.cpu)]
    source = (
        "Core seconds are processor time of the whole sweep divided by its models, accuracy and the parent process included."
        if not guessed
        else f"Core seconds are processor time of the whole sweep divided by its models; for {listed(guessed)}, whose sweep had not ended, "
        "the wall time of the proofs: an upper estimate, as the machine was busy."
    )
    proofs = span(min(c.proofs for c in costs), max(c.proofs for c in costs), "{:.0f}")
    limits = span(min(c.limit for c in costs), max(c.limit for c in costs), "{:g}")
    return f"""## A sweep of {MODELS:,} models

Computed from sweeps of the paper's configurations with {proofs} proofs per model and a limit of {limits} s for each. {_portfolio(costs)}{source}

{_per_model(costs)}

"Sent" is what goes to a worker (weights and plan), "returned" what comes back (rows). A result is one Parquet file.

For {MODELS:,} models of one configuration:

{_many(costs, in_flight)}

Wall time is core time divided by cores, or the time of the parent process if that is longer. It assumes cores like the one measured, and models that all take about the same time.

{_parent(costs)}

{_in_flight(costs, in_flight)}

**Going on after an interruption** means to read every model and its result: {_resume(costs)} for {MODELS:,} finished models, before the first new proof, again without waiting for the disk. Opening the results for a query reads the foot
of every part: {_opening(costs)}, if it goes on as for the folders measured.

**Not measured**: the scheduler's own time, the network, and compiling the kernels once on each machine (or for each worker, without a common folder for them). {MODELS:,} models send and return {_traffic(costs)} in all."""


def sweep_summary(costs: Sequence[SweepCost]) -> list[str]:
    """The same in a sentence."""
    if not costs:
        return []
    hours = ", ".join(f"{c.name} {'at most ' if math.isnan(c.cpu) else ''}{number(MODELS * c.worker / 3600)}" for c in costs)
    least = min(costs, key=lambda c: c.worker / c.parent)
    slow = f"{number(least.worker / least.parent, 2)} cores ({least.name})"
    return [
        f"Core hours for {costs[0].proofs} proofs about each of {MODELS:,} models: {hours}. Beyond {slow} the one process that writes results is the bottleneck."
    ]


def _portfolio(costs: Sequence[SweepCost]) -> str:
    names = [c.name for c in costs if c.portfolio > 0.8 * c.limit]
    return f"`threshold-best` goes on until its limit for most models of {listed(names)}. " if names else ""


def _per_model(costs: Sequence[SweepCost]) -> str:
    head = ["configuration", "$v$", "$k$", "models", "core s", "of the proofs' time: `threshold-best`", "brute force", "training, core s"]
    head += ["result", "model file", "sent", "returned"]
    lines = [
        [
            *(c.name, str(c.v), str(c.k), str(c.models), number(c.worker)),
            *(f"{c.portfolio / c.proving:.0%}", f"{c.brute_force / c.proving:.0%}"),
            "-" if math.isnan(c.training_cpu) else number(c.training_cpu),
            *(size(count) for count in (c.part_bytes, c.model_bytes, c.sent_bytes, c.returned_bytes)),
        ]
        for c in costs
    ]
    return table(head, lines)


def _many(costs: Sequence[SweepCost], in_flight: int) -> str:
    head = ["configuration", "core hours", "training, core hours", *(f"on {cores} cores" for cores in CORES), "results", "models"]
    head += ["parent process", "cores at which it is the bottleneck"]
    lines = []
    for c in costs:
        walls = [clock(MODELS * max(c.worker / min(cores, in_flight), c.parent)) for cores in CORES]
        hours = number(MODELS * c.worker / 3600)
        training = "-" if math.isnan(c.training_cpu) else number(MODELS * c.training_cpu / 3600)
        stored = [size(MODELS * count) for count in (c.part_bytes, c.model_bytes)]
        lines.append([c.name, hours, training, *walls, *stored, clock(MODELS * c.parent), number(c.worker / c.parent)])
    return table(head, lines)


def _parent(costs: Sequence[SweepCost]) -> str:
    steps = {
        "reading a model (twice)": 2 * mean(c.loading for c in costs),
        "packing it": mean(c.sending for c in costs),
        "unpacking rows": mean(c.receiving for c in costs),
        "writing a part": mean(c.writing for c in costs),
    }
    recorded = [c.recorded_io for c in costs if not math.isnan(c.recorded_io)]
    beside = (
        f" (The sweeps recorded {1000 * mean(recorded):.0f} ms of wall time for reading and writing, with all cores at work.)"
        if recorded
        else ""
    )
    rates = span(min(1 / c.parent for c in costs), max(1 / c.parent for c in costs), "{:.0f}")
    least = min(costs, key=lambda c: c.worker / c.parent)
    return (
        "**The parent process** reads models, hands them out, and writes every result by itself. Processor time per model, in the mean: "
        + ", ".join(f"{name} {1000 * seconds:.1f} ms" for name, seconds in steps.items())
        + f", the least of {REPEATS} runs. Waiting for the disk is not in it.{beside} It keeps up with {rates} models a second. It would be the bottleneck first for {least.name}, with "
        f"{number(least.worker / least.parent)} cores."
    )


def _in_flight(costs: Sequence[SweepCost], in_flight: int) -> str:
    cores = max(CORES)
    if cores <= in_flight:
        return f"At most {in_flight} models are with a dask scheduler at a time, enough for {cores} cores."
    sweeps = -(-cores // in_flight)
    times = ", ".join(f"{c.name} {clock(MODELS * max(c.worker / cores, c.parent / sweeps))}" for c in costs)
    return (
        f"**At most {in_flight} models are with a dask scheduler at a time**, so that a sweep with more than {in_flight} workers leaves some idle: the "
        f"column for {cores} cores counts {in_flight} of them. {sweeps} sweeps at once, each with its part of the models and its own parent process, would "
        f"use them all: {times}."
    )


def _resume(costs: Sequence[SweepCost]) -> str:
    times = [MODELS * (c.loading + c.reading) for c in costs]
    return _clocks(times)


def _opening(costs: Sequence[SweepCost]) -> str:
    return _clocks([MODELS * c.opening for c in costs])


def _clocks(times: Sequence[float]) -> str:
    ends = [clock(min(times)), clock(max(times))]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _traffic(costs: Sequence[SweepCost]) -> str:
    totals = [MODELS * (c.sent_bytes + c.returned_bytes) for c in costs]
    ends = [size(min(totals)), size(max(totals))]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
