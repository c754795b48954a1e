"""The keys of the operator's file: their types, their limits and their words."""
