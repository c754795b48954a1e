"""Delivers one message to a target: by a command, a webhook, or syslog.

Every wait is gevent's and has a deadline, and the length of an answer is limited: a webhook that sends
for ever delays nothing else. Errors never contain a URL or a token.
"""

import contextlib
import http.client
import socket as sockets
import ssl
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

import gevent
import msgspec
from gevent import socket

from appliance.core.events.alerts import alerts, summary
from appliance.core.events.notify_queue import Batch
from appliance.model.config.values.notify_addresses import webhook_url
from appliance.model.operator_events import EventSeverity, OperatorEvent
from appliance.model.snapshot.snapshot import Form, NotifyTarget
from appliance.net.probing.answer import status_line
from appliance.net.probing.peer import FloodError, Plain, Stream, Tls
from appliance.net.scripts.account import UnknownUserError, account
from appliance.net.scripts.command import Command, Ending
from appliance.reload.notifying.secret_files import SecretFiles, SecretUnusable
from appliance.wire import syslog
from appliance.wire.http.http_response import ResponseError

_GOODBYE: Final = 2.0  # seconds for the other side to read all, and to send its close_notify


def authorities(ca: str | None, files: SecretFiles) -> ssl.SSLContext:
    """Return the context that verifies a server's certificate and name; raises SecretUnusable, OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca is None:
        context.load_default_certs()
        return context
    text = files.certificates(ca)
    try:
        context.load_verify_locations(cadata=text)
    except ssl.SSLError:
        raise SecretUnusable(f"{ca}: holds no certificate in PEM") from None
    return context


@contextlib.contextmanager
def connected(place: tuple[str, int]) -> Iterator[socket.socket]:
    """Yield a connection that does not block, and close it in any case; raises OSError, ValueError."""
    with contextlib.closing(socket.create_connection(place)) as connection:
        connection.settimeout(0.0)
        yield connection


def stream(connection: socket.socket, server: str, context: ssl.SSLContext | None) -> Stream:
    """Return the stream over a connection, with TLS if there is a context; raises OSError, FloodError."""
    return Plain(connection) if context is None else _secured(connection, server, context)


@contextlib.contextmanager
def secured(connection: socket.socket, server: str, context: ssl.SSLContext) -> Iterator[Stream]:
    """Yield the TLS stream over a connection, and have both sides close it; raises OSError, FloodError.

    RFC 5425 section 4.4: a sender sends close_notify before it closes. The receiver's answer is awaited: with
    its bytes unread, such as session tickets, the kernel would reset the connection, and sent data might be
    lost.

    Certificates are always verified, against the machine's authorities or those of a file.
    """
    made = _secured(connection, server, context)
    yield made
    # It was sent; the other side may be gone without an answer.
    with contextlib.suppress(OSError, FloodError), gevent.Timeout(_GOODBYE, TimeoutError):
        made.finish_both()


def _secured(connection: socket.socket, server: str, context: ssl.SSLContext) -> Tls:
    made = Tls(Plain(connection), context, name=server)
    made.handshake()
    return made


def send(address: str, messages: Sequence[bytes], *, ca: str | None, files: SecretFiles) -> None:
    """Send all messages; `address` and `ca` are as in NotifyTarget. The caller has a deadline.

    Raises OSError, FloodError, SecretUnusable, ValueError: a name that no resolver takes.
    """
    if address.startswith("/"):
        _to_socket(address, messages)
        return
    parts = urlsplit(address)
    place = parts.hostname or "", parts.port or 0
    framed = b"".join(map(syslog.framed, messages))
    match parts.scheme:
        case "tcp":
            with connected(place) as connection:
                stream(connection, place[0], None).send(framed)
        case "tls":
            context = authorities(ca, files)
            with connected(place) as connection, secured(connection, place[0], context) as made:
                made.send(framed)
        case _:
            _as_datagrams(place, messages)


def _to_socket(path: str, messages: Sequence[bytes]) -> None:
    with contextlib.closing(socket.socket(sockets.AF_UNIX, sockets.SOCK_DGRAM)) as local:
        local.connect(path)
        for each in messages:
            local.send(each)


def _as_datagrams(place: tuple[str, int], messages: Sequence[bytes]) -> None:
    family, _, _, _, found = socket.getaddrinfo(*place, type=sockets.SOCK_DGRAM)[0]
    with contextlib.closing(socket.socket(family, sockets.SOCK_DGRAM)) as datagrams:
        datagrams.connect(found)
        for each in messages:
            datagrams.send(each)


_SEVERITIES: Final[Mapping[EventSeverity, int]] = {
    EventSeverity.CRITICAL: 2,
    EventSeverity.WARNING: 4,
    EventSeverity.INFO: 6,
}
_PORTS: Final = {"http": 80, "https": 443}
_OK: Final = range(200, 300)


class DeliveryFailed(Exception):  # noqa: N818  # reads as what happened in a log line
    """The message was not delivered; gives the reason, without a URL or a token."""


def deliver(target: NotifyTarget, batch: Batch, host: str, secrets: SecretFiles) -> None:
    """Notify one target, from the machine named `host`; raises DeliveryFailed."""
    if target.command:
        _run(target, batch)
        return
    late = gevent.Timeout(target.timeout)
    late.start()
    try:
        if target.syslog is not None:
            send(target.syslog, _messages(batch, host), ca=target.ca, files=secrets)
        else:
            _post(target, batch, host, secrets)
    except gevent.Timeout as timeout:
        if timeout is not late:
            raise
        raise DeliveryFailed(f"no answer within {target.timeout:g} s") from None
    except SecretUnusable as error:
        raise DeliveryFailed(str(error)) from None
    except FloodError:
        raise DeliveryFailed("more was answered than is read of an answer") from None
    except ResponseError:
        raise DeliveryFailed("what was answered is no HTTP") from None
    except (OSError, ValueError, http.client.HTTPException) as error:  # ValueError: no resolvable name
        raise DeliveryFailed(_reason(error)) from None
    finally:
        late.close()


def _reason(error: Exception) -> str:
    said = error.strerror if isinstance(error, OSError) else None
    return said or type(error).__name__


def _run(target: NotifyTarget, batch: Batch) -> None:
    """Run the command for each event, one after another; a failed command is not run again."""
    rows = [(each.kind.value, each.kind.severity.value, each.subject, summary(each)) for each in batch.events]
    if batch.left_out:
        rows.insert(0, ("left-out", EventSeverity.WARNING.value, "", _left_out(batch)))
    endings: list[Ending] = []
    for words in rows:
        try:
            endings.append(_ending((*target.command, *words), target.timeout))
        except (OSError, UnknownUserError) as error:
            if not endings:
                raise DeliveryFailed(_reason(error)) from None
            endings.append(Ending(passed=False, detail=_reason(error)))
    if failures := [each.detail for each in endings if not each.passed]:
        raise CommandFailed(failures[-1])


def _ending(words: tuple[str, ...], timeout: float) -> Ending:
    return Command(words, account(None, timeout=timeout), sweep=True).wait(timeout)


class CommandFailed(DeliveryFailed):
    """The command ran and failed: it is not run again for the same events."""


def _left_out(batch: Batch) -> str:
    return f"{batch.left_out} events before this one were left out; see: appliance events"


def _post(target: NotifyTarget, batch: Batch, host: str, secrets: SecretFiles) -> None:
    parts = urlsplit(_url(target, secrets))
    headers = {"Content-Type": "application/json", "User-Agent": "appliance", "Connection": "close"}
    if target.token_file is not None:
        headers["Authorization"] = f"Bearer {secrets.read(target.token_file)}"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    server, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    context = authorities(target.ca, secrets) if parts.scheme == "https" else None
    with connected((server, port)) as connection:
        made = stream(connection, server, context)
        request = http.client.HTTPConnection(server, port)
        request.sock = _Sending(made)
        request.request("POST", path, body=_body(target, batch, host), headers=headers)
        answer, _ = status_line(made)
    if answer.status not in _OK:
        raise DeliveryFailed(f"the webhook answered {answer.status}")


class _Sending:
    """The object that http.client writes a request to, but reads no answer from: it reads without a limit."""

    def __init__(self, to: Stream) -> None:
        self._to = to

    def sendall(self, data: bytes) -> None:
        """Send all of the data."""
        self._to.send(data)


def _url(target: NotifyTarget, secrets: SecretFiles) -> str:
    if target.webhook is not None:
        return target.webhook
    try:
        return webhook_url(secrets.read(target.webhook_file or ""))
    except ValueError as error:
        raise DeliveryFailed(f"{target.webhook_file}: {error}") from None


def _body(target: NotifyTarget, batch: Batch, host: str) -> bytes:
    if target.form is Form.ALERTMANAGER:
        return msgspec.json.encode(list(alerts(batch.events, host)))
    events = [{**msgspec.to_builtins(each), **_beside(each)} for each in batch.events]
    return msgspec.json.encode({"host": host, "left_out": batch.left_out, "events": events})


def _beside(event: OperatorEvent) -> dict[str, str]:
    return {"severity": event.kind.severity.value, "summary": summary(event)}


def _messages(batch: Batch, host: str) -> list[bytes]:
    messages = [_message(each, host) for each in batch.events]
    return [_summary_message(batch, host), *messages] if batch.left_out else messages


def _message(event: OperatorEvent, host: str) -> bytes:
    values = {"subject": event.subject, "from": event.before, "to": event.after, "cause": event.cause}
    return syslog.encode(
        severity=_SEVERITIES[event.kind.severity],
        when=event.when,
        host=host,
        program=event.program,
        kind=event.kind.value,
        values=values,
        text=summary(event),
    )


def _summary_message(batch: Batch, host: str) -> bytes:
    return syslog.encode(
        severity=_SEVERITIES[EventSeverity.WARNING],
        when=batch.events[0].when,
        host=host,
        program="reload",
        kind="left-out",
        values={"count": str(batch.left_out)},
        text=_left_out(batch),
    )
