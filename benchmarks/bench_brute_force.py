"""Exact brute force on max-of-4: against a naive compiled loop, a plain forward pass, and itself when cold."""

import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from numba import njit

import compactproofs as cp
from compactproofs.cores import available_cores
from compactproofs.counting.brute_force import brute_force
from compactproofs.form.tables import float_circuits
from compactproofs.tasks import task_for


@njit
def naive(EQKE, EQKP, EVOU, PVOU, EU):
    """One thread, four nested loops over tokens and one over outputs; no error bound, ties decided by rounding."""
    v = EQKE.shape[0]
    correct = 0
    for q in range(v):
        weight = np.exp(EQKE[q] - EQKE[q].max())
        position = np.exp(EQKP[q])
        for a in range(v):
            for b in range(v):
                for c in range(v):
                    label = max(max(a, b), max(c, q))
                    w0, w1, w2, w3 = weight[a] * position[0], weight[b] * position[1], weight[c] * position[2], weight[q] * position[3]
                    mass = w0 + w1 + w2 + w3
                    best, own = -np.inf, 0.0
                    for o in range(v):
                        x = w0 * (EVOU[a, o] + PVOU[0, o]) + w1 * (EVOU[b, o] + PVOU[1, o])
                        x += w2 * (EVOU[c, o] + PVOU[2, o]) + w3 * (EVOU[q, o] + PVOU[3, o]) + mass * EU[q, o]
                        if o == label:
                            own = x
                        else:
                            best = max(best, x)
                    correct += best < own
    return correct


def timed(function, *arguments, repeat=3):
    """The result and the best time of a few runs."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        result = function(*arguments)
        times.append(time.perf_counter() - started)
    return result, min(times)


def start(cache):
    """Seconds of a fresh process that proves max-of-4 by brute force, with the given compilation cache."""
    code = "import compactproofs as cp; cp.prove(cp.zoo('max-of-4'), 'brute-force')"
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "NUMBA_CACHE_DIR": cache})
    return time.perf_counter() - started


def main():
    """Print the table."""
    weights = cp.zoo("max-of-4")
    task = task_for(weights)
    brute_force(weights, task)
    ours, seconds = timed(brute_force, weights, task)
    single = timed(lambda: brute_force(weights, task, threads=1))[1]
    tables = float_circuits(weights)
    arguments = (tables.EQKE, tables.EQKP, tables.EVOU, tables.PVOU, tables.EU)
    naive(*(a[:1, :1] if a is tables.EQKE else a for a in arguments))
    loop, naive_seconds = timed(naive, *arguments, repeat=1)
    tokens = np.random.default_rng(0).integers(0, 64, size=(2**16, 4))
    forward_seconds = timed(cp.forward, weights, tokens)[1] * task.total / len(tokens)
    with tempfile.TemporaryDirectory() as cache:
        cold, warm = start(cache), start(cache)
    print(f"brute force, 64^4 sequences, {available_cores()} cores: {seconds:.3f} s ({ours.correct} correct, {ours.undecided} undecided)")
    print(f"  one thread / all threads            {single / seconds:8.2f} x")
    print(f"  naive compiled loop, one thread     {naive_seconds / seconds:8.2f} x   (counts {loop})")
    print(f"  numpy forward pass, extrapolated    {forward_seconds / seconds:8.0f} x")
    print(f"  fresh process, warm cache           {warm / seconds:8.2f} x   ({warm:.2f} s)")
    print(f"  fresh process, cold cache           {cold / seconds:8.2f} x   ({cold:.2f} s)")


if __name__ == "__main__":
    main()
