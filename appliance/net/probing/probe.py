"""The health check of one server: connect, perhaps a TLS handshake, an HTTP request or a conversation.

The names of outcomes are those of HAProxy's management.txt, `check_status`. A probe blocks only its greenlet,
and never longer than the check's timeout, whatever the server does. It uses non-blocking sockets of the
standard library and watchers of gevent's hub, at half the cost of gevent's own sockets.

Connections are closed by RST once the answer is known, as HAProxy does (SO_LINGER with a time of zero,
socket(7)). The side that closes first by FIN keeps the pair of ports in TIME_WAIT for a minute: a thousand
servers checked each second would occupy all ports of this machine. RST is not used if the server may still
have to read the last bytes: on RST the server's kernel discards undelivered bytes, and the server would log a
broken handshake at every check.

An OpenShift API server should be checked by GET /readyz over HTTPS: this fails as soon as the server begins
to shut down, while the server still accepts connections for a minute or so. /healthz and a bare TCP connect
detect only the end of that time, when clients are already refused.
"""

import contextlib
import errno
import os
import socket
import ssl
import time
from enum import Enum
from typing import Final

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.check_results import CheckResult
from appliance.model.snapshot.pools import Check, CheckType
from appliance.net.probing.answer import Judgement
from appliance.net.probing.deadline import Deadline, OutOfTime
from appliance.net.probing.kept_connection import Connection, reset_on_close
from appliance.net.probing.peer import WRITE, FloodError, Plain, Stream, Tls, wait
from appliance.net.probing.tls_contexts import AuthorityError, TlsContexts
from appliance.wire import proxy_protocol
from appliance.wire.checks.conversation import Conversation, Missed, Passed, Receive, Send
from appliance.wire.http.http_response import ResponseError

_PASSED: Final[Judgement] = (CheckResult.L7OK, 0, "")


def talk(stream: Stream, conversation: Conversation) -> Judgement:
    """Return the outcome of the conversation; raises FloodError and OSError."""
    while True:
        match conversation.move():
            case Send(data):
                stream.send(data)
            case Receive():
                conversation.feed(_received(stream, conversation))
            case Passed():
                return _PASSED
            case Missed(reason):
                return CheckResult.L7RSP, 0, reason


def _received(stream: Stream, conversation: Conversation) -> bytes:
    """Return the next bytes; an error after an answer is its end, as in HAProxy: often it is a reset."""
    try:
        return stream.receive()
    except (OSError, FloodError):
        if conversation.heard:
            return b""
        raise


_KIND: Final = socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
_TLS: Final = frozenset({CheckType.TLS, CheckType.HTTPS})
_SHORTAGES: Final = frozenset(
    {errno.EADDRNOTAVAIL, errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
)
"""Refusals of this machine's own kernel: no free port, no memory, no descriptor (HAProxy's SOCKERR)."""


class ProbeImpossible(Exception):  # noqa: N818  # a state of this machine, not a mistake
    """This machine could not make the check, for lack of a port or memory: the server is not judged."""


class _CheckPhase(Enum):
    """The step of a check; its value is the results of a failure and of a time-out in it."""

    CONNECT = (CheckResult.L4CON, CheckResult.L4TOUT)
    HANDSHAKE = (CheckResult.L6RSP, CheckResult.L6TOUT)
    ANSWER = (CheckResult.L7RSP, CheckResult.L7TOUT)


class Probe:
    """Checks one server at a literal address, one at a time; `reuse` keeps a connection until `close`."""

    def __init__(self, check: Check, host: str, port: int, contexts: TlsContexts) -> None:
        self._check = check
        self._contexts = contexts
        self._family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._address = (host, port)
        self._preface = proxy_protocol.local(check.send_proxy)
        self._request = request(check, self._address)
        self._phase = _CheckPhase.CONNECT
        self._kept: Connection | None = None
        self._conversation: Conversation | None = None

    def run(self, *, until: float | None = None) -> CheckOutcome:
        """Make the check and return its outcome; raises ProbeImpossible.

        It takes at most the check's timeout; `until`, in monotonic seconds, may end it earlier.
        """
        started = time.monotonic()
        whole = self._check.timeout if until is None else min(self._check.timeout, until - started)
        kept, self._kept = self._kept, None
        reused = False
        with Deadline(connect=self._check.timeout_connect, whole=whole) as deadline:
            try:
                again = self._ask_again(kept, deadline) if kept else None
                reused = again is not None
                result, status, detail = again or self._ask_anew(deadline)
            except OutOfTime:
                result, status, detail = self._unanswered(whole)
            except (OSError, ResponseError, FloodError) as error:
                result, status, detail = self._phase.value[0], 0, _reason(error)
        duration = time.monotonic() - started
        return CheckOutcome(result=result, status=status, duration=duration, detail=detail, reused=reused)

    def close(self) -> None:
        """Close the kept connection, if there is one."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _unanswered(self, whole: float) -> Judgement:
        """Return the result of a time-out: an unexpected answer is an answer nevertheless."""
        conversation = self._conversation
        if conversation is not None and conversation.heard:
            return CheckResult.L7RSP, 0, f"{conversation.lacks} within {round(whole, 2):g} s"
        return self._phase.value[1], 0, self._out_of_time(whole)

    def _out_of_time(self, whole: float) -> str:
        """Return a text with the exceeded time, rounded: `until` is microseconds short of the timeout."""
        connecting = self._phase is _CheckPhase.CONNECT
        seconds = min(self._check.timeout_connect, whole) if connecting else whole
        return f"no answer within {round(seconds, 2):g} s"

    def _ask_again(self, kept: Connection, deadline: Deadline) -> Judgement | None:
        """Send the request on the kept connection; None if that does not show that the server is fit."""
        self._phase = _CheckPhase.ANSWER
        deadline.connected()
        with contextlib.ExitStack() as ending:
            ending.callback(kept.close)
            with contextlib.suppress(OSError, ResponseError, FloodError):
                if kept.fit(time.monotonic()):
                    judgement = kept.ask(self._request)
                    if judgement[0] is CheckResult.L7OK:
                        ending.pop_all()
                        self._kept = kept
                        return judgement
        deadline.connecting(self._check.timeout_connect)
        return None

    def _ask_anew(self, deadline: Deadline) -> Judgement:
        self._phase, self._conversation = _CheckPhase.CONNECT, None
        with contextlib.ExitStack() as ending:
            connection = ending.enter_context(self._socket())
            judgement, made = self._converse(connection, deadline)
            if self._check.reuse and made is not None and judgement[0] is CheckResult.L7OK:
                made.keep()
                ending.pop_all()
                self._kept = made
        return judgement

    def _socket(self) -> socket.socket:
        try:
            return socket.socket(self._family, _KIND)
        except OSError as error:
            raise ProbeImpossible(f"no socket: {error.strerror}") from error

    def _converse(self, connection: socket.socket, deadline: Deadline) -> tuple[Judgement, Connection | None]:
        """Connect and do the check of the type; also return the connection if it can be reused."""
        kind = self._check.type
        _connect(connection, self._address)
        deadline.connected()
        plain = Plain(connection)
        # The PROXY header comes before everything else, TLS included (proxy-protocol.txt section 2).
        if self._preface:
            plain.send(self._preface)
        if kind is CheckType.TCP and not self._check.steps:
            if not self._preface:  # a RST would overtake the header, and the server would log a broken one
                reset_on_close(connection)
            return (CheckResult.L4OK, 0, ""), None
        stream: Plain | Tls = self._secure(plain) if kind in _TLS else plain
        if isinstance(stream, Tls) and kind is CheckType.TLS and not self._check.steps:
            stream.finish()
            return (CheckResult.L6OK, 0, ""), None
        self._phase = _CheckPhase.ANSWER
        if self._check.steps:
            return self._talk(connection, stream), None
        made = Connection(connection, stream, self._check, made_at=time.monotonic())
        return made.ask(self._request), made

    def _talk(self, connection: socket.socket, stream: Plain | Tls) -> Judgement:
        self._conversation = conversation = Conversation(self._check.steps)
        judgement = talk(stream, conversation)
        if not conversation.ends_by_sending:  # a RST would overtake the last bytes, such as QUIT
            reset_on_close(connection)
        return judgement

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


def request(check: Check, address: tuple[str, int]) -> bytes:
    """Return the HTTP request of a check; `address` is its destination.

    Without `host` it is what OpenShift's HAProxy sends (`httpchk GET /readyz HTTP/1.0`): with HTTP/1.0 the
    server closes the connection itself and never sends chunks. A `host` is for servers that choose a site by
    its name; HTTP/1.1 is the first with the field Host (RFC 9112 s.3.2), and Envoy refuses 1.0. With `reuse`
    it is HTTP/1.1, which keeps connections (s.9.3) and requires Host.
    """
    if check.reuse:
        host = check.host or _host(*address)
        return f"{check.method} {check.path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    if check.host is None:
        return f"{check.method} {check.path} HTTP/1.0\r\n\r\n".encode()
    return f"{check.method} {check.path} HTTP/1.1\r\nHost: {check.host}\r\nConnection: close\r\n\r\n".encode()


def _host(address: str, port: int) -> str:
    """Return a literal address for the field Host; a scope means nothing to other machines (RFC 6874 s.1)."""
    return f"[{address.partition('%')[0]}]:{port}" if ":" in address else f"{address}:{port}"


def _connect(connection: socket.socket, address: tuple[str, int]) -> None:
    problem = connection.connect_ex(address)
    # A non-blocking connect(2) returns EINPROGRESS even if the server is on this machine and has already
    # accepted. A second call is cheaper than waiting for the poller: EISCONN if accepted, EALREADY if not
    # yet.
    if problem == errno.EINPROGRESS:
        problem = connection.connect_ex(address)
    if problem == errno.EALREADY:
        wait(connection, WRITE)
        problem = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if problem in _SHORTAGES:
        raise ProbeImpossible(f"no connection: {os.strerror(problem)}")
    if problem not in (0, errno.EISCONN):
        raise OSError(problem, os.strerror(problem))


def _reason(error: OSError | ResponseError | FloodError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    if isinstance(error, OSError):
        return (error.strerror or str(error)).lower()
    return str(error)
