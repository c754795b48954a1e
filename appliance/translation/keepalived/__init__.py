"""Translates keepalived.conf into `virtual_ips`, frontends and pools of our configuration."""
