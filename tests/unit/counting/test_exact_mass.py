"""`exact_mass` against enumeration, and where 62 bits are not enough."""

import numpy as np
import pytest

from compactproofs.counting.count_up import Automaton
from compactproofs.counting.exact_mass import exact_mass
from compactproofs.tasks import MaxOfK
from unit.counting.test_count_both import enumerated, random_case


def test_the_mass_is_exact():
    for seed in range(200):
        D, _, masses, _, automaton = random_case(seed)
        nothing, zero = np.zeros_like(D), np.zeros(2, dtype=np.int64)
        assert exact_mass(masses, automaton) == enumerated((nothing, nothing, masses, zero, automaton))


@pytest.mark.parametrize(("k", "v"), [(10, 64), (20, 64), (20, 512)])
def test_so_it_is_beyond_62_bits(k, v):
    a = MaxOfK(k, v).label_automaton(v // 2)
    masses = np.ones((k, len(a.tokens)), dtype=np.int64)
    m = v // 2
    assert exact_mass(masses, Automaton(a.following, a.accepting, a.start)) == (m + 1) ** k - m**k
