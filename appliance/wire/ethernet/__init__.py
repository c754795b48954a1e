"""Whole Ethernet frames: ARP and IPv6 neighbour discovery."""
