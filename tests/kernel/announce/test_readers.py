"""Members of `group:` see shared IPs and sessions, and no password of them."""

import grp
import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.announce.routers import ASN
from support.announce.shared_node import ADDRESS, SharedNode, config
from support.machines import nobody
from support.network.namespaces import Segment
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "bird", "setpriv", "unshare", root=True),
    pytest.mark.skipif(not nobody.possible(), reason="this machine gives no mount namespace"),
    pytest.mark.slow("the rights of other commands are in `make test`"),
]

GROUP = "daemon"
COMMAND = Path(sys.executable).parent / "appliance"


def test_a_member_sees_shared_ips_and_no_password():
    """`bgp status`, `bgp example` and `why` work without root."""
    with Segment() as segment:
        place = segment.node("lb-0")
        tor = {"address": "192.0.2.99", "asn": ASN, "password": "hidden"}
        bgp = {"router_id": place.address, "neighbors": {"tor-0": tor}}
        with SharedNode(place, place.name, config([], bgp=bgp, group=GROUP)) as node:
            node.appliance.paths.runtime.parent.chmod(0o755)
            wait_until(lambda: node.state() == "serving", what="it serves")
            shown = _as_member(node, "bgp", "status", "--json")
            example = _as_member(node, "bgp", "example", "bird")
            why = _as_member(node, "why", "shared/ingress")
    assert json.loads(shown)["addresses"][0]["addresses"][0] == f"{ADDRESS}/32"
    assert "protocol bgp" in example
    assert "ingress is serving on this node" in why
    assert "hidden" not in shown + example + why


def _as_member(node: SharedNode, *arguments: str) -> str:
    words = nobody.command([str(COMMAND), *arguments], groups=[grp.getgrnam(GROUP).gr_gid])
    done = subprocess.run(
        words, env=node.appliance.environment, capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout
