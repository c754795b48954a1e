"""What `stats` listens on: bound for a snapshot before that is accepted, served from then on."""

import os
from collections.abc import Callable

from gevent import socket

from appliance.model.snapshot.stats import Stats
from appliance.net.listening.bind_addresses import Address
from appliance.net.listening.bind_refusals import BindProblem
from appliance.net.listening.listeners import Listeners, ReservedBinds
from appliance.stats.web_server import WebServer

Serve = Callable[[socket.socket], WebServer]
"""Returns a server for a listening socket, which is the server's from then on."""


class WebListeners:
    """The addresses of the page; what was reserved for a snapshot is served when that is committed."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._held = Listeners()
        self._reserved: ReservedBinds | None = None
        self._servers: dict[Address, WebServer] = {}

    def reserve(self, stats: Stats) -> tuple[BindProblem, ...]:
        """Bind for a snapshot; return what stands in the way, and then nothing has changed."""
        self.abort()
        found = self._held.reserve(stats.binds)
        if not isinstance(found, ReservedBinds):
            return found
        self._reserved = found
        return ()

    def abort(self) -> None:
        """Close what was bound for a snapshot that is not accepted."""
        if self._reserved is not None:
            self._held.release(self._reserved.fresh)
            self._reserved = None

    def commit(self) -> None:
        """Serve exactly what was reserved last."""
        if self._reserved is None:
            return
        wanted = {address for places in self._reserved.addresses.values() for address in places}
        self._reserved = None
        self._held.open(wanted)
        for address in wanted - self._servers.keys():
            server = self._serve(socket.socket(fileno=os.dup(self._held.fileno(address))))
            server.start()
            self._servers[address] = server
        for address in self._servers.keys() - wanted:
            self._servers.pop(address).stop(timeout=0)
        self._held.keep_only(wanted)

    def close(self) -> None:
        """Serve no more."""
        self.abort()
        for server in self._servers.values():
            server.stop(timeout=0)
        self._servers.clear()
        self._held.keep_only(())
