"""Routes of kube-vip on the same node: they are in the same table, with the same protocol, and stay."""

import signal

import pytest
from support.announce.shared_node import ADDRESS, SharedNode, config
from support.network.namespaces import Segment
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", root=True),
    pytest.mark.slow("several starts of the whole appliance"),
]

_THEIRS = "198.51.100.77"


@pytest.mark.promise("docs/shared-ips.md", "kube-vip's routes of other addresses stay")
def test_routes_of_other_addresses_stay():
    """Ours go with their address, by a reload, and as leftovers of a run that was killed."""
    with Segment() as segment:
        place = segment.node("master-0")
        made = config([], bgp={"engine": "table"})
        del made["bgp"]["neighbors"]  # type: ignore[attr-defined]  # JSON
        without = {key: value for key, value in made.items() if key not in {"shared_ips", "bgp"}}
        place.ip("route", "add", _THEIRS, "dev", "lo", "table", "198", "proto", "248")
        with SharedNode(place, place.name, made) as node:

            def announced() -> set[str]:
                return {each.split()[0] for each in node.routes(198)}

            wait_until(lambda: announced() == {ADDRESS, _THEIRS}, what="both are announced")
            assert node.appliance.reload(without)["ok"]
            wait_until(lambda: announced() == {_THEIRS}, what="ours has gone")
            assert ADDRESS not in place.ip("address", "show", "dev", "lo")
            assert node.appliance.reload(made)["ok"]
            wait_until(lambda: announced() == {ADDRESS, _THEIRS}, what="ours is back")
            for each in (node.appliance.pid, *node.appliance.processes()):
                node.appliance.signal(signal.SIGKILL, pid=each)
            node.appliance.wait(patience=5.0)
            node.appliance.remove_sockets()
            assert announced() == {ADDRESS, _THEIRS}
            node.appliance.write(without)
            with place.inside():
                node.appliance.start()
            wait_until(lambda: announced() == {_THEIRS}, what="what was left has gone")
            assert ADDRESS not in place.ip("address", "show", "dev", "lo")
