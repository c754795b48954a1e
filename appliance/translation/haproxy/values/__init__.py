"""What stands behind one word of haproxy.cfg: times, addresses, networks, names."""
