"""Releases of the appliance, installed next to each other."""
