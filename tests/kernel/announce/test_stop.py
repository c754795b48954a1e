"""A stop of the node, and what `reload` may still send to `announce` meanwhile."""

import contextlib
import json

import pytest
from support.announce.shared_node import ADDRESS, SharedNode, config
from support.network.namespaces import Segment
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", root=True)]


def _ended_in_spite_of(node: SharedNode) -> bool:
    """Send that the node takes part, and return whether the appliance has ended."""
    with contextlib.suppress(OSError, ValueError):
        node.appliance.ask("announce", "take-part", wanted=True)
    return not node.appliance.is_running()


@pytest.mark.slow("whole appliances on a segment of their own")
def test_a_stop_is_not_revoked_by_reload():
    """Whoever sends during a stop that the node takes part does not have the address announced again."""
    with Segment() as segment:
        place = segment.node("lb-0")
        shared = {"ingress": {"addresses": [f"{ADDRESS}/32"], "drain": "2s"}}
        made = config([], bgp={"engine": "table"}, shared_ips=shared)
        with SharedNode(place, place.name, made) as node:
            wait_until(lambda: node.state() == "serving", what="it serves")
            node.appliance.terminate()
            wait_until(lambda: _ended_in_spite_of(node), what="the appliance has ended", timeout=40.0)
            assert node.appliance.process.returncode == 0
            kept = node.appliance.paths.events.read_text().splitlines()
            told = [each["kind"] for each in map(json.loads, kept) if each["subject"] == "ingress"]
            assert told == ["ip-announced", "ip-drained", "ip-withdrawn"]
            assert node.routes(198) == node.routes(199) == []
