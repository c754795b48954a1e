"""One health check of one server: connect, maybe a TLS handshake, maybe one HTTP question.

Source of the words for outcomes: HAProxy's management.txt, `check_status`. A probe blocks its greenlet only,
and never longer than the check's timeout, whatever the server does. It works on non-blocking sockets of the
standard library and watchers of gevent's hub, which costs half of what gevent's own sockets cost.

Connections are closed by RST once the answer is known, as HAProxy does, so that checks leave no TIME_WAIT
behind. Not where the server may still have to read what was sent last: there a RST would overtake it, and
the server would log a broken handshake at every check.
"""

import contextlib
import errno
import os
import socket
import ssl
import struct
import time
from enum import Enum
from typing import Final, Protocol

from gevent import Greenlet, getcurrent
from gevent.hub import get_hub

from appliance.core.health import Outcome
from appliance.model.snapshot import Check, CheckType
from appliance.net.probing.tls_contexts import AuthorityError, TlsContexts
from appliance.wire import http_response, proxy_protocol
from appliance.wire.health_board import CheckResult
from appliance.wire.http_response import ResponseError, StatusLine

_READ: Final = 1
_WRITE: Final = 2
_CHUNK: Final = 4096
_RESET: Final = struct.pack("ii", 1, 0)
_KIND: Final = socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
_STALLED: Final = 0.1
"""Seconds by which a timer is late only when the whole process was."""

_TLS: Final = frozenset({CheckType.TLS, CheckType.HTTPS})
_SHORTAGES: Final = frozenset(
    {errno.EADDRNOTAVAIL, errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
)
"""Refusals of this machine's own kernel, no free port say (HAProxy: SOCKERR, which is no verdict either)."""


class ProbeImpossible(Exception):  # noqa: N818  # a state of this machine, not a mistake
    """This machine could not even try, out of descriptors or ports say: nothing is known of the server."""


class _OutOfTime(BaseException):
    """Thrown into the greenlet of a check whose time is up; no `except Exception` on the way may keep it."""


class _Phase(Enum):
    """How far a check has come, with the results of failing and of running out of time there."""

    CONNECT = (CheckResult.L4CON, CheckResult.L4TOUT)
    HANDSHAKE = (CheckResult.L6RSP, CheckResult.L6TOUT)
    ANSWER = (CheckResult.L7RSP, CheckResult.L7TOUT)


class _Stream(Protocol):
    def send(self, data: bytes) -> None: ...
    def receive(self) -> bytes: ...


class Probe:
    """The check of one server at one literal address; `run` it as often as wanted, one at a time."""

    def __init__(self, check: Check, host: str, port: int, contexts: TlsContexts) -> None:
        self._check = check
        self._contexts = contexts
        self._family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._address = (host, port)
        self._preface = proxy_protocol.local(check.send_proxy)
        self._request = request(check)
        self._phase = _Phase.CONNECT
        # Only `again` gives a libev timer its whole time anew; `start` goes on with what was left of it.
        self._due = 0.0
        self._limit = get_hub().loop.timer(0, check.timeout)
        self._timeout = f"no answer within {check.timeout:g} s"

    def run(self) -> Outcome:
        """Return how the check ended; raises ProbeImpossible."""
        started = time.monotonic()
        self._phase = _Phase.CONNECT
        connection = self._socket()
        limit = self._limit
        self._due = started + self._check.timeout
        limit.again(self._expire, getcurrent(), update=True)
        try:
            result, status, detail = self._converse(connection)
        except _OutOfTime:
            result, status, detail = self._phase.value[1], 0, self._timeout
        except (OSError, ResponseError) as error:
            result, status, detail = self._phase.value[0], 0, _reason(error)
        finally:
            limit.stop()
            connection.close()
        return Outcome(result=result, status=status, duration=time.monotonic() - started, detail=detail)

    def _expire(self, checking: Greenlet) -> None:
        """End the check, unless it is this process that was not running when the time was up.

        The answer may have come meanwhile: a machine that was busy must not take servers down, so wait anew.
        """
        now = time.monotonic()
        if now - self._due > _STALLED:
            self._due = now + self._check.timeout
            self._limit.again(self._expire, checking, update=True)
            return
        checking.throw(_OutOfTime)

    def _socket(self) -> socket.socket:
        try:
            return socket.socket(self._family, _KIND)
        except OSError as error:
            raise ProbeImpossible(f"no socket: {error.strerror}") from error

    def _converse(self, connection: socket.socket) -> tuple[CheckResult, int, str]:
        kind = self._check.type
        _connect(connection, self._address)
        plain = _Plain(connection)
        if self._preface:
            plain.send(self._preface)
        if kind is CheckType.TCP:
            if not self._preface:
                _reset_on_close(connection)
            return CheckResult.L4OK, 0, ""
        stream: _Plain | _Tls = self._secure(plain) if kind in _TLS else plain
        if isinstance(stream, _Tls) and kind is CheckType.TLS:
            stream.finish()
            return CheckResult.L6OK, 0, ""
        self._phase = _Phase.ANSWER
        stream.send(self._request)
        answer = _status(stream)
        _reset_on_close(connection)
        passed = any(low <= answer.status <= high for low, high in self._check.expect)
        return CheckResult.L7OK if passed else CheckResult.L7STS, answer.status, answer.reason

    def _secure(self, plain: "_Plain") -> "_Tls":
        self._phase = _Phase.HANDSHAKE
        check = self._check
        try:
            context = self._contexts.context(verify=check.verify, named=check.sni is not None)
        except AuthorityError as error:
            raise ProbeImpossible(str(error)) from error
        stream = _Tls(plain, context, name=check.sni)
        stream.handshake()
        return stream


def request(check: Check) -> bytes:
    """Return the HTTP question of a check.

    Without `host` it is what OpenShift's HAProxy sends (`httpchk GET /readyz HTTP/1.0`): the server ends
    the connection by itself and never chunks. A host is for servers that choose by name, and those speak 1.1
    (Envoy refuses 1.0).
    """
    if check.host is None:
        return f"{check.method} {check.path} HTTP/1.0\r\n\r\n".encode()
    return f"{check.method} {check.path} HTTP/1.1\r\nHost: {check.host}\r\nConnection: close\r\n\r\n".encode()


class _Plain:
    """A connected socket. Its waits are ended from outside, by the check's timeout."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, data: bytes) -> None:
        while data:
            try:
                data = data[self._connection.send(data) :]
            except BlockingIOError:
                _wait(self._connection, _WRITE)

    def receive(self) -> bytes:
        """Return some bytes, none at the end."""
        while True:
            try:
                return self._connection.recv(_CHUNK)
            except BlockingIOError:
                _wait(self._connection, _READ)


class _Tls:
    """TLS over a stream: the client's last handshake message travels with its first request.

    Sessions are not resumed: OpenSSL needs 0.35 ms less for it, but Python copies the session by writing and
    parsing it, twice for each connection, which takes 0.5 ms. So every check sees the certificate of today.
    """

    def __init__(self, plain: _Plain, context: ssl.SSLContext, *, name: str | None) -> None:
        self._plain = plain
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=name)

    def handshake(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._fill()
            except ssl.SSLError:
                self._flush()  # the alert tells the server's administrator what we did not like
                raise
            else:
                return

    def finish(self) -> None:
        """Say goodbye, with what is left of the handshake."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.unwrap()
        self._flush()

    def send(self, data: bytes) -> None:
        self._tls.write(data)
        self._flush()

    def receive(self) -> bytes:
        """Return some bytes, none at the end."""
        while True:
            try:
                return self._tls.read(_CHUNK)
            except ssl.SSLWantReadError:
                self._fill()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""

    def _flush(self) -> None:
        if self._out.pending:
            self._plain.send(self._out.read())

    def _fill(self) -> None:
        self._flush()
        data = self._plain.receive()
        if data:
            self._in.write(data)
        else:
            self._in.write_eof()


def _connect(connection: socket.socket, address: tuple[str, int]) -> None:
    problem = connection.connect_ex(address)
    # A server on this machine has answered by now, and asking again is cheaper than the poller.
    if problem == errno.EINPROGRESS:
        problem = connection.connect_ex(address)
    if problem == errno.EALREADY:
        _wait(connection, _WRITE)
        problem = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if problem in _SHORTAGES:
        raise ProbeImpossible(f"no connection: {os.strerror(problem)}")
    if problem not in (0, errno.EISCONN):
        raise OSError(problem, os.strerror(problem))


def _status(stream: _Stream) -> StatusLine:
    received = b""
    while True:
        data = stream.receive()
        if not data:
            raise ResponseError(f"closed after {len(received)} bytes, before a status line")
        received += data
        line = http_response.decode(received)
        if isinstance(line, StatusLine):
            return line


def _wait(connection: socket.socket, events: int) -> None:
    hub = get_hub()
    watcher = hub.loop.io(connection.fileno(), events)
    try:
        hub.wait(watcher)
    finally:
        watcher.close()


def _reset_on_close(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def _reason(error: OSError | ResponseError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return str(error)
