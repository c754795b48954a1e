"""A `vrrp` that takes the place of one that still runs, without anybody outside noticing."""
