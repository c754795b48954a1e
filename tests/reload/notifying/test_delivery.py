"""Messages arrive at a real HTTP server, a real rsyslogd and a real command, or the reason is told."""

import contextlib
import errno
import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import gevent
import pytest
import structlog
from structlog.testing import capture_logs
from support.network.ports import free_port
from support.notifying.alertmanager import alertmanager, firing
from support.notifying.rsyslog import Rsyslog, rsyslog
from support.notifying.webhook import Webhook
from support.peers.hostile import HELLO_REQUESTS
from support.processes.waiting import wait_until
from support.run import tools
from support.values.certificates import issue

from appliance.core.events.notify_queue import Batch
from appliance.model.operator_events import EventKind, EventSeverity, OperatorEvent
from appliance.model.snapshot.snapshot import Form, NotifyTarget
from appliance.net.files import state_files
from appliance.net.scripts.command import Command
from appliance.reload.notifying import delivery, notifier
from appliance.reload.notifying.delivery import CommandFailed, DeliveryFailed, deliver
from appliance.reload.notifying.notifier import Notifier
from appliance.reload.notifying.secret_files import SecretFiles

pytestmark = pytest.mark.sockets

EVENT = OperatorEvent(
    when=1.5,
    kind=EventKind.SERVER_DOWN,
    subject='masters/m"]\\0',
    program="health",
    before="up",
    after="down",
    cause="L7STS",
    detail="500",
    id="1-2",
)
BATCH = Batch(events=(EVENT,), left_out=0)


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    """Give a webhook."""
    made = Webhook()
    yield made
    made.close()


@pytest.fixture
def syslogd() -> Iterator[Rsyslog]:
    """Give a real rsyslogd, in a directory whose path fits into a socket's name."""
    with tempfile.TemporaryDirectory(prefix="lb-") as root, rsyslog(Path(root)) as running:
        yield running


def target(**given: object) -> NotifyTarget:
    """Return who is told, in one way."""
    return NotifyTarget(**{"name": "ops", "severity": EventSeverity.INFO, "timeout": 10.0, **given})


def test_a_webhook_gets_json(webhook: Webhook, tmp_path: Path):
    """The events, this host and the count of those left out; the URL and the token are in files."""
    (tmp_path / "url").write_text(f"{webhook.url}\n")
    (tmp_path / "token").write_text("s3cret\n")
    way = target(webhook_file=str(tmp_path / "url"), token_file=str(tmp_path / "token"))
    deliver(way, Batch(events=(EVENT,), left_out=7), "lb-1", SecretFiles())
    [(path, headers, body)] = webhook.posted
    assert path == "/hook?a=1"
    assert headers["Authorization"] == "Bearer s3cret"
    assert headers["Content-Type"] == "application/json"
    assert body["host"] == "lb-1"
    assert body["left_out"] == 7
    [told] = body["events"]
    assert (told["kind"], told["severity"], told["subject"]) == ("server-down", "warning", EVENT.subject)
    assert (told["before"], told["after"], told["cause"]) == ("up", "down", "L7STS")


def test_a_webhook_gets_alerts(webhook: Webhook):
    """Alertmanager's form is a list of alerts."""
    deliver(target(webhook=webhook.url, form=Form.ALERTMANAGER), BATCH, "lb-1", SecretFiles())
    [(_, _, [alert])] = webhook.posted
    assert alert["labels"]["alertname"] == "appliance-server-down"
    assert alert["startsAt"] == "1970-01-01T00:00:01.500+00:00"


def test_a_webhook_that_fails_is_told_without_its_secrets(
    webhook: Webhook, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    """A status, silence, no server, no file: each has its reason, and none repeats the URL or the token."""
    webhook.status = 503
    with pytest.raises(DeliveryFailed, match=r"^the webhook answered 503$"):
        deliver(target(webhook=webhook.url), BATCH, "lb-1", SecretFiles())
    webhook.stalls = True
    with pytest.raises(DeliveryFailed, match=r"^no answer within 0.3 s$"):
        deliver(target(webhook=webhook.url, timeout=0.3), BATCH, "lb-1", SecretFiles())
    with pytest.raises(DeliveryFailed, match=r"^Connection refused$"):
        deliver(target(webhook=f"http://127.0.0.1:{free_port()}/s3cret"), BATCH, "lb-1", SecretFiles())
    with pytest.raises(DeliveryFailed, match="missing"):
        deliver(target(webhook_file=str(tmp_path / "none")), BATCH, "lb-1", SecretFiles())
    (tmp_path / "url").write_text("https://user:s3cret@host/\n")
    with pytest.raises(DeliveryFailed) as refused:
        deliver(target(webhook_file=str(tmp_path / "url")), BATCH, "lb-1", SecretFiles())
    assert "s3cret" not in str(refused.value)
    with pytest.raises(DeliveryFailed, match="a directory"):
        deliver(target(webhook=webhook.url, token_file=str(tmp_path)), BATCH, "lb-1", SecretFiles())
    assert "Traceback" not in capfd.readouterr().err


def test_a_disk_that_hangs_stops_nobody_else(
    webhook: Webhook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """One thread waits for it, whatever the number of tries, and none of those that all others share."""
    hung, good = tmp_path / "hung", tmp_path / "good"
    for each in (hung, good):
        each.write_text("s3cret\n")
    goes_on, reads, read = threading.Event(), [], state_files.read

    def hang(path: Path, **limits: int) -> bytes | None:
        if path.parent == tmp_path:  # greenlets of earlier tests may read files of theirs
            reads.append(path)
        if path == hung:
            goes_on.wait()
        return read(path, **limits)

    monkeypatch.setattr(state_files, "read", hang)
    secrets = SecretFiles()
    for _ in range(12):
        with pytest.raises(DeliveryFailed, match="no answer"):
            deliver(target(webhook=webhook.url, token_file=str(hung), timeout=0.05), BATCH, "lb-1", secrets)
    assert reads == [hung]
    with gevent.Timeout(10):
        assert gevent.get_hub().threadpool.apply(lambda: 7) == 7
        deliver(target(webhook=webhook.url, token_file=str(good)), BATCH, "lb-1", secrets)
        goes_on.set()
        deliver(target(webhook=webhook.url, token_file=str(hung)), BATCH, "lb-1", secrets)
        deliver(target(webhook=webhook.url, token_file=str(hung)), BATCH, "lb-1", secrets)
    assert len(webhook.posted) == 3
    assert reads.count(hung) >= 2


@pytest.mark.programs
@pytest.mark.needs("rsyslogd")
@pytest.mark.parametrize("way", ["udp", "tcp", "socket"])
def test_rsyslogd_understands_every_part(syslogd: Rsyslog, way: str):
    """EventSeverity, host, program, kind and structured data are what was said, over each transport."""
    address = str(syslogd.socket) if way == "socket" else f"{way}://127.0.0.1:{syslogd.port}"
    deliver(target(syslog=address), Batch(events=(EVENT,), left_out=3), "lb-1", SecretFiles())
    told = syslogd.wait_for("server-down")
    assert (told["version"], told["severity"], told["facility"]) == ("1", "warning", "daemon")
    assert (told["host"], told["program"], told["kind"]) == ("lb-1", "appliance-health", "server-down")
    assert told["data"] == (r'[event@32473 subject="masters/m\"\]\\0" from="up" to="down" cause="L7STS"]')
    assert syslogd.wait_for("3 events")["kind"] == "left-out"


@pytest.mark.programs
@pytest.mark.needs("rsyslogd", tools.RSYSLOG_TLS)
def test_rsyslogd_understands_tls(tmp_path: Path):
    """RFC 5425, to a server whose certificate an authority of the file has signed, for the name asked for."""
    files = issue(tmp_path, "127.0.0.1", "localhost")
    with (
        tempfile.TemporaryDirectory(prefix="lb-") as root,
        rsyslog(Path(root), certificates=files) as running,
    ):
        way = target(syslog=f"tls://127.0.0.1:{running.tls_port}", ca=str(files.authority))
        many = tuple(replace(EVENT, subject=f"masters/m{number}") for number in range(200))
        for _ in range(5):
            deliver(way, Batch(events=many, left_out=3), "lb-1", SecretFiles())
        assert running.wait_for("server-down")["host"] == "lb-1"
        wait_until(lambda: len(running.messages()) == 1005, what="every message is there")
        _refuses_bad_authorities(way, tmp_path)
        assert len(running.messages()) == 1005


def _refuses_bad_authorities(way: NotifyTarget, directory: Path) -> None:
    """Another authority, the machine's own, no file, an empty one, no certificate in it, another name."""
    other = issue(_made(directory / "other"), "127.0.0.1").authority
    (directory / "empty.pem").touch()
    (directory / "text.pem").write_text("# a comment, \u00e9\n")
    reasons = {
        str(other): "CERTIFICATE_VERIFY_FAILED",
        None: "CERTIFICATE_VERIFY_FAILED",
        "/no/such.pem": "is missing or empty",
        str(directory / "empty.pem"): "is missing or empty",
        str(directory / "text.pem"): "holds no certificate",
    }
    for ca, reason in reasons.items():
        with pytest.raises(DeliveryFailed, match=reason):
            deliver(replace(way, ca=ca), BATCH, "lb-1", SecretFiles())
    elsewhere = issue(_made(directory / "elsewhere"), "log.example.com")
    webhook = Webhook(certificates=elsewhere)
    try:
        with pytest.raises(DeliveryFailed, match="CERTIFICATE_VERIFY_FAILED"):
            deliver(target(webhook=webhook.url, ca=str(elsewhere.authority)), BATCH, "lb-1", SecretFiles())
    finally:
        webhook.close()
    assert webhook.posted == []


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def test_a_webhook_of_an_authority_of_ones_own(tmp_path: Path):
    """The same file of authorities is for https."""
    files = issue(tmp_path, "127.0.0.1")
    webhook = Webhook(certificates=files)
    try:
        deliver(target(webhook=webhook.url, ca=str(files.authority)), BATCH, "lb-1", SecretFiles())
    finally:
        webhook.close()
    assert len(webhook.posted) == 1


@pytest.mark.parametrize("goes", [True, False], ids=["it goes", "it is silent"])
@pytest.mark.parametrize("way", ["syslog", "webhook"])
def test_a_server_that_speaks_no_tls_is_a_failure(way: str, *, goes: bool):
    """Silence has its deadline, after which the connection is closed; who closes in the handshake is told."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        taker = threading.Thread(target=lambda: _take(server, goes=goes))
        taker.start()
        scheme = "tls" if way == "syslog" else "https"
        address = f"{scheme}://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(DeliveryFailed):
            deliver(target(timeout=60.0 if goes else 2.0, **{way: address}), BATCH, "lb-1", SecretFiles())
        taker.join(60)
        assert not taker.is_alive()


def _take(server: socket.socket, *, goes: bool) -> None:
    """Accept one connection; close it at once, or when the client has gone."""
    connection, _ = server.accept()
    connection.settimeout(50)
    with connection:
        while not goes and connection.recv(1 << 16):
            pass


_HOSTILE = {
    "continue": b"HTTP/1.1 100 Continue\r\n\r\n" * 200_000,
    "early hints": b"HTTP/1.1 103 Early Hints\r\n" + b"X-More: and more\r\n" * 1000,
    "no line": b"HTTP/1.1 200 " + b"x" * 10_000,
    "no http": b"POST /s3cret HTTP/1.1\r\n" * 100,
    "handshake": HELLO_REQUESTS,
}


@pytest.mark.parametrize(
    ("scheme", "says"),
    [*(("http", each) for each in list(_HOSTILE)[:4]), ("https", "handshake"), ("tls", "handshake")],
)
def test_a_server_that_never_stops_is_given_up(scheme: str, says: str):
    """Whatever it streams in the place of an answer: other greenlets wait for nothing of it."""
    way = {"syslog" if scheme == "tls" else "webhook": f"{scheme}://127.0.0.1:"}
    with _streaming(_HOSTILE[says]) as port, gevent.Timeout(30):
        given = {name: f"{address}{port}" for name, address in way.items()}
        with pytest.raises(DeliveryFailed) as failed:
            deliver(target(timeout=2.0, **given), BATCH, "lb-1", SecretFiles())
    assert "s3cret" not in str(failed.value)


def test_a_server_that_drips_is_given_up():
    """The deadline is that of the whole answer, and not that of a byte."""
    with _streaming(b"HTTP/1.1 ", pause=0.05) as port, pytest.raises(DeliveryFailed, match=r"within 0.5 s"):
        deliver(target(timeout=0.5, webhook=f"http://127.0.0.1:{port}"), BATCH, "lb-1", SecretFiles())


@contextlib.contextmanager
def _streaming(data: bytes, *, pause: float = 0.0) -> Iterator[int]:
    """Run a server that says something again and again to all who connect, byte by byte with a pause."""

    def say(connection: socket.socket) -> None:
        pieces = [bytes([byte]) for byte in data] if pause else [data]
        with connection, contextlib.suppress(OSError):
            while True:
                for piece in pieces:
                    connection.sendall(piece)
                    time.sleep(pause)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=say, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def test_syslog_without_a_server_fails():
    """A port that nobody listens on, and a socket that is not there, are tried again later."""
    for address in (f"tcp://127.0.0.1:{free_port()}", "/no/such/socket"):
        with pytest.raises(DeliveryFailed):
            deliver(target(syslog=address), BATCH, "lb-1", SecretFiles())


@pytest.mark.parametrize("host", ["hooks..example.com", "x" * 70, ".example.com"])
def test_a_host_that_no_resolver_takes_is_a_failure(host: str):
    """It is tried again as any other, by each way."""
    for way in ({"webhook": f"https://{host}/x"}, {"syslog": f"udp://{host}:514"}):
        with pytest.raises(DeliveryFailed):
            deliver(target(**way), BATCH, "lb-1", SecretFiles())


def test_a_bug_is_logged_and_later_events_are_told(monkeypatch: pytest.MonkeyPatch):
    """Whatever a message raises, the next ones are tried."""
    tried: list[Batch] = []

    def crash(_: NotifyTarget, batch: Batch, *__: object) -> None:
        tried.append(batch)
        if len(tried) == 1:
            raise RuntimeError("a bug")

    monkeypatch.setattr(notifier, "deliver", crash)
    with capture_logs() as lines:
        made = Notifier(structlog.get_logger())
        made.obey((target(syslog="/dev/log"),))
        made.notify(EVENT)
        wait_until(lambda: len(tried) == 2, what="it is tried again", sleep=gevent.sleep)
        made.close()
    assert [(each["event"], each["target"]) for each in lines] == [("notify-crashed", "ops")]


@pytest.mark.programs
def test_a_command_gets_words(tmp_path: Path):
    """Each event is one run, with its kind, severity, subject and text behind the words."""
    script, out = tmp_path / "page", tmp_path / "out"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {out}\n')
    script.chmod(0o755)
    deliver(target(command=(str(script), "now")), Batch(events=(EVENT,), left_out=2), "lb-1", SecretFiles())
    lines = out.read_text().splitlines()
    assert lines[:3] == ["now", "left-out", "warning"]
    assert lines[5:9] == ["now", "server-down", "warning", EVENT.subject]
    assert lines[9] == f"{EVENT.subject}: server-down, up -> down, L7STS, 500"


@pytest.mark.programs
def test_a_command_that_hangs_is_killed(tmp_path: Path):
    """With all that it started, after its time; and one that fails says how."""
    script, pid = tmp_path / "page", tmp_path / "pid"
    script.write_text(f"#!/bin/sh\nsleep 1000 &\necho $! > {pid}\nwait\n")
    script.chmod(0o755)
    with pytest.raises(CommandFailed, match=r"no end within 0.5 s"):
        deliver(target(command=(str(script),), timeout=0.5), BATCH, "lb-1", SecretFiles())
    child = Path("/proc") / pid.read_text().strip()
    wait_until(lambda: not child.exists() or "Z" in (child / "stat").read_text().split()[2], what="it ended")
    with pytest.raises(CommandFailed, match="exited 1"):
        deliver(target(command=("/bin/false",)), BATCH, "lb-1", SecretFiles())


@pytest.mark.programs
def test_a_command_that_fails_repeats_no_secret(tmp_path: Path):
    """Its output goes to the log: without the address of the webhook and the password that it was given."""
    script = tmp_path / "post"
    script.write_text('#!/bin/sh\necho "The requested URL $1 returned error: 404; $1"\nexit 22\n')
    script.chmod(0o755)
    url = "https://me:hunter2x@hooks.example.com/services/T0000000/B0000000/XXXXXXXXXXXX" + "Y" * 300
    with pytest.raises(CommandFailed) as failed:
        deliver(target(command=(str(script), url)), BATCH, "lb-1", SecretFiles())
    said = str(failed.value)
    assert said.startswith("exited 22: The requested URL https://***@hooks.example.com/***")
    assert not any(part in said for part in ("hunter2x", "T0000000", "XXXXXXXXXXXX", "YYYY"))


@pytest.mark.programs
def test_a_command_that_cannot_be_started_again_is_not_run_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Once one has run, the others are lost; before that the message is tried again."""
    script, out = tmp_path / "page", tmp_path / "out"
    script.write_text(f"#!/bin/sh\necho $1 >> {out}\n")
    script.chmod(0o755)
    starts = iter((delivery.Command, None, delivery.Command, None))

    def start(*given: object, **named: object) -> Command:
        if (starting := next(starts)) is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return starting(*given, **named)

    monkeypatch.setattr(delivery, "Command", start)
    three = Batch(events=(EVENT, EVENT, EVENT), left_out=0)
    with pytest.raises(CommandFailed, match="unavailable"):
        deliver(target(command=(str(script),)), three, "lb-1", SecretFiles())
    assert out.read_text() == "server-down\nserver-down\n"
    with pytest.raises(DeliveryFailed) as failed:
        deliver(target(command=(str(script),)), three, "lb-1", SecretFiles())
    assert failed.type is DeliveryFailed


def test_one_who_hangs_keeps_nobody_else_waiting(webhook: Webhook):
    """Each target has its own queue; events that are not bad enough for it are not told."""
    slow, good = Webhook(), target(name="good", webhook=webhook.url)
    slow.stalls = True
    notifying = Notifier(structlog.get_logger())
    pager = target(name="pager", webhook=webhook.url, severity=EventSeverity.CRITICAL)
    notifying.obey((target(name="slow", webhook=slow.url), good, pager))
    notifying.notify(EVENT)
    wait_until(lambda: slow.posted and webhook.posted, what="both were asked", sleep=gevent.sleep)
    notifying.notify(OperatorEvent(when=2.0, kind=EventKind.POOL_EMPTY, subject="masters"))
    wait_until(lambda: len(webhook.posted) == 3, what="the others are told", sleep=gevent.sleep)
    told = [body["events"][0]["kind"] for _, _, body in webhook.posted]
    assert sorted(told) == ["pool-empty", "pool-empty", "server-down"]
    notifying.close()
    slow.close()


def test_only_the_events_that_are_named_are_told(webhook: Webhook):
    """Of these only those that are severe enough, too."""
    notifying = Notifier(structlog.get_logger())
    kinds = (EventKind.SERVER_DOWN, EventKind.SERVER_UP)
    notifying.obey((target(webhook=webhook.url, events=kinds, severity=EventSeverity.WARNING),))
    for kind in (EventKind.SERVER_UP, EventKind.POOL_EMPTY, EventKind.SERVER_DOWN):
        notifying.notify(OperatorEvent(when=2.0, kind=kind, subject="masters/m0"))
    wait_until(lambda: webhook.posted, what="it is told", sleep=gevent.sleep)
    notifying.close()
    assert [each["kind"] for _, _, body in webhook.posted for each in body["events"]] == ["server-down"]


def test_a_failure_is_logged_once_and_made_good(webhook: Webhook):
    """The message is tried again until the webhook takes it; the log names the target, and not the URL."""
    webhook.status = 500
    with capture_logs() as lines:
        notifying = Notifier(structlog.get_logger())
        notifying.obey((target(webhook=webhook.url),))
        notifying.notify(EVENT)
        wait_until(lambda: len(webhook.posted) == 2, what="it is tried again", sleep=gevent.sleep)
        webhook.status = 204
        wait_until(lambda: len(webhook.posted) == 3, what="it is delivered", sleep=gevent.sleep)
        notifying.close()
    assert [(each["event"], each["target"]) for each in lines] == [("notify-failed", "ops")]
    assert "127.0.0.1" not in str(lines)


@pytest.mark.programs
@pytest.mark.needs("prometheus-alertmanager")
def test_alertmanager_takes_alerts_and_their_ends(tmp_path: Path):
    """A server that is down is an alert of a real Alertmanager; that it is up again ends this alert."""
    now = time.time()
    with alertmanager(tmp_path) as url:
        way = target(webhook=url, form=Form.ALERTMANAGER)
        deliver(way, Batch(events=(replace(EVENT, when=now),), left_out=0), "lb-1", SecretFiles())
        [alert] = wait_until(lambda: firing(url), what="the alert is there")
        assert alert["labels"] == {
            "alertname": "appliance-server-down",
            "severity": "warning",
            "instance": "lb-1",
            "subject": EVENT.subject,
        }
        assert "L7STS" in alert["annotations"]["summary"]
        up = OperatorEvent(when=now, kind=EventKind.SERVER_UP, subject=EVENT.subject)
        deliver(way, Batch(events=(up,), left_out=0), "lb-1", SecretFiles())
        wait_until(lambda: not firing(url), what="the alert is over")
