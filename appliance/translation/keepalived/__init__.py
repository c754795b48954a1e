"""keepalived.conf, turned into `virtual_ips` of our configuration."""
