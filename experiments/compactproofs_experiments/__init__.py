"""Experiments with compactproofs: the reproduction of the paper, and how costs grow. On top of the public API."""
