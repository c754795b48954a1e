"""Tracks: the checks of all kinds, and who follows them over time. They may block their greenlet."""
