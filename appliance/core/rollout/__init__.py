"""Generations of proxy workers: which ones a changed configuration starts, drains and ends."""
