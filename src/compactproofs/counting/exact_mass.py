"""How much all sequences of an automaton weigh, exactly: what inclusion and exclusion may be counted from."""

from __future__ import annotations

import numpy as np

from compactproofs.counting.count_up import Automaton, mass_up, unit_exponents


def exact_mass(masses: np.ndarray, automaton: Automaton) -> int:
    """The mass of the accepted sequences.

    Guarantee: exact, whatever the masses.
    Cost: a product per position, state and token, of Python's integers where 62 bits are not enough.
    """
    following, accepting, first = automaton
    if not unit_exponents(masses).any():
        return int(mass_up(masses, automaton))
    ahead = np.array([int(accepts) for accepts in accepting] + [0], dtype=object)  # the last one is where -1 leads
    for row in masses[::-1].astype(object):
        ahead[:-1] = (ahead[following] * row).sum(axis=1)
    return int(ahead[first])
