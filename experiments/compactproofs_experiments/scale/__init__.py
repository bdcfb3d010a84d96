"""What `measure_scale.py` is made of."""
