"""Generations of proxy workers: what a changed configuration starts, drains and ends."""
