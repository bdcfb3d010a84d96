"""Results: one schema, one Parquet store, read through DuckDB. Importing this package loads nothing heavy."""
