"""Pydantic's errors about single keys, in words for the operator."""
