"""One health check of one server: connect, maybe a TLS handshake, maybe one HTTP question.

Source of the words for outcomes: HAProxy's management.txt, `check_status`. A probe blocks its greenlet only,
and never longer than the check's timeout, whatever the server does. It works on non-blocking sockets of the
standard library and watchers of gevent's hub, which costs half of what gevent's own sockets cost.

Connections are closed by RST once the answer is known, as HAProxy does, so that checks leave no TIME_WAIT
behind. Not where the server may still have to read what was sent last: there a RST would overtake it, and
the server would log a broken handshake at every check.
"""

import errno
import os
import socket
import ssl
import struct
import time
from enum import Enum
from typing import Final

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.check_results import CheckResult
from appliance.model.snapshot.pools import Check, CheckType
from appliance.net.probing.deadline import Deadline, OutOfTime
from appliance.net.probing.peer import WRITE, FloodError, Plain, Stream, Tls, wait
from appliance.net.probing.tls_contexts import AuthorityError, TlsContexts
from appliance.wire import proxy_protocol
from appliance.wire.http import http_response
from appliance.wire.http.http_response import ResponseError, StatusLine

_RESET: Final = struct.pack("ii", 1, 0)
_KIND: Final = socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
_TLS: Final = frozenset({CheckType.TLS, CheckType.HTTPS})
_SHORTAGES: Final = frozenset(
    {errno.EADDRNOTAVAIL, errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
)
"""Refusals of this machine's own kernel, no free port say (HAProxy: SOCKERR, which is no verdict either)."""


class ProbeImpossible(Exception):  # noqa: N818  # a state of this machine, not a mistake
    """This machine could not even try, out of descriptors or ports say: nothing is known of the server."""


class _CheckPhase(Enum):
    """How far a check has come, with the results of failing and of running out of time there."""

    CONNECT = (CheckResult.L4CON, CheckResult.L4TOUT)
    HANDSHAKE = (CheckResult.L6RSP, CheckResult.L6TOUT)
    ANSWER = (CheckResult.L7RSP, CheckResult.L7TOUT)


class Probe:
    """The check of one server at one literal address; `run` it as often as wanted, one at a time."""

    def __init__(self, check: Check, host: str, port: int, contexts: TlsContexts) -> None:
        self._check = check
        self._contexts = contexts
        self._family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._address = (host, port)
        self._preface = proxy_protocol.local(check.send_proxy)
        self._request = request(check)
        self._phase = _CheckPhase.CONNECT

    def run(self, *, until: float | None = None) -> CheckOutcome:
        """Return how the check ended; raises ProbeImpossible.

        All of it takes the check's timeout at the most; `until` (monotonic) is where less of that is left.
        """
        started = time.monotonic()
        whole = self._check.timeout if until is None else min(self._check.timeout, until - started)
        self._phase = _CheckPhase.CONNECT
        with self._socket() as connection, self._deadline(whole) as deadline:
            try:
                result, status, detail = self._converse(connection, deadline)
            except OutOfTime:
                result, status, detail = self._phase.value[1], 0, self._out_of_time(whole)
            except (OSError, ResponseError, FloodError) as error:
                result, status, detail = self._phase.value[0], 0, _reason(error)
        return CheckOutcome(result=result, status=status, duration=time.monotonic() - started, detail=detail)

    def _deadline(self, whole: float) -> Deadline:
        return Deadline(connect=self._check.timeout_connect, whole=whole)

    def _out_of_time(self, whole: float) -> str:
        """Return the time that was not enough, rounded: what is left of it differs by microseconds."""
        connecting = self._phase is _CheckPhase.CONNECT
        seconds = min(self._check.timeout_connect, whole) if connecting else whole
        return f"no answer within {round(seconds, 2):g} s"

    def _socket(self) -> socket.socket:
        try:
            return socket.socket(self._family, _KIND)
        except OSError as error:
            raise ProbeImpossible(f"no socket: {error.strerror}") from error

    def _converse(self, connection: socket.socket, deadline: Deadline) -> tuple[CheckResult, int, str]:
        kind = self._check.type
        _connect(connection, self._address)
        deadline.connected()
        plain = Plain(connection)
        if self._preface:
            plain.send(self._preface)
        if kind is CheckType.TCP:
            if not self._preface:
                _reset_on_close(connection)
            return CheckResult.L4OK, 0, ""
        stream: Plain | Tls = self._secure(plain) if kind in _TLS else plain
        if isinstance(stream, Tls) and kind is CheckType.TLS:
            stream.finish()
            return CheckResult.L6OK, 0, ""
        self._phase = _CheckPhase.ANSWER
        stream.send(self._request)
        answer = _status(stream)
        _reset_on_close(connection)
        passed = any(low <= answer.status <= high for low, high in self._check.expect)
        return CheckResult.L7OK if passed else CheckResult.L7STS, answer.status, answer.reason

    def _secure(self, plain: Plain) -> Tls:
        self._phase = _CheckPhase.HANDSHAKE
        check = self._check
        try:
            context = self._contexts.context(verify=check.verify, named=check.sni is not None)
        except AuthorityError as error:
            raise ProbeImpossible(str(error)) from error
        stream = Tls(plain, context, name=check.sni)
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


def _connect(connection: socket.socket, address: tuple[str, int]) -> None:
    problem = connection.connect_ex(address)
    # A server on this machine has answered by now, and asking again is cheaper than the poller.
    if problem == errno.EINPROGRESS:
        problem = connection.connect_ex(address)
    if problem == errno.EALREADY:
        wait(connection, WRITE)
        problem = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if problem in _SHORTAGES:
        raise ProbeImpossible(f"no connection: {os.strerror(problem)}")
    if problem not in (0, errno.EISCONN):
        raise OSError(problem, os.strerror(problem))


def _status(stream: Stream) -> StatusLine:
    received = b""
    while True:
        data = stream.receive()
        if not data:
            raise ResponseError(f"closed after {len(received)} bytes, before a status line")
        received += data
        line = http_response.decode(received)
        if isinstance(line, StatusLine):
            return line


def _reset_on_close(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def _reason(error: OSError | ResponseError | FloodError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return str(error)
