"""The verdicts of tracks over time, and the priority and notify commands that follow from them."""
