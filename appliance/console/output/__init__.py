"""The output of values on a terminal."""
