"""A `vrrp` that takes over from a running one, unnoticed from outside."""
