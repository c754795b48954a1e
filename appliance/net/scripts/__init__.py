"""Commands of the operator: tracked scripts and notify commands."""
