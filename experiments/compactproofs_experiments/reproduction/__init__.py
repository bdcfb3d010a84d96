"""The published experiment again: models, sweeps, and pages that set the results beside the published ones."""
