"""Looking for hints. Nothing here can make a bound false."""
