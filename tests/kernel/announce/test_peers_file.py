"""OpenShift's file of peers, in the place of kube-vip: the kernel's tables follow it while it is right."""

from pathlib import Path

import pytest
from support.announce.shared_node import SharedNode, config
from support.network.namespaces import Segment
from support.openshift.peers_file import peers_file
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", root=True),
    pytest.mark.slow("reading the file is in `make test`"),
]

_API = ("198.51.100.5", "2001:db8:10::5")


def test_the_tables_follow_the_file(tmp_path: Path):
    """Its virtual IPs are in kube-vip's table; a change is used by itself, a wrong file changes nothing."""
    peers = tmp_path / "frr-peers.json"
    peers.write_bytes(peers_file())
    with Segment() as segment:
        place = segment.node("master-0")
        made = config(
            [],
            bgp={"engine": "table"},
            source={"bgp_peers": str(peers)},
            shared_ips={"ingress": {"track": {"servers": {"pool": "masters", "interval": "100ms"}}}},
        )
        del made["bgp"]["asn"], made["bgp"]["neighbors"]  # type: ignore[attr-defined]  # JSON
        with SharedNode(place, place.name, made) as node:

            def announced() -> set[str]:
                return {
                    each.split()[0] for each in node.routes(198) if "proto 248" in each and "dev lo" in each
                }

            wait_until(lambda: announced() == {*_API, "198.51.100.4"}, what="all addresses are announced")
            peers.write_bytes(peers_file(ingressVIPs=["198.51.100.9"]))
            wait_until(
                lambda: announced() == {*_API, "198.51.100.9"}, what="the change is used", timeout=30.0
            )
            peers.write_bytes(peers_file(ingressVIPs=["198.51.100.999"]))
            refused = "`ingressVIPs[0]`: must be an address"
            wait_until(lambda: refused in node.appliance.log(), what="the file is refused", timeout=30.0)
            assert announced() == {*_API, "198.51.100.9"}
            assert str(peers) in node.appliance.command("status", check=False).stdout.replace("\n", "")
