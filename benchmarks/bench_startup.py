"""How long a user waits before anything happens, against a bare interpreter."""

import subprocess
import sys
import time
from pathlib import Path

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import compactproofs": [sys.executable, "-c", "import compactproofs"],
    "compactproofs --help": [str(Path(sys.executable).parent / "compactproofs"), "--help"],
    "compactproofs strategies": [str(Path(sys.executable).parent / "compactproofs"), "strategies"],
}


def main():
    """Print the best of five runs of each."""
    bare = None
    for name, command in COMMANDS.items():
        times = []
        for _ in range(5):
            started = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            times.append(time.perf_counter() - started)
        bare = bare or min(times)
        print(f"{name:28s} {min(times):6.3f} s   {min(times) / bare:6.1f} x")


if __name__ == "__main__":
    main()
