"""Many models times many strategies: plan, executor, one result part per model. Importing this package loads nothing heavy."""
