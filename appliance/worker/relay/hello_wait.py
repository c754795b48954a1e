"""Waits for a client's ClientHello before choosing its pool (`sni`; HAProxy's `tcp-request inspect-delay`).

The bytes are only peeked at and stay in the kernel's buffer (MSG_PEEK): the session that follows reads them
as it reads any client, so that the server gets them unchanged and first, behind a PROXY header if there is
one. A frontend without `sni` uses none of this. Without a hello that names a server, for whatever reason, the
client goes to the frontend's `pool`.
"""

import _socket
from collections.abc import Callable
from errno import EAGAIN
from socket import AF_INET, MSG_PEEK
from typing import Final

from appliance.core.balancing.frontend_state import FrontendState
from appliance.model.end_reasons import EndReason
from appliance.wire.need import Need
from appliance.wire.tls.client_hello import LIMIT, HelloError, HelloReader
from appliance.worker.relay.all_sessions import Traffic
from appliance.worker.relay.poll_events import ERROR, FIN, INCOMING
from appliance.worker.relay.poller import Pollable
from appliance.worker.relay.raw_io import AGAIN
from appliance.worker.relay.raw_sockets import STREAM, reset

Relay = Callable[[str, FrontendState, int, bytes], None]
"""Opens a session with a pool; otherwise as `acceptor.Open`."""

_SEEN: Final = memoryview(bytearray(LIMIT))
"""The bytes peeked at last; they are used only within one call."""


class HelloWait(Pollable):
    """A connection whose hello has not come yet. `fd` is -1 once the session has it, or it has ended."""

    __slots__ = (
        "_reader",
        "_relay",
        "_size",
        "address",
        "deadline",
        "fd",
        "frontend",
        "number",
        "started",
        "traffic",
    )

    member = None
    """It has no place at a server yet; the console asks this of every connection."""

    def __init__(
        self, traffic: Traffic, frontend: FrontendState, fd: int, address: bytes, *, relay: Relay
    ) -> None:
        self.traffic = traffic
        self.frontend = frontend
        self.fd = fd
        self.address = address
        self.started = traffic.now
        self.deadline = traffic.now + frontend.timeout_hello
        self.turn = 0
        self._relay = relay
        self._reader = HelloReader()
        self._size = 0
        traffic.last_number += 1
        self.number = traffic.last_number

    def begin(self) -> None:
        """Use a hello that has arrived, or wait for it."""
        traffic = self.traffic
        traffic.poller.register(self.fd, self, INCOMING)
        traffic.live.add(self)
        traffic.every_tick.add(self)

    def on_events(self, events: int) -> None:
        """Peek at the received bytes, and continue as soon as the pool is known."""
        try:
            self._look(events)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this connection and no other
            self.traffic.fault(error)
            self.end(EndReason.INTERNAL)

    def expire(self, now: float) -> None:
        """Continue without a name if the hello has not come in time."""
        if now >= self.deadline:
            try:
                self._go_on(None)
            except Exception as error:  # noqa: BLE001  # the boundary: as in `on_events`
                self.traffic.fault(error)
                self.end(EndReason.INTERNAL)

    def end(self, reason: EndReason) -> None:
        """Reset the client; harmless if it has ended, or has become a session."""
        if self.fd < 0:
            return
        self._leave()
        fd, self.fd = self.fd, -1
        self.traffic.poller.forget(fd)
        reset(fd)
        frontend, traffic = self.frontend, self.traffic
        frontend.current -= 1
        frontend.failed += 1
        traffic.reasons[reason] += 1
        traffic.changed = True
        if traffic.paused:
            traffic.make_room()

    def _look(self, events: int) -> None:
        size = 0 if events & ERROR else _peek(self.fd)
        if size == AGAIN:
            return
        if events & ERROR or size < 0:
            self.end(EndReason.CLIENT_ABORT)
            return
        new, self._size = bytes(_SEEN[self._size : size]), size
        try:
            found = self._reader.feed(new)
        except HelloError:
            self._go_on(None)
            return
        if found is not Need.MORE:
            self._go_on(found.server_name)
        elif size == 0 or events & FIN:
            self._go_on(None)

    def _go_on(self, name: str | None) -> None:
        """Become a session with the pool of a name."""
        frontend = self.frontend
        routes = frontend.routes
        pool = routes.pool(name) if routes is not None and name is not None else None
        self.traffic.poller.unregister(self.fd)
        self._leave()
        self._relay(pool or frontend.pool, frontend, self.fd, self.address)
        self.fd = -1

    def _leave(self) -> None:
        self.traffic.live.discard(self)
        self.traffic.every_tick.discard(self)


def _peek(descriptor: int) -> int:
    """Peek at the received bytes; return how many, 0 for a FIN and nothing before it, or minus the errno."""
    borrowed = _socket.socket(AF_INET, STREAM, 0, descriptor)
    try:
        return borrowed.recv_into(_SEEN, LIMIT, MSG_PEEK)
    except OSError as error:
        return -(error.errno or EAGAIN)
    finally:
        borrowed.detach()
