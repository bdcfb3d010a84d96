"""Counting sequences: exactly by brute force, or in a sample."""
