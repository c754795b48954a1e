"""Interfaces, their addresses, and what goes over them as whole frames and packets."""
