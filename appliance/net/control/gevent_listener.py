"""Listening unix sockets for greenlets: accept(2) on them blocks only the greenlet that waits."""

from pathlib import Path

from gevent import socket

from appliance.net.control import unix_listener


def listen_unix(path: Path) -> socket.socket:
    """Return a listening unix socket at `path`, in the place of one left by a dead program; for its owner."""
    return socket.socket(fileno=unix_listener.listen_unix(path).detach())


def listen_for_readers(path: Path) -> socket.socket:
    """Return the same for the members of `group:` too, where there is a group."""
    return socket.socket(fileno=unix_listener.listen_for_readers(path).detach())
