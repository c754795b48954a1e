"""Values of one word in haproxy.cfg: times, addresses, networks, names."""
