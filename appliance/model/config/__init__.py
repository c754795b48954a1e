"""The keys of the operator's file: their types, limits and descriptions."""
