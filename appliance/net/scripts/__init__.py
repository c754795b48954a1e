"""Commands of the operator: scripts that are tracked, and notify commands."""
