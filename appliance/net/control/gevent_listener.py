"""Listening unix sockets for greenlets: accept(2) blocks only the waiting greenlet."""

from pathlib import Path

from gevent import socket

from appliance.net.control import unix_listener


def listen_unix(path: Path) -> socket.socket:
    """Return a listening unix socket at `path` for its owner; replaces that of a dead program."""
    return socket.socket(fileno=unix_listener.listen_unix(path).detach())


def listen_for_readers(path: Path) -> socket.socket:
    """Return a listening unix socket for the members of `group:`, too, if there is a group."""
    return socket.socket(fileno=unix_listener.listen_for_readers(path).detach())
