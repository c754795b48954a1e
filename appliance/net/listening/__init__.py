"""Listening sockets of a proxy master, its worker processes and generations."""
