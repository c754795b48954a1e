"""keepalived.conf, turned into `virtual_ips`, frontends and pools of our configuration."""
