"""What tracked things say over time, and the priority and notify commands that follow from it."""
