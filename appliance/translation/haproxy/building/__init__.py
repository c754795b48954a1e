"""Builds our configuration from the sections of haproxy.cfg."""
