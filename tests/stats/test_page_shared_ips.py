"""Shared IPs and sessions on the page."""

import contextlib
from pathlib import Path

import pytest
from support.stats.asked_pages import asked
from support.values.shared_ips import announcing, bgp, neighbor, session, shared_status, with_shared

from appliance.model.paths import Paths
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.shared_ip import Engine
from appliance.model.snapshot.snapshot import Snapshot, Stats, encode
from appliance.net.control.control_server import ControlServer
from appliance.wire.lines import status_answer
from appliance.wire.lines.announce_status import AnnounceStatus
from appliance.wire.lines.control import good

pytestmark = pytest.mark.sockets


def shown(root: Path, accepted: Snapshot, said: AnnounceStatus | None) -> str:
    """Return the page in one line, where `announce` answers this, or not at all."""
    paths = Paths(runtime=root, state=root)
    paths.accepted.write_bytes(encode(accepted))
    with contextlib.ExitStack() as stack:
        if said is not None:
            answer = good(**status_answer.encode(said))
            handlers = {"status": lambda _: answer}
            stack.callback(ControlServer(paths.control("announce"), handlers, on_error=print).close)
        _, _, body = asked(root, "/haproxy_stats", Stats(bind=Bind(host="localhost", port=1)))
    return " ".join(body.split())


def test_shared_ips_and_sessions_are_on_the_page(tmp_path: Path):
    """Their states, reasons and errors, and who else serves them."""
    down = session("tor-b", state="Active", bfd="Down", error="Received: Bad peer AS")
    shared = shared_status(state="drained", reason="servers is down", neighbors=("tor-a", "tor-b"))
    accepted = with_shared(by=bgp(neighbor(), neighbor("tor-b")))
    text = shown(tmp_path, accepted, announcing(shared, by=(session(), down)))
    for each in (
        '<section id="shared-ips">',
        "drained <small>servers is down</small>",
        "<td>1/2<td>lb-1, lb-2</tr>",
        "Active <small>Received: Bad peer AS</small>",
        "<td>1 routes<td>BFD Down</tr>",
    ):
        assert each in text


@pytest.mark.parametrize(
    ("state", "place"), [("serving", "table 198"), ("drained", "table 199"), ("starting", "-")]
)
def test_with_another_daemon_the_table_is_shown(tmp_path: Path, state: str, place: str):
    """Whether it is announced is the other daemon's to show."""
    by = bgp(neighbor(), engine=Engine.TABLE)
    said = announcing(shared_status(state=state, others=()), by=(), engine="table")
    assert f"<td>{place}<td>-</tr>" in shown(tmp_path, with_shared(by=by), said)


def test_without_an_answer_states_are_unknown(tmp_path: Path):
    """The page is there all the same."""
    text = shown(tmp_path, with_shared(), None)
    assert "ingress-all" in text
    assert '<td class="state">unknown' in text
