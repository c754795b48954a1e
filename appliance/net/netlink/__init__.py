"""Interfaces, their addresses and neighbours, as the kernel tells and changes them by netlink."""
