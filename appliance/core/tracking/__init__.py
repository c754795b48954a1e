"""What the checks of tracks say over time, and the priority and notify commands that follow from it."""
