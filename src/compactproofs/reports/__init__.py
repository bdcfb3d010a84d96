"""Reports: result files in, one self-contained HTML page out. Plotting happens here and nowhere else."""
