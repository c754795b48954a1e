"""Sessions of addresses that this node has left, on the page."""

from pathlib import Path

import pytest
from support.stats.asked_pages import asked
from support.values.snapshots import snapshot, virtual_router

from appliance.model.paths import Paths
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.linger import Linger, MovedSessions
from appliance.model.snapshot.snapshot import Stats, encode
from appliance.net.control.control_server import ControlServer
from appliance.wire.lines import status_answer
from appliance.wire.lines.control import good
from appliance.wire.lines.migrate_status import DepartureStatus, MigrateStatus

pytestmark = pytest.mark.sockets


def test_where_sessions_went_and_why_others_stay(tmp_path: Path):
    """With the number for each reason."""
    sessions = MovedSessions(certificate="/nodes.pem", authorities=None, port=29447)
    accepted = snapshot(
        virtual_routers=[virtual_router()],
        linger=Linger(longest=60.0, port=29446, keys=(), sessions=sessions),
    )
    paths = Paths(runtime=tmp_path, state=tmp_path)
    paths.accepted.write_bytes(encode(accepted))
    left = DepartureStatus(
        address="192.0.2.1", node="192.0.2.12", moved=7, stay={"it connects": 2, "busy": 1}
    )
    answer = good(**status_answer.encode(MigrateStatus(departures=(left,))))
    server = ControlServer(paths.control("migrate"), {"status": lambda _: answer}, on_error=print)
    try:
        _, _, body = asked(tmp_path, "/haproxy_stats", Stats(bind=Bind(host="localhost", port=1)))
    finally:
        server.close()
    text = " ".join(body.split())
    assert '<th scope="row">192.0.2.1<td>192.0.2.12<td class="n">7<td class="n">3' in text
    assert "<td>2: it connects; 1: busy</tr>" in text
