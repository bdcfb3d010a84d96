"""Attack sweeps: kill -9 at random moments, two sweeps in one folder, files replaced and renamed in between; then inspect every row.

    python benchmarks/attack_sweeps.py --kills 100

After each round of kills the sweep is run to its end, and the rows must be those of a sweep that nobody disturbed: every file once for each
strategy, with its present content, the same bounds. Exit code 1 if they are not.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import compactproofs as cp
from compactproofs.results.store import open_results
from models import random_weights

COMMAND = Path(sys.executable).parent / "compactproofs"
STRATEGIES = ("cubic", "brute-force", "threshold-cubic-pooled", "threshold-quartic", "threshold-best", "subcubic")
MODELS = 12


def command(models: Path, out: Path) -> list[str]:
    """The sweep that is attacked."""
    chosen = [word for name in STRATEGIES for word in ("--strategy", name)]
    return [str(COMMAND), "sweep", str(models), "--out", str(out), "--workers", "2", "--upper", *chosen]


def rows(out: Path) -> list[tuple[object, ...]]:
    """Everything in the results but times."""
    timed = "seconds, search_seconds, counting_seconds, compile_seconds"
    with open_results(out) as results:
        return results.sql(f"SELECT * EXCLUDE ({timed}) FROM results ORDER BY ALL").fetchall()


def disturb(models: Path, generator: random.Random, number: int) -> None:
    """Replace, rename or exchange files."""
    files = sorted(models.rglob("*.safetensors"))
    one, other = generator.sample(files, 2)
    match generator.randrange(3):
        case 0:
            cp.save(random_weights(1000 + number), one)
        case 1:
            one.rename(one.with_name(f"renamed{number}.safetensors"))
        case _:
            one.rename(models / "x")
            other.rename(one)
            (models / "x").rename(other)


def main() -> int:
    """Attack and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    generator = random.Random(options.seed)
    kills = rounds = after_parts = pairs = disturbed = 0
    with tempfile.TemporaryDirectory() as folder:
        models, out = Path(folder) / "models", Path(folder) / "out"
        models.mkdir()
        for seed in range(MODELS):
            cp.save(random_weights(seed), models / f"seed{seed}.safetensors")
        while kills < options.kills:
            for _ in range(generator.randrange(1, 6)):
                for name in generator.sample(sorted(models.rglob("*.safetensors")), 4):  # so that there is something to do
                    disturbed += 1
                    cp.save(random_weights(5000 + disturbed), name)
                together = generator.random() < 0.4
                before = len(list(out.glob("*.parquet"))) if out.exists() else 0
                running = [
                    subprocess.Popen(command(models, out), start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    for _ in range(2 if together else 1)
                ]
                pairs += together
                wait_until = time.monotonic() + generator.uniform(0.5, 6.0)
                parts_wanted = before + generator.randrange(0, 5)
                while time.monotonic() < wait_until and any(p.poll() is None for p in running):
                    if parts_wanted > before and out.exists() and len(list(out.glob("*.parquet"))) >= parts_wanted:
                        after_parts += 1
                        break
                    time.sleep(0.001)
                for process in running:
                    if process.poll() is None:
                        kills += 1
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                if generator.random() < 0.5:
                    disturbed += 1
                    disturb(models, generator, disturbed)
            rounds += 1
            subprocess.run(command(models, out), check=True, stdout=subprocess.DEVNULL)
            whole = Path(folder) / f"whole{rounds}"
            subprocess.run(command(models, whole), check=True, stdout=subprocess.DEVNULL)
            found, expected = rows(out), rows(whole)
            if found != expected:
                print(f"round {rounds}: {len(found)} rows, expected {len(expected)}; {len(set(found) ^ set(expected))} differ")
                return 1
            leftovers = [path.name for path in out.iterdir() if path.suffix == ".tmp" and time.time() - path.stat().st_mtime > 3600]
            if leftovers:
                print(f"round {rounds}: left behind {leftovers}")
                return 1
            print(f"round {rounds}: {kills} kills so far, {len(found)} rows as expected", flush=True)
    print(
        f"{kills} kills, {after_parts} of them just after a part appeared, {pairs} times two sweeps at once, {rounds} rounds: all rows right"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
