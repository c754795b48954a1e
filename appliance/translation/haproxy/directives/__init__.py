"""The effect of each directive of haproxy.cfg on its section."""
