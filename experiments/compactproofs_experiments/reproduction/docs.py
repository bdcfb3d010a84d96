"""The pages of the documentation, from the store that is kept beside them.

    python -m compactproofs_experiments.reproduction.docs [REPRODUCTION]

writes docs/results anew from docs/results/store; given the folder of a reproduction, it packs the store of that one first.
"""

from __future__ import annotations

import sys
from pathlib import Path

from compactproofs.results.store import pack
from compactproofs_experiments.reproduction.pages import write_pages

RESULTS = Path(__file__).parents[3] / "docs" / "results"
COMMAND = "compactproofs reproduce --config all --seeds 151 --out DIR"


def main(words: list[str]) -> None:
    """Pack, if a reproduction is given, and write the pages."""
    store = RESULTS / "store"
    if words:
        store.mkdir(exist_ok=True)
        rows = pack(Path(words[0]) / "results", store / "results.parquet")
        sys.stdout.write(f"{rows} rows, {(store / 'results.parquet').stat().st_size / 1e6:.1f} MB\n")
    written = write_pages(store, RESULTS, command=COMMAND)
    sys.stdout.write(f"{len(written)} files in {RESULTS}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
