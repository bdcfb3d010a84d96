"""How long a user waits before anything happens, against a bare interpreter; and for the first proof in a fresh environment."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = str(Path(sys.executable).parent / "compactproofs")
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import compactproofs": [sys.executable, "-c", "import compactproofs"],
    "compactproofs --help": [COMMAND, "--help"],
    "compactproofs strategies": [COMMAND, "strategies"],
    "compactproofs prove max-of-4": [COMMAND, "prove", "max-of-4"],
}


def run(command, **environment):
    """Wall time, and processor time with that of helpers."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - started, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    """Print the best of five runs of each, and one proof that has to compile everything."""
    with tempfile.TemporaryDirectory() as fresh:
        wall, processor = run(COMMANDS["compactproofs prove max-of-4"], NUMBA_CACHE_DIR=fresh)
    print(f"{'first proof, nothing compiled':30s} {wall:6.3f} s   {processor:6.3f} s of processor time")
    bare = None
    for name, command in COMMANDS.items():
        best = min(run(command) for _ in range(5))
        bare = bare or best[0]
        print(f"{name:30s} {best[0]:6.3f} s   {best[1]:6.3f} s of processor time   {best[0] / bare:6.1f} x")


if __name__ == "__main__":
    main()
