"""Nodes that hear each other: what the other one runs, and where it differs from what runs here."""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.linger.linger_field import SERVER_PORT, LingerNode, config, wait_until_ready
from support.network.namespaces import Node, Segment
from support.processes.waiting import wait_until
from support.supervisor.appliance import Values

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", root=True),
]

_NAMES = ("lb-0", "lb-1")


def _of_both(**changes: object) -> dict[str, object]:
    """Return the one file of both nodes."""
    by_node: object = dict(zip(_NAMES, (150, 100), strict=True))
    made = config(priority=0, router={"priority": by_node}, **changes)
    return {"nodes": {name: {} for name in _NAMES}, "stats": {"bind": "[::]:9444"}, **made}


def _told(node: LingerNode) -> Values:
    """Return the one other node that a node has heard of, as `status` has it; empty for none."""
    found = json.loads(node.appliance.command("status", "--json", check=False).stdout)["nodes"]
    assert len(found) <= 1
    return found[0] if found else {}


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[LingerNode, LingerNode]]:
    """Run two nodes with one file, which have heard each other."""
    with Segment() as segment, ExitStack() as stack:
        running = []
        for name in _NAMES:
            monkeypatch.setenv("APPLIANCE_NODE", name)
            running.append(stack.enter_context(_node(segment.node(name), name)))
        wait_until_ready(running)
        yield running[0], running[1]


def _node(node: Node, name: str) -> LingerNode:
    return LingerNode(node, name, _of_both())


@pytest.mark.slow("whole appliances on a segment of their own")
def test_each_tells_what_it_runs(pair: tuple[LingerNode, LingerNode]):
    """The other one's name, release and page are known, and that it runs the same configuration."""
    for each, other, name in (*zip(pair, pair[::-1], _NAMES[::-1], strict=True),):
        wait_until(lambda each=each: _told(each).get("configuration"), what="the other one tells")
        found = _told(each)
        assert (found["name"], found["address"]) == (name, other.node.address)
        assert found["page"] == f"http://{other.node.address}:9444"
        wait_until(lambda each=each: _told(each)["condition"] == "well", what="it is well", timeout=30.0)
        assert (found["differs_since"], found["judged"], found["silent"]) == (None, [], False)
    digests = {_told(each)["configuration"] for each in pair}
    assert len(digests) == 1


@pytest.mark.slow("differences count after half a minute")
@pytest.mark.promise("docs/fleet.md", "drift between nodes is reported by each of them")
def test_what_differs_is_reported_until_it_is_gone(pair: tuple[LingerNode, LingerNode]):
    """Both say which node runs another configuration, and which server the other one finds down."""
    one, two = pair
    assert one.appliance.reload(_of_both(log={"level": "debug"}))["ok"]
    two.node.run(["nft", "add table inet cut; add chain inet cut in { type filter hook input priority 0; };"])
    two.node.run(["nft", f"add rule inet cut in tcp dport {SERVER_PORT} reject with tcp reset"])
    up_and_down = "! masters/own is up here and down at lb-1", "! masters/own is down here and up at lb-0"
    for each, name, judged in zip(pair, _NAMES[::-1], up_and_down, strict=True):
        for said in (f"! {name} runs another configuration (since ", judged):
            wait_until(lambda each=each, said=said: said in _status(each), what=said, timeout=90.0)
    two.node.run(["nft", "delete table inet cut"])
    assert two.appliance.reload(_of_both(log={"level": "debug"}))["ok"]
    for each in pair:
        wait_until(lambda each=each: "!" not in _status(each), what="they agree", timeout=60.0)
        events = each.appliance.command("events", "--json").stdout
        for kind in ("configuration-differs", "configuration-agrees", "verdicts-differ", "verdicts-agree"):
            assert kind in events


def _status(node: LingerNode) -> str:
    return " ".join(node.appliance.command("status", check=False).stdout.split())
