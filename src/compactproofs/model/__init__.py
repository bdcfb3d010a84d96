"""Weights: validation, files, the bundled models, training."""
