"""Inequalities, one idea per file. Each is array code or a compiled stand-in for it with an error proof, and cites its theorem."""
