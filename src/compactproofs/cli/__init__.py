"""The command line. Printing happens here and nowhere else."""
