"""The HTTP server: gevent's, with limits, so that no client costs more than its own connection.

Everything that a client may delay has a deadline: the handshake of TLS, the head of a request, the reading of
the answer. The size of heads is limited, and a body is read only if a page needs it. A client that sends
requests without pause gets its turns like all others (`net.loop.turns`). The number of connections is
limited: a new one replaces one that has not sent the password, from the network that has most of those; only
if all have sent it, new ones wait in the backlog.
"""

import contextlib
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, TypeVar

import gevent
from gevent import Greenlet, socket, ssl
from gevent.pool import Pool
from gevent.pywsgi import WSGIHandler, WSGIServer

from appliance.net.control.connection_slots import ConnectionSlots
from appliance.net.loop.turns import Turns
from appliance.stats.access import WebAccess
from appliance.wire import literal

MOST_CLIENTS: Final = 64
"""Concurrent connections, for each address that is listened on."""

HEAD_SECONDS: Final = 10.0
"""Seconds for a client to send the head of a request; an idle connection is closed after them."""

ANSWER_SECONDS: Final = 30.0
"""Seconds for an answer to be made and read."""

_HEAD_BYTES: Final = 16384
_NETWORK_6: Final = 8  # bytes of an IPv6 address that all of a client's share (RFC 4291 section 2.5.1)


_Value = TypeVar("_Value")

Application = Callable[..., Iterable[bytes]]


class _HeadTooLongError(ValueError):
    """A head, or a body that no page reads, is longer than any real client's.

    After a long head pywsgi answers 400; after a long body the connection is closed.
    """


_ENDINGS: Final = (gevent.Timeout, gevent.GreenletExit, ssl.SSLError, ConnectionError, _HeadTooLongError)


class _BoundedReader:
    """The file from which a handler reads: each request may use a limited number of bytes."""

    def __init__(self, file: "socket.SocketIO") -> None:
        self._file = file
        self._left = _HEAD_BYTES

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def renew(self, size: int = _HEAD_BYTES) -> None:
        """Allow this many bytes to be read from here on."""
        self._left = size

    def readline(self, size: int = -1) -> bytes:
        line: bytes = self._file.readline(self._left + 1 if size < 0 else min(size, self._left + 1))
        return self._spent(line)

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._file.read(self._left + 1 if size < 0 else min(size, self._left + 1))
        return self._spent(data)

    def close(self) -> None:
        self._file.close()

    def _spent(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left < 0:
            raise _HeadTooLongError(f"more than {_HEAD_BYTES} bytes")
        return data


class _Handler(WSGIHandler):  # type: ignore[misc]  # gevent has no types
    """One connection, with deadlines."""

    def __init__(self, connection: socket.socket, address: object, server: WSGIServer) -> None:
        super().__init__(connection, address, server, rfile=_BoundedReader(connection.makefile("rb", -1)))

    def handle(self) -> None:
        """Serve the connection; a client that leaves before it gets a refusal is not reported."""
        with contextlib.suppress(OSError):
            super().handle()

    def read_requestline(self) -> str:
        """Return a request's first line, or nothing, which closes: after a silence, or without access."""
        self.server.turns.give()
        self.rfile.renew()
        line: str = _within(HEAD_SECONDS, super().read_requestline, "")
        return line if self.server.admits(self.socket, self.client_address) else ""

    def read_request(self, raw_requestline: str) -> bool:
        """Read the headers; a client that is too slow gets the answer for a bad request.

        Every failure here is the client's fault, and raises ValueError: for other errors pywsgi prints a
        traceback.
        """
        try:
            good: bool = _within(
                HEAD_SECONDS, lambda: super(_Handler, self).read_request(raw_requestline), late=False
            )
        except ValueError:
            raise
        except Exception as error:
            raise ValueError(f"the head cannot be read: {type(error).__name__}") from error
        self.rfile.renew()
        return good

    def handle_one_response(self) -> None:
        """Answer; a client that does not read its answer in time loses its connection."""
        self.server.asked(self.headers.get("Authorization", ""))
        _within(ANSWER_SECONDS, super().handle_one_response, None)

    def handle_error(self, kind: type[BaseException], error: BaseException, trace: TracebackType) -> None:
        """Close after a deadline, a long body, or if the client is gone or must go; answer 500 for a bug."""
        if issubclass(kind, _ENDINGS):
            self.close_connection = True
            return
        super().handle_error(kind, error, trace)

    def log_request(self) -> None:
        """Log nothing: limits stop clients with too many requests, not log lines."""


class WebServer(WSGIServer):  # type: ignore[misc]  # gevent has no types
    """Serves one listening socket, which it owns from now on."""

    def __init__(
        self,
        listener: socket.socket,
        application: Application,
        access: Callable[[], WebAccess],
        errors: object,
    ) -> None:
        self.turns = Turns()
        self._access = access
        self._places: ConnectionSlots[Greenlet] = ConnectionSlots()
        super().__init__(
            listener,
            application,
            spawn=Pool(MOST_CLIENTS),
            handler_class=_Handler,
            log=None,
            error_log=errors,
            environ={"SERVER_NAME": "stats"},  # else it asks the resolver at its start
        )

    def handle(self, connection: socket.socket, address: tuple[str, int]) -> None:
        """Serve one connection from the first byte on, TLS included."""
        access = self._access()
        if not access.allows(literal.packed_peer(address[0])):
            connection.close()
            return
        self._enter(literal.packed_peer(address[0]))
        try:
            self.turns.give()
            if access.context is None:
                super().handle(connection, address)
            elif (secured := _secured(connection, access.context)) is not None:
                super().handle(secured, address)
        finally:
            self._places.leave(gevent.getcurrent())

    def asked(self, authorization: str) -> None:
        """Note a whole request: clients that have sent the password keep their place, others may not."""
        access, serving = self._access(), gevent.getcurrent()
        if access.credentials is not None and access.admits(authorization):
            self._places.work(serving)
        else:
            self._places.rest(serving)

    def _enter(self, peer: bytes) -> None:
        """Take a place, and keep one free for the next connection: if this was the last, another must go."""
        if len(self._places) >= MOST_CLIENTS - 1 and (leaver := self._places.give_way()) is not None:
            leaver.kill(block=False)
        self._places.enter(gevent.getcurrent(), peer[:_NETWORK_6])

    def admits(self, connection: socket.socket, address: tuple[str, int]) -> bool:
        """Return whether an open connection may send its request: a reload may have changed access or TLS.

        A new certificate counts: a client that has verified the former one connects again.
        """
        access = self._access()
        context = connection.context if isinstance(connection, ssl.SSLSocket) else None
        return context is access.context and access.allows(literal.packed_peer(address[0]))


def _secured(connection: socket.socket, context: ssl.SSLContext) -> socket.socket | None:
    """Return the connection after its handshake, None if the client is too slow or cannot complete it.

    Whatever ends the handshake closes the connection: a deadline and an eviction are no OSError, for which
    alone `wrap_socket` closes what it has made.
    """
    with contextlib.suppress(OSError), contextlib.ExitStack() as unfinished:
        unfinished.callback(connection.close)  # nothing, once the descriptor is the other socket's
        secured = unfinished.enter_context(
            context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        )
        if _within(HEAD_SECONDS, lambda: secured.do_handshake() is None, late=False):
            unfinished.pop_all()
            return secured
    return None


def _within(seconds: float, action: Callable[[], _Value], late: _Value) -> _Value:
    """Return the result of an action, or `late` if it takes longer and was interrupted."""
    timer = gevent.Timeout(seconds)
    timer.start()
    try:
        return action()
    except gevent.Timeout as expired:
        if expired is not timer:
            raise
        return late
    finally:
        timer.close()
