"""The program stats: pages, metrics, access, reloads, and what its clients can do to it."""

import json
import os
import re
import signal
import socket
import ssl
import struct
import time
import urllib.error
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPSConnection, NotConnected
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pytest
from support.network.ports import free_port
from support.processes.processes import kill
from support.processes.waiting import wait_until
from support.stats.haproxy_clients import get
from support.stats.stats_site import StatsSite, stats_site
from support.values.certificates import Certificates, issue

from appliance.core.status.status import Status
from appliance.model.paths import NODE_VARIABLE
from appliance.stats.web_server import MOST_CLIENTS

pytestmark = pytest.mark.programs


@pytest.fixture(scope="module")
def site() -> Iterator[StatsSite]:
    """Run three masters, an appliance and its statistics, for all tests of this module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(NODE_VARIABLE, "lb-7")
        with stats_site(workers=1) as made:
            yield made


@pytest.fixture
def configured(site: StatsSite) -> Iterator[StatsSite]:
    """Give the same, and put its configuration back at the end."""
    yield site
    assert site.cluster.appliance.reload(site.config())["ok"]


def refusal(url: str, **how: str) -> int:
    """Return the HTTP status of a page that is refused."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(url, **how)
    with refused.value:
        return refused.value.code


def ask_master(site: StatsSite) -> None:
    """Have one request answered through the appliance."""
    client = HTTPConnection("127.0.0.1", site.cluster.port, timeout=30)
    client.request("GET", "/readyz", headers={"Connection": "close"})
    assert client.getresponse().read()
    client.close()


@pytest.mark.promise("docs/monitoring.md", "`respond` beside the page says whether connections are served")
def test_the_monitor_beside_the_page(configured: StatsSite):
    """At each address, without a password: 200 while workers accept and the pool has a server up."""
    other = free_port()
    section = {
        "also_bind": [f"127.0.0.1:{other}"],
        "respond": "/healthz",
        "auth": {"user": "admin", "password": "s3cret"},
    }
    assert configured.cluster.appliance.reload(configured.config(**section, needs="masters"))["ok"]
    for port in (configured.port, other):
        wait_until(lambda port=port: status(port) == 200, what="it serves")
    assert refusal(f"http://127.0.0.1:{other}/haproxy?stats") == 401

    config = configured.config(**section, needs="gone")
    server = {"address": f"127.0.0.1:{free_port()}"}
    config["pools"] = {**config["pools"], "gone": {"servers": {"none": server}, "check": {"type": "tcp"}}}
    assert configured.cluster.appliance.reload(config)["ok"]
    wait_until(lambda: status(other) == 503, what="no server of its pool is up")


def status(port: int) -> int:
    """Return what the monitor beside the page answers."""
    client = HTTPConnection("127.0.0.1", port, timeout=30)
    client.request("GET", "/healthz")
    found = client.getresponse().status
    client.close()
    return found


def test_the_page_names_the_node(site: StatsSite):
    """As the configuration and `fleet` do, whatever the host is called."""
    assert "lb-7" in site.page("/")


@pytest.mark.promise("docs/monitoring.md", "Prometheus reads our metrics")
def test_prometheus_reads_metrics(site: StatsSite):
    """In its text format, and in OpenMetrics where it asks for that; connections are counted."""
    before = site.value("haproxy_frontend_sessions_total", proxy="kube-api") or 0.0
    ask_master(site)
    site.wait_for("haproxy_frontend_sessions_total", before + 1, proxy="kube-api")
    kind, text = get(site.url("/metrics"))
    other, open_metrics = get(site.url("/metrics"), accept="application/openmetrics-text; version=1.0.0")

    assert (kind.partition(";")[0], other.partition(";")[0]) == ("text/plain", "application/openmetrics-text")
    assert text.count("# TYPE") == open_metrics.count("# TYPE")
    assert open_metrics.endswith("# EOF\n")
    for name in ("haproxy_process_start_time_seconds", "appliance_ok", "appliance_program_up"):
        assert f"\n{name}" in text


@pytest.mark.promise("program", "stats")
def test_the_status_is_that_of_the_console(site: StatsSite):
    """With a schema, by which it can be read."""
    found = msgspec.json.decode(site.page("/api/v1/status").encode(), type=Status)
    schema = json.loads(site.page("/api/v1/schema"))
    printed = site.cluster.appliance.status()

    expected = {each.name for each in found.programs if each.expected}
    assert expected == {"reload", "health", "proxy-api", "stats"}
    assert set(printed) == set(schema["$defs"]["Status"]["properties"])
    assert found.ok


def test_a_page_that_there_is_not(site: StatsSite):
    """404, and 405 for what changes nothing."""
    assert refusal(site.url("/nothing")) == 404
    client = HTTPConnection("127.0.0.1", site.port, timeout=30)
    client.request("PUT", "/metrics", body=b"x")
    assert client.getresponse().status == 405
    client.close()


def test_connections_are_used_again(site: StatsSite):
    """HEAD has no body, and two questions fit one connection."""
    client = HTTPConnection("127.0.0.1", site.port, timeout=30)
    for method in ("HEAD", "GET"):
        client.request(method, "/metrics")
        answer = client.getresponse()
        assert (answer.status, bool(answer.read())) == (200, method == "GET")
    client.close()


def test_a_user_with_a_password(configured: StatsSite, tmp_path: Path):
    """Nobody else is answered; a file with the password may end with a newline."""
    file = tmp_path / "password"
    file.write_text("s3cret\n")
    auth = {"user": "admin", "password_file": str(file)}
    assert configured.cluster.appliance.reload(configured.config(auth=auth))["ok"]

    metrics = configured.url("/metrics")
    assert refusal(metrics) == 401
    assert refusal(metrics, user="admin:wrong") == 401
    assert refusal(metrics, user="s3cret") == 401
    assert "appliance_ok" in configured.page("/metrics", user="admin:s3cret")
    configured.cluster.appliance.wait_for_event("access-denied")


def test_a_password_file_that_cannot_be_read_is_refused(configured: StatsSite, tmp_path: Path):
    """The reload says which one, and what was served goes on."""
    for content in (None, "", "\n"):
        file = tmp_path / "password"
        if content is not None:
            file.write_text(content)
        auth = {"user": "admin", "password_file": str(file)}
        answer = configured.cluster.appliance.reload(configured.config(auth=auth))
        assert not answer["ok"]
        assert str(file) in json.dumps(answer["errors"])
        assert "appliance_ok" in configured.page("/metrics")


def test_tls(configured: StatsSite, tmp_path: Path):
    """With a certificate the page is served by HTTPS, and by nothing else."""
    files = issue(tmp_path, "127.0.0.1")
    answer = configured.cluster.appliance.reload(
        configured.config(tls={"certificate": str(files.chain), "key": str(files.key)})
    )
    assert answer["ok"], answer
    context = ssl.create_default_context(cafile=files.authority)
    with (
        socket.create_connection(("127.0.0.1", configured.port), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        secured.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert secured.recv(1000).startswith(b"HTTP/1.1 200")
    with socket.create_connection(("127.0.0.1", configured.port), timeout=30) as plain:
        plain.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        with suppress(ConnectionResetError):
            assert plain.recv(1000) == b""
    for _ in range(50):  # who leaves without the answer is no news
        plain = socket.create_connection(("127.0.0.1", configured.port), timeout=30)
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as leaving:
            leaving.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
    with (
        socket.create_connection(("127.0.0.1", configured.port), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        secured.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert secured.recv(1000).startswith(b"HTTP/1.1 200")
    assert "Traceback" not in configured.cluster.appliance.log()


def test_a_certificate_that_cannot_be_used_is_refused(configured: StatsSite, tmp_path: Path):
    """Here is a key of another one, and there no file at all."""
    for path in (tmp_path / "missing", configured.cluster.appliance.paths.config):
        answer = configured.cluster.appliance.reload(
            configured.config(tls={"certificate": str(path), "key": str(path)})
        )
        assert not answer["ok"]
        assert str(path) in json.dumps(answer["errors"])


def test_networks_that_may_connect(configured: StatsSite):
    """Others are closed before anything is read."""
    assert configured.cluster.appliance.reload(configured.config(allow=["10.0.0.0/8"]))["ok"]
    with socket.create_connection(("127.0.0.1", configured.port), timeout=30) as client:
        assert client.recv(100) == b""
    assert configured.cluster.appliance.reload(configured.config(allow=["127.0.0.0/8"]))["ok"]
    assert "appliance_ok" in configured.page("/metrics")


def test_who_may_not_ask_any_more_is_not_answered(configured: StatsSite):
    """A reload holds for open connections: one that is excluded is closed, one that is not goes on."""
    appliance = configured.cluster.appliance
    excluded, kept = (HTTPConnection("127.0.0.1", configured.port, timeout=30) for _ in range(2))
    for client, networks, may in (
        (excluded, ["10.0.0.0/8"], False),
        (kept, ["127.0.0.0/8"], True),
    ):
        assert _answers(client)
        assert appliance.reload(configured.config(allow=networks))["ok"]
        assert _answers(client) is may
        client.close()
        assert appliance.reload(configured.config())["ok"]


def test_another_certificate_or_none_holds_for_open_connections(configured: StatsSite, tmp_path: Path):
    """The same files end no connection; other ones, or none any more, end it at its next request."""
    appliance = configured.cluster.appliance
    (tmp_path / "other").mkdir()
    first, second = issue(tmp_path, "127.0.0.1"), issue(tmp_path / "other", "127.0.0.1")
    plain = HTTPConnection("127.0.0.1", configured.port, timeout=30)
    assert _answers(plain)
    assert appliance.reload(configured.config(tls=_tls(first)))["ok"]
    assert not _answers(plain)

    open_before = _secured(configured.port, first)
    assert _answers(open_before)
    assert appliance.reload(configured.config(tls=_tls(first), allow=["127.0.0.0/8"]))["ok"]
    assert _answers(open_before)
    for file, other in ((first.chain, second.chain), (first.key, second.key)):
        file.write_bytes(other.read_bytes())  # the same names, renewed
    assert appliance.reload(configured.config(tls=_tls(first)))["ok"]
    assert not _answers(open_before)

    renewed = _secured(configured.port, second)
    assert _answers(renewed)
    assert appliance.reload(configured.config())["ok"]
    assert not _answers(renewed)
    assert "Traceback" not in appliance.log()


def _answers(client: HTTPConnection) -> bool:
    """Ask for a page, the first time on a new connection; False where the server has closed it."""
    if client.sock is not None:
        client.auto_open = 0
    try:
        client.request("GET", "/metrics")
        return b"appliance_ok" in client.getresponse().read()
    except (NotConnected, ConnectionError, ssl.SSLEOFError):
        return False


def _secured(port: int, files: Certificates) -> HTTPSConnection:
    context = ssl.create_default_context(cafile=files.authority)
    return HTTPSConnection("127.0.0.1", port, timeout=30, context=context)


def _tls(files: Certificates) -> dict[str, str]:
    return {"certificate": str(files.chain), "key": str(files.key)}


def test_another_address(configured: StatsSite):
    """The new one is served, the old one is not; one that is taken is refused, and nothing changes."""
    port = free_port()
    appliance = configured.cluster.appliance
    with socket.create_server(("127.0.0.1", port)):
        answer = appliance.reload(configured.config(bind=f"127.0.0.1:{port}"))
    assert not answer["ok"]
    assert "in use" in json.dumps(answer["errors"])
    assert "appliance_ok" in configured.page("/metrics")

    assert appliance.reload(configured.config(bind=f"127.0.0.1:{port}"))["ok"]
    assert "appliance_ok" in get(f"http://127.0.0.1:{port}/metrics")[1]
    with pytest.raises(OSError, match="refused"):
        configured.page("/metrics")


def test_without_the_section_it_does_not_run(configured: StatsSite):
    """It is stopped, and started when the section comes back; a bind that is taken is found before that."""
    appliance = configured.cluster.appliance
    assert appliance.reload(configured.cluster.config())["ok"]
    wait_until(lambda: appliance.program_pid("stats") is None, what="stats has ended")
    with socket.create_server(("127.0.0.1", configured.port)):
        answer = appliance.reload(configured.config())
    assert not answer["ok"]
    assert "in use" in json.dumps(answer["errors"])
    assert appliance.reload(configured.config())["ok"]
    wait_until(lambda: appliance.program_pid("stats"), what="stats is back")


def test_its_death_is_mended(site: StatsSite):
    """Killed, it is started again, and counts on."""
    ask_master(site)
    before = wait_until(
        lambda: site.value("haproxy_frontend_sessions_total", proxy="kube-api"), what="a session"
    )
    appliance = site.cluster.appliance
    appliance.wait_for_restart("stats", appliance.kill("stats"))
    ask_master(site)
    after = wait_until(
        lambda: site.value("haproxy_frontend_sessions_total", proxy="kube-api"), what="a session"
    )
    assert after >= before


@pytest.mark.slow("real time-outs of slow clients")
def test_slow_clients_take_nobodys_place_for_long(site: StatsSite):
    """As many as it serves say half a request: traffic goes on, and the next one is served after them."""
    slow = [socket.create_connection(("127.0.0.1", site.port), timeout=60) for _ in range(MOST_CLIENTS)]
    for each in slow:
        each.sendall(b"GET /metrics HT")
    ask_master(site)
    assert "appliance_ok" in get(site.url("/metrics"))[1]  # waits in the backlog until one has been given up
    for each in slow:
        assert each.recv(1000) == b""
        each.close()


def test_a_head_without_end(site: StatsSite):
    """It is refused when it is longer than any client's, not when its memory is full."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=30) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\n")
        refused = b""
        try:
            for _ in range(1000):
                client.sendall(b"X-Long: " + b"x" * 1000 + b"\r\n")
        except OSError:
            refused = b"closed"
        else:
            refused = client.recv(100)
    assert refused == b"closed" or refused.startswith(b"HTTP/1.1 400")
    assert "appliance_ok" in site.page("/metrics")


def test_a_client_that_does_not_read(site: StatsSite):
    """It asks for more than fits its buffers, and reads nothing: others are served."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", site.port))
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
        assert "appliance_ok" in site.page("/metrics")


def test_a_program_that_hangs_delays_a_page_by_one_wait(site: StatsSite):
    """What it does not answer is left out, and said."""
    appliance = site.cluster.appliance
    pid = appliance.program_pid("health")
    assert pid
    os.kill(pid, signal.SIGSTOP)
    try:
        ok = wait_until(
            lambda: site.value("appliance_program_ok", program="health") == 0.0, what="health is not well"
        )
        assert ok
    finally:
        os.kill(pid, signal.SIGCONT)
    site.wait_for("appliance_program_ok", 1.0, program="health")


def test_a_dead_master_is_seen(site: StatsSite):
    """The program is down for a moment, its workers' figures are there."""
    appliance = site.cluster.appliance
    pid = appliance.program_pid("proxy-api")
    assert pid
    kill(pid)
    assert site.value("haproxy_frontend_status", proxy="kube-api", state="UP") == 1.0
    appliance.wait_for_restart("proxy-api", pid)
    site.wait_for("appliance_ok", 1.0)


def test_the_page_in_words(site: StatsSite):
    """The verdict, every server, and the phrases that agents look for; a path of HAProxy's own will do."""
    for path in ("/", "/haproxy_stats", "/haproxy_stats;norefresh", "/stats"):
        kind, text = get(site.url(path))
        assert kind == "text/html; charset=utf-8"
        assert '<header id="verdict" class="well">' in text
        assert "<h1>Serving.</h1>" in text
        assert all(f'<th scope="row">{each.name}' in text for each in site.cluster.masters)
        assert "HAProxy version 2.6.0-appliance-" in text
        assert "<form" not in text


def test_the_page_needs_nothing_from_elsewhere(site: StatsSite):
    """Its style and its script are here, and nothing inside the page is run."""
    text = site.page("/")
    assert "http:" not in text
    assert "style=" not in text
    assert "<style" not in text
    assert text.count("<script") == 1
    for name, kind in (("page.css", "text/css"), ("page.js", "text/javascript")):
        assert f'"/static/{name}"' in text
        assert get(site.url(f"/static/{name}"))[0].startswith(kind)
    client = HTTPConnection("127.0.0.1", site.port, timeout=30)
    client.request("GET", "/")
    policy = client.getresponse().headers["Content-Security-Policy"]
    client.close()
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none';")


def test_the_page_says_what_is_wrong(site: StatsSite):
    """A server that is down is in its first line, with its reason."""
    master = site.cluster.masters[0]
    master.ready(500)
    try:
        wait_until(
            lambda: re.search(
                rf"1 of 3 masters is down since \d\d:\d\d: L7STS/500 \({master.name}\)\.", site.page("/")
            ),
            what="it says so",
        )
    finally:
        master.ready(200)
    wait_until(lambda: 'id="verdict" class="well"' in site.page("/"), what="all is well again")


def _post(site: StatsSite, form: dict[str, str], *, user: str, path: str = "/servers", **headers: str) -> int:
    client = HTTPConnection("127.0.0.1", site.port, timeout=30)
    credentials = b64encode(user.encode()).decode()
    headers = {
        "Authorization": f"Basic {credentials}",
        "Content-Type": "application/x-www-form-urlencoded",
        **headers,
    }
    client.request("POST", path, body=urlencode(form), headers=headers)
    status = client.getresponse().status
    client.close()
    return status


@pytest.mark.promise("rights", "`admin` of the page")
def test_who_has_authenticated_may_change_servers(configured: StatsSite):
    """With `admin: on`, by the page's own forms alone: another site does not know the token in them."""
    user = "admin:s3cret"
    auth = {"user": "admin", "password": "s3cret"}
    appliance = configured.cluster.appliance
    assert appliance.reload(configured.config(auth=auth))["ok"]
    drain = {"pool": "masters", "change": "drain master-1"}
    assert _post(configured, drain, user=user) == 403

    assert appliance.reload(configured.config(auth=auth, admin="on"))["ok"]
    token = configured.page("/", user=user).partition('name="token" value="')[2].partition('"')[0]
    assert token
    assert _post(configured, drain, user=user) == 403
    assert _post(configured, {**drain, "token": "x"}, user=user) == 403
    assert _post(configured, {**drain, "token": token}, user="admin:wrong") == 401
    assert _post(configured, {**drain, "token": token}, user=user, **{"Sec-Fetch-Site": "cross-site"}) == 403
    for nonsense in ("gone master-1", "drain", "", "drain nobody"):
        refused = _post(configured, {**drain, "token": token, "change": nonsense}, user=user)
        assert refused == (400 if nonsense in ("gone master-1", "") else 409)
    for nonsense in ("move api", "reclaim api", "drain api"):  # there is no virtual IP
        refused = _post(configured, {"token": token, "change": nonsense}, user=user, path="/virtual-ips")
        assert refused == (400 if nonsense == "drain api" else 409)
    assert _post(configured, {"x": "y" * 5000}, user=user) == 400
    assert _post(configured, {**drain, "token": token}, user=user) == 303
    wait_until(lambda: "1 of 3 masters is draining" in configured.page("/", user=user), what="it drains")
    assert (
        _post(configured, {"pool": "masters", "token": token, "change": "ready master-1"}, user=user) == 303
    )
    wait_until(lambda: 'id="verdict" class="well"' in configured.page("/", user=user), what="it is back")
    assert [each["by"] for each in appliance.events("state-set")][:2] == ["page", "page"]


def test_who_leaves_in_the_middle_of_a_head(site: StatsSite):
    """With a reset: this is no news."""
    for _ in range(10):
        with socket.create_connection(("127.0.0.1", site.port), timeout=30) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(b"GET / HTTP/1.1\r\nHost:")
            time.sleep(0.01)
    assert "appliance_ok" in site.page("/metrics")
    assert "Traceback" not in site.cluster.appliance.log()


@pytest.mark.slow("a whole appliance and its readers")
@pytest.mark.parametrize(
    "request_",
    [
        b"\x00\xff\xfe\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 99999\r\n\r\n" + b"x" * 99999,
        b"GET /\r\n\r\n",
        b"POST /servers HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /servers HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\nx",
        b"POST /servers HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /%00%ff;csv HTTP/1.1\r\nAuthorization: Basic ====\r\n\r\n",
        b"GET /../../etc/passwd HTTP/1.1\r\n\r\n",
        b"GET /static/../page.py HTTP/1.1\r\n\r\n",
        b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n",
    ],
)
def test_nonsense(site: StatsSite, request_: bytes):
    """It is refused, or not answered; the next good request is."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", site.port), timeout=30) as client:
        client.sendall(request_)  # the connection may be closed before all was sent
        client.shutdown(socket.SHUT_WR)
        while client.recv(65536):
            continue
    assert "appliance_ok" in site.page("/metrics")
    assert site.cluster.appliance.log().partition("Traceback")[2][:6000] == ""
