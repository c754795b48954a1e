"""Bytes to values and back, no IO."""
