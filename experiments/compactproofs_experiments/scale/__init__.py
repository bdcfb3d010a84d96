"""How the cost of every strategy grows with the sizes of the model: `python -m compactproofs_experiments.scale.measure`."""
