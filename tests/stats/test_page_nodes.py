"""The other nodes on the page, and what `stats` reports for theirs."""

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
import structlog
from support.stats.asked_pages import asked
from support.values.snapshots import snapshot, virtual_router

from appliance.model.paths import Paths
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.linger import Linger
from appliance.model.snapshot.snapshot import Snapshot, Stats, encode
from appliance.net.control.control_server import Call, ControlServer
from appliance.stats.figures import HistoryFile, LatestFigures
from appliance.stats.service import report
from appliance.wire.lines import status_answer
from appliance.wire.lines.control import Answer, good
from appliance.wire.lines.linger_status import LingerStatus, OtherNode
from appliance.wire.lines.vrrp_status import HeardRouterStatus, RouterStatus, VrrpStatus

pytestmark = pytest.mark.sockets

ADDRESS = "10.0.0.3"
NODE = OtherNode(
    name="lb-1",
    address=ADDRESS,
    addresses=(ADDRESS,),
    release="1.0",
    configuration="ab",
    condition="attention",
    page=f"http://{ADDRESS}:9444",
)
LINGER = Linger(longest=60.0, port=29446, keys=())
ACCEPTED = replace(snapshot(groups=[], pools=[], virtual_routers=[virtual_router("api")]), linger=LINGER)
BACKUP = VrrpStatus(
    routers=(
        RouterStatus(name="api", state="backup", heard=(HeardRouterStatus(peer=ADDRESS, state="active"),)),
    )
)


def shown(root: Path, *nodes: OtherNode) -> str:
    """Return the page in one line, where `linger` knows these nodes, and `vrrp` that one is active."""
    paths = Paths(runtime=root, state=root)
    paths.accepted.write_bytes(encode(ACCEPTED))
    with contextlib.ExitStack() as stack:
        for name, said in {"linger": LingerStatus(nodes=nodes), "vrrp": BACKUP}.items():
            answer = good(**status_answer.encode(said))
            handlers = {"status": lambda _, answer=answer: answer}
            stack.callback(ControlServer(paths.control(name), handlers, on_error=print).close)
        _, _, body = asked(root, "/haproxy_stats", Stats(bind=Bind(host="localhost", port=1)))
    return " ".join(body.split())


def test_the_other_nodes_are_on_the_page(tmp_path: Path):
    """With how they find themselves, what they serve, and a link to their page, wherever they are named."""
    text = shown(tmp_path, NODE)
    link = f'<a href="http://{ADDRESS}:9444/haproxy_stats" rel="noreferrer">lb-1</a>'
    assert f'<tr class="drain"><th scope="row">{link} <small>{ADDRESS}</small>' in text
    assert '<td class="state">attention<td>api <td>as here<td>1.0<td' in text
    assert f'<td>{link}<td class="state">backup' in text


def test_what_is_not_right_with_a_node(tmp_path: Path):
    """A node that is silent, one that runs another configuration, and one that has no page."""
    text = shown(
        tmp_path,
        replace(NODE, silent=True),
        replace(NODE, name="lb-2", addresses=(), differs_since=1000.0),
        replace(NODE, name="lb-3", addresses=(), page="", configuration="", release=""),
    )
    assert '<td class="state">silent' in text
    assert "<b>another</b> since" in text
    assert "lb-2 runs another configuration" in text.lower()
    assert '<th scope="row">lb-3 <small></small>' in text


def test_nothing_comes_from_elsewhere(tmp_path: Path):
    """The browser fetches nothing from another node: there are links, and neither images nor scripts."""
    text = shown(tmp_path, NODE)
    assert 'src="http' not in text
    assert text.count(f"http://{ADDRESS}") == text.count(f'<a href="http://{ADDRESS}')


@pytest.mark.parametrize(
    ("accepted", "reported"), [(ACCEPTED, ["ill"]), (replace(ACCEPTED, linger=None), [])]
)
def test_the_condition_is_reported(tmp_path: Path, accepted: Snapshot, reported: list[str]):
    """As the page has it, to `linger` if that tells other nodes."""
    paths = Paths(runtime=tmp_path, state=tmp_path)
    figures = LatestFigures(paths, HistoryFile(paths.history, structlog.get_logger()), on_fault=print)
    found: list[str] = []

    def condition(call: Call) -> Answer:
        found.append(call.question.text("condition"))
        return good()

    with contextlib.closing(figures):
        report(paths, figures)
        paths.accepted.write_bytes(encode(accepted))
        figures.forget()
        answer = good(**status_answer.encode(LingerStatus()))
        handlers = {"status": lambda _: answer, "condition": condition}
        with contextlib.closing(ControlServer(paths.control("linger"), handlers, on_error=print)):
            report(paths, figures)
    assert found == reported
