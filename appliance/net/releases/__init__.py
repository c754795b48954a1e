"""Releases of the appliance that are installed beside each other."""
