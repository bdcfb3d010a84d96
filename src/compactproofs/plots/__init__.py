"""Every figure: how proofs are marked, as plotly specifications for pages, and through matplotlib for files."""
