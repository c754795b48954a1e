"""The text of a file as plain values, each with its line and column."""
