"""Raw sockets: whole Ethernet frames, and VRRP over IP."""
