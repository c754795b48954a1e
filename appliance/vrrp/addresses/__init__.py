"""Adds the addresses of virtual routers to an interface, removes them, and looks for them elsewhere."""
