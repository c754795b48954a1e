"""Interfaces, their addresses and neighbours, read and changed over netlink."""
