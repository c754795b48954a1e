"""The HTTP server: gevent's, with limits, so that no client costs more than its own connection.

Everything that a client may be slow about has a deadline: the handshake of TLS, the head of a request, the
reading of the answer. There is a size of heads, and no body that is read unless a page wants it. Whoever asks
without end has its turns as all others have (`net.loop.turns`). There is a number of connections: the next
one gets the place of one that has not shown the password, of the network that has most of those; only where
all have shown it the next ones wait in the backlog.
"""

import contextlib
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, TypeVar

import gevent
from gevent import Greenlet, socket, ssl
from gevent.pool import Pool
from gevent.pywsgi import WSGIHandler, WSGIServer

from appliance.net.control.places import Places
from appliance.net.loop.turns import Turns
from appliance.stats.access import WebAccess
from appliance.wire import literal

MOST_CLIENTS: Final = 64
"""Connections at a time, for each address that is listened on."""

HEAD_SECONDS: Final = 10.0
"""Seconds that a client may take for the head of a request; an idle connection is closed after them."""

ANSWER_SECONDS: Final = 30.0
"""Seconds for an answer to be made and read."""

_HEAD_BYTES: Final = 16384
_NETWORK_6: Final = 8  # bytes of an IPv6 address that one client has for itself (RFC 4291 section 2.5.1)


_Value = TypeVar("_Value")

Application = Callable[..., Iterable[bytes]]


class _HeadTooLongError(ValueError):
    """A head, or a body that nobody wanted, is longer than any client of ours has it.

    For a head pywsgi answers 400; behind a body the connection is closed.
    """


_ENDINGS: Final = (gevent.Timeout, gevent.GreenletExit, ssl.SSLError, ConnectionError, _HeadTooLongError)


class _BoundedReader:
    """What a handler reads from: as a file, of which a request may use so many bytes."""

    def __init__(self, file: "socket.SocketIO") -> None:
        self._file = file
        self._left = _HEAD_BYTES

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def renew(self, size: int = _HEAD_BYTES) -> None:
        """Let so many bytes be read from here on."""
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
        """Serve the connection; who leaves before a refusal reaches it is no news."""
        with contextlib.suppress(OSError):
            super().handle()

    def read_requestline(self) -> str:
        """Return the first line of a request, nothing after so much silence, or for who may not ask any more.

        Nothing closes the connection.
        """
        self.server.turns.give()
        self.rfile.renew()
        line: str = _within(HEAD_SECONDS, super().read_requestline, "")
        return line if self.server.admits(self.socket, self.client_address) else ""

    def read_request(self, raw_requestline: str) -> bool:
        """Read the headers; too slow a client is told that its request is bad.

        Whatever pywsgi stumbles over is the client's doing: of any other error than ValueError it prints a
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
        """Close after a deadline, a long body, or when the client has gone, or has to; a bug: answer 500."""
        if issubclass(kind, _ENDINGS):
            self.close_connection = True
            return
        super().handle_error(kind, error, trace)

    def log_request(self) -> None:
        """Log nothing: who asks too much is kept out by limits, not by lines."""


class WebServer(WSGIServer):  # type: ignore[misc]  # gevent has no types
    """Serves one listening socket, which is its own from now on."""

    def __init__(
        self,
        listener: socket.socket,
        application: Application,
        access: Callable[[], WebAccess],
        errors: object,
    ) -> None:
        self.turns = Turns()
        self._access = access
        self._places: Places[Greenlet] = Places()
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
        """Serve one connection, from the first byte on: TLS too."""
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
        """Note a whole request: who has shown the password keeps the place, others may have to go later."""
        access, serving = self._access(), gevent.getcurrent()
        if access.credentials is not None and access.admits(authorization):
            self._places.work(serving)
        else:
            self._places.rest(serving)

    def _enter(self, peer: bytes) -> None:
        """Take a place, and leave one for the next who comes: another one has to go where it is the last."""
        if len(self._places) >= MOST_CLIENTS - 1 and (leaver := self._places.give_way()) is not None:
            leaver.kill(block=False)
        self._places.enter(gevent.getcurrent(), peer[:_NETWORK_6])

    def admits(self, connection: socket.socket, address: tuple[str, int]) -> bool:
        """Say whether an open connection may ask what it asks: a reload may have changed who may, and how.

        A new certificate counts: who has checked the former one connects again.
        """
        access = self._access()
        context = connection.context if isinstance(connection, ssl.SSLSocket) else None
        return context is access.context and access.allows(literal.packed_peer(address[0]))


def _secured(connection: socket.socket, context: ssl.SSLContext) -> socket.socket | None:
    """Return the connection after its handshake, None where the client cannot make one, or is too slow."""
    try:
        return _within(HEAD_SECONDS, lambda: context.wrap_socket(connection, server_side=True), None)
    except OSError:
        connection.close()
        return None


def _within(seconds: float, action: Callable[[], _Value], late: _Value) -> _Value:
    """Return what an action returns, or `late` where it takes longer; then it was interrupted."""
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
