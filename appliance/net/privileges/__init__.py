"""Users, capabilities, and directories that no other user may write."""
