"""The kernel of Coq on certificates of the bundled models, beside checker.py: one row each, in processor seconds.

    python benchmarks/compare_formal.py [NAME:STRATEGY ...]

Needs `make formal`. The seconds are those of coqc and what it starts: reading the file, checking, printing the axioms. A certificate that is
not accepted ends it with exit code 1.
"""

from __future__ import annotations

import resource
import sys
import time

import compactproofs as cp
from compactproofs.certificates.checking import as_written, network
from compactproofs.certificates.coq import check_coq

ROWS = (
    "max-of-4:threshold-cubic-pooled",
    "max-of-4:threshold-best",
    "max-of-5:threshold-best",
    "max-of-10:threshold-best",
    "max-of-20:threshold-cubic-pooled",
    "max-of-10-v128:threshold-cubic-pooled",
)


def of_children() -> float:
    """Processor seconds of what was started and has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(rows: list[str]) -> int:
    """A row for each."""
    print("| certificate | at least | at most | bytes | checker.py, s | Coq, s |\n|---|---|---|---|---|---|")
    accepted = True
    for row in rows or ROWS:
        name, strategy = row.split(":")
        weights = cp.zoo(name)
        certificate = cp.prove(weights, strategy, upper="own").certificate
        started = time.process_time()
        accepted &= cp.check(certificate, weights).accepted
        python, before = time.process_time() - started, of_children()
        proved = check_coq(certificate.data, network(weights), as_written(weights))
        accepted &= proved.accepted
        most = "-" if certificate.correct_at_most is None else f"{certificate.correct_at_most / certificate.total:.8f}"
        verdict = f"{of_children() - before:.1f}" if proved.accepted else f"rejected: {proved.message[-200:]}"
        share = f"{certificate.correct_at_least / certificate.total:.8f}"
        print(f"| {name}, `{strategy}` | {share} | {most} | {len(certificate.data)} | {python:.1f} | {verdict} |", flush=True)
    return 0 if accepted else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
