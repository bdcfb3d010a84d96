"""Refuse to prove anything in a process whose floating point is not IEEE-754's.

Flush-to-zero is a mode of the processor that a library can switch on for the whole thread (`torch.set_flush_denormal`, code linked with
-ffast-math). Subnormal weights would then read as zero and every error bound that counts on gradual underflow would be false.
"""

import numpy as np

from compactproofs.errors import CompactProofsError


def require_ieee754() -> None:
    """Raise unless this thread rounds to nearest and keeps subnormal numbers. Costs a few microseconds."""
    tiny32 = np.array([2.0**-149], dtype=np.float32)
    tiny64 = np.array([2.0**-1074])
    half64 = np.array([2.0**-1022])
    one = np.array([1.0])
    keeps_subnormals = tiny32.astype(np.float64)[0] == 2.0**-149 and (tiny64 * one)[0] == 2.0**-1074 and (half64 * 0.5)[0] == 2.0**-1023
    steps = one + np.array([2.0**-54, 3 * 2.0**-54, -(2.0**-55)])
    rounds_to_nearest = steps.tolist() == [1.0, 1.0 + 2.0**-52, 1.0]
    if not (keeps_subnormals and rounds_to_nearest):
        raise CompactProofsError(
            "floating point in this process does not follow IEEE-754: subnormal numbers are flushed to zero, or the rounding mode was "
            "changed. Proofs would be invalid. Look for torch.set_flush_denormal(True) or a library built with -ffast-math"
        )
