"""Supervised programs, one module each: the only place where pure code meets IO."""
