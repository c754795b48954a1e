"""Requests of any form, and names of any form that a configuration takes: the answer can always be read."""

import json
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPResponse
from pathlib import Path
from typing import Final

import pytest
import structlog
from gevent import Timeout, socket
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open_metrics
from prometheus_client.parser import text_string_to_metric_families as read_text
from structlog.testing import CapturingLogger
from support.network.ports import free_port
from support.run.tiers import examples
from support.values.observations import NOW, observations
from support.values.snapshots import bind, frontend, group, pool, server, snapshot, virtual_router
from support.vrrp.vrrp_boards import vrrp_board

from appliance.core.haproxy.activity import Activity
from appliance.core.haproxy.statistics import Observed, rows
from appliance.core.metrics.appliance import appliance_metrics
from appliance.core.metrics.haproxy import haproxy_metrics
from appliance.core.metrics.keepalived import keepalived_metrics
from appliance.core.status.assessment import assess
from appliance.model.config.values.names import NAME_PATTERN
from appliance.model.config.values.vrrp import INTERFACE_PATTERN
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Stats
from appliance.net.files import snapshots
from appliance.stats.service import StatsService
from appliance.wire.exposition import Format, encode
from appliance.wire.lines.vrrp_status import RouterStatus, VrrpStatus

pytestmark = pytest.mark.sockets

_READERS: Final = {
    "application/json": json.loads,
    "application/schema+json": json.loads,
    Format.TEXT.value: lambda body: list(read_text(body)),
    Format.OPEN_METRICS.value: lambda body: list(read_open_metrics(body)),
}


class Listening:
    """The program's service, which asks nobody for a password, and what it has logged as a bug."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self._log = CapturingLogger()
        paths = Paths(runtime=directory, state=directory)
        accepted = replace(snapshot(), stats=Stats(bind=bind(self.port), paths=("/lb?stats",)))
        snapshots.accept(paths, accepted)
        self.service = StatsService(paths, structlog.wrap_logger(self._log, processors=[]))
        self.service.commit(self.service.prepare(accepted))

    def bugs(self) -> list[object]:
        """Return what was logged as an error."""
        return [call for call in self._log.calls if call.method_name in {"error", "exception", "critical"}]

    def asked(self, request: bytes, method: str) -> tuple[int, str, str] | None:
        """Return status, type and body of the answer, None where the connection was closed without one."""
        with Timeout(20), socket.create_connection(("127.0.0.1", self.port)) as client:
            client.sendall(request)
            client.shutdown(socket.SHUT_WR)
            if not client.recv(1, socket.MSG_PEEK):
                return None
            answer = HTTPResponse(client, method=method)
            answer.begin()
            return answer.status, answer.getheader("Content-Type", ""), answer.read().decode()


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    """Give a service that serves."""
    made = Listening(tmp_path_factory.mktemp("stats"))
    yield made
    made.service.close()


_lines = st.binary(max_size=80).map(lambda each: each.translate(None, b"\r\n"))
_pages = st.sampled_from(
    [
        b"/metrics",
        b"/api/v1/status",
        b"/api/v1/schema",
        b"/",
        b"/haproxy",
        b"/lb?stats",
        b"/servers",
        b"*",
        b"",
    ]
)
_behind = st.sampled_from([b"", b"", b";csv", b"?", b"?a=%ff", b"/", b"%00", b"%zz", b"\xff", b";norefresh"])
_headers = st.tuples(
    st.sampled_from([b"Accept", b"Authorization", b"Host", b"Content-Type", b"Expect", b"Range", b"X-\xff"]),
    _lines
    | st.sampled_from(
        [
            b"application/openmetrics-text;version=1.0.0",
            b"text/plain;q=x,*/*;q=2",
            b"Basic =",
            b"100-continue",
        ]
    ),
)
_bodies = st.tuples(
    st.sampled_from([b"", b"Content-Length: -1", b"Content-Length: 5", b"Transfer-Encoding: chunked"]),
    st.sampled_from([b"", b"token=x&pool=p", b"2\r\nab\r\n0\r\n\r\n"]) | st.binary(max_size=40),
)


@settings(
    max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    method=st.sampled_from(["GET", "GET", "HEAD", "POST", "OPTIONS", "get", "CONNECT"]),
    target=st.tuples(_pages, _behind | _lines).map(b"".join),
    headers=st.lists(_headers, max_size=4),
    body=_bodies,
)
def test_any_request_is_answered(
    listening: Listening,
    method: str,
    target: bytes,
    headers: list[tuple[bytes, bytes]],
    body: tuple[bytes, bytes],
):
    """No request is a fault of the server's, and what is answered can be read as what it is called."""
    said = [*(name + b": " + value for name, value in headers), body[0], b"Connection: close"]
    lines = [b"%s %s HTTP/1.1" % (method.encode(), target), *filter(None, said), b"", body[1]]
    answer = listening.asked(b"\r\n".join(lines), method)
    assert listening.bugs() == []
    if answer is not None:
        status, kind, text = answer
        assert status < 500
        if status == 200 and method == "GET":
            _READERS.get(kind, len)(text)


_names = st.from_regex(NAME_PATTERN, fullmatch=True)
_interfaces = st.from_regex(INTERFACE_PATTERN, fullmatch=True) | st.sampled_from(
    ['"', "\\", '\\"', "a{b}", "#,"]
)


@settings(max_examples=examples(200), deadline=None)
@given(frontend_name=_names, pool_name=_names, server_name=_names, router=_names, interface=_interfaces)
def test_any_name_is_in_the_metrics(
    frontend_name: str, pool_name: str, server_name: str, router: str, interface: str
):
    """Quotes and backslashes in the name of an interface, and names as long as they may be, arrive."""
    status = RouterStatus(name=router, interface=interface, router_id=51, addresses=("10.0.0.1/24",))
    found = observations(
        snapshot=snapshot(
            groups=[group(frontends=[frontend(frontend_name, pool=pool_name)])],
            pools=[pool(pool_name, servers=[server(server_name)])],
            virtual_routers=[virtual_router(router, interface=interface)],
        ),
        vrrp=VrrpStatus(routers=(status,)),
        vrrp_board=vrrp_board(name=router),
    )
    assessed = assess(found, NOW)
    observed = Observed(status=assessed, snapshot=found.snapshot, activity=Activity(), now=NOW)
    metrics = [
        *haproxy_metrics(tuple(rows(observed))),
        *keepalived_metrics(found),
        *appliance_metrics(assessed, found, configuration_hash="abc"),
    ]
    for form, read in ((Format.TEXT, read_text), (Format.OPEN_METRICS, read_open_metrics)):
        values = {
            value
            for family in read(encode(metrics, form).decode())
            for sample in family.samples
            for value in sample.labels.values()
        }
        assert {frontend_name, pool_name, server_name, router, interface} <= values
