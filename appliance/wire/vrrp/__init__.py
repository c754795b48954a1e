"""VRRP packets, and the headers around them."""
