"""Weights to tables."""

from compactproofs.circuits.tables import Circuits, float_circuits, interval_circuits

__all__ = ["Circuits", "float_circuits", "interval_circuits"]
