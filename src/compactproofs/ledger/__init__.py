"""The proof as data: what is claimed of which sequences and why, and the rule that decides what it proves."""
