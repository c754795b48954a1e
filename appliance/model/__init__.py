"""What the operator wants: configuration, its errors, its differences."""
