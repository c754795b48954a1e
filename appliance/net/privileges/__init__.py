"""Users, capabilities, and directories that nobody else may write."""
