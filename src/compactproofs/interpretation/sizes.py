"""How large the parts are that should not matter: EQKP, PVOU and EU."""

from __future__ import annotations

import numpy as np

from compactproofs.bounds.row_spreads import spread
from compactproofs.form.tables import float_circuits
from compactproofs.interpretation.numbers import Statistics, finite
from compactproofs.model.weights import Weights


def table_sizes(weights: Weights) -> Statistics:
    """Largest entries and row spreads, attention scale included."""
    tables = float_circuits(weights)
    return {
        "EQKPWithAttnScaleAbsMaxFloat": finite(np.abs(tables.EQKP).max()),
        "EQKP_abs_mean": finite(np.abs(tables.EQKP).mean()),
        "EQKP_row_diff_max": finite(spread(tables.EQKP).max()),
        "PVOU_abs_max": finite(np.abs(tables.PVOU).max()),
        "PVOU_row_diff_max": finite(spread(tables.PVOU).max()),
        "EUPUAbsMaxFloat": finite(np.abs(tables.EU).max()),
        "EU_row_diff_max": finite(spread(tables.EU).max()),
        "EU_row_diff_mean": finite(spread(tables.EU).mean()),
    }
