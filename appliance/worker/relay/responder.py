"""Endpoints that a worker answers itself: a 200 proves that the worker runs and accepts.

HAProxy's `monitor-uri`: GET or HEAD of one path is answered 200, or 503 while the pool that it needs has no
server up; the connection is closed after the answer. A client that is slow or sends garbage is closed at a
deadline.
"""

import os
from os import read, write
from typing import Final

from appliance.core.balancing.frontend_state import FrontendState
from appliance.core.balancing.pool_state import PoolState
from appliance.model.end_reasons import EndReason
from appliance.wire.http import http_request
from appliance.wire.http.http_request import Request, RequestError
from appliance.wire.need import Need
from appliance.worker.relay.all_sessions import Traffic
from appliance.worker.relay.poll_events import READABLE
from appliance.worker.relay.poller import Pollable
from appliance.worker.relay.raw_sockets import reset, shutdown_write

_CHUNK: Final = 4096
_PATIENCE: Final = 10.0
"""Longest time for the request to arrive, and then for the client to close, seconds."""


class Responder(Pollable):
    """A client's connection to an endpoint. `received` is None once it is answered, `fd` -1 after its end."""

    __slots__ = (
        "address",
        "deadline",
        "fd",
        "frontend",
        "number",
        "pool",
        "received",
        "started",
        "traffic",
    )

    def __init__(
        self,
        traffic: Traffic,
        frontend: FrontendState,
        pool: PoolState | None,
        fd: int,
        address: bytes,
    ) -> None:
        self.traffic = traffic
        self.frontend = frontend
        self.pool = pool
        self.fd = fd
        self.address = address
        self.received: bytes | None = b""
        self.started = traffic.now
        self.deadline = traffic.now + min(_PATIENCE, frontend.timeout_client)
        traffic.last_number += 1
        self.number = traffic.last_number
        self.turn = 0
        traffic.poller.register(fd, self, READABLE)
        traffic.live.add(self)
        traffic.every_tick.add(self)

    def on_events(self, events: int) -> None:
        """Read what has arrived, and answer once the request is complete."""
        del events
        try:
            self._read()
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this connection and no other
            self.traffic.fault(error)
            self.end(EndReason.INTERNAL)

    def expire(self, now: float) -> None:
        """End it if the client is too slow to send its request, or to close after the answer."""
        if now >= self.deadline:
            self.end(EndReason.CLIENT_TIMEOUT if self.received is not None else EndReason.RESPONDED)

    def end(self, reason: EndReason) -> None:
        """Close; harmless if it has ended already."""
        if self.fd < 0:
            return
        fd, self.fd = self.fd, -1
        self.traffic.poller.forget(fd)
        if reason is EndReason.RESPONDED:
            os.close(fd)
        else:
            reset(fd)
            self.frontend.failed += 1
        traffic = self.traffic
        self.frontend.current -= 1
        traffic.reasons[reason] += 1
        traffic.changed = True
        traffic.live.discard(self)
        traffic.every_tick.discard(self)
        if traffic.paused:
            traffic.make_room()

    def _read(self) -> None:
        try:
            data = read(self.fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.end(EndReason.CLIENT_ABORT if self.received is not None else EndReason.RESPONDED)
            return
        self.frontend.bytes_in += len(data)
        if self.received is None:
            return
        self.received += data
        self._answer_when_complete()

    def _answer_when_complete(self) -> None:
        try:
            request = http_request.decode(self.received or b"")
        except RequestError:
            self._answer(http_request.encode_response(400, "Bad Request", b"", head_only=False))
            return
        if request is Need.MORE:
            return
        self._answer(self._response(request))

    def _response(self, request: Request) -> bytes:
        head_only = request.method == "HEAD"
        if request.method not in {"GET", "HEAD"}:
            return http_request.encode_response(405, "Method Not Allowed", b"", head_only=False)
        if request.path != self.frontend.config.respond:
            body = _page("404 Not Found", "Nothing is here.")
            return http_request.encode_response(404, "Not Found", body, head_only=head_only)
        if self.pool is not None and not self.pool.has_up:
            body = _page("503 Service Unavailable", "No server is available.")
            return http_request.encode_response(503, "Service Unavailable", body, head_only=head_only)
        body = _page("200 OK", "Service ready.")
        return http_request.encode_response(200, "OK", body, head_only=head_only)

    def _answer(self, response: bytes) -> None:
        """Write the answer, which fits an empty socket buffer, and wait until the client closes.

        Closing at once with bytes of the client unread would send a RST, which may cost it the answer.
        """
        self.received = None
        self.deadline = self.traffic.now + 1.0
        try:
            write(self.fd, response)
        except OSError:
            self.end(EndReason.CLIENT_ABORT)
            return
        self.frontend.bytes_out += len(response)
        shutdown_write(self.fd)


def _page(title: str, text: str) -> bytes:
    return f"<html><body><h1>{title}</h1>\n{text}\n</body></html>\n".encode()
