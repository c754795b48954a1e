"""The operator's configuration, its errors, its differences."""
