"""OpenShift's frr-peers.json, as its installer writes it for a cluster with two racks and both families."""

import json
from collections.abc import Mapping
from typing import Final

PEERS: Final[Mapping[str, object]] = {
    "localASN": 64512,
    "defaultPeers": [
        {
            "peerAddress": "192.0.2.1",
            "peerASN": 64600,
            "password": "s3cret",
            "bfdEnabled": "true",
            "holdTime": "90",
            "keepaliveTime": "30",
        },
        {"peerAddress": "2001:db8::1", "peerASN": 64600, "port": 1179, "ebgpMultiHop": "true"},
    ],
    "communities": ["64512:100"],
    "apiVIPs": ["198.51.100.5", "2001:db8:10::5"],
    "ingressVIPs": ["198.51.100.4"],
    "hostOverrides": {"master-1": [{"peerAddress": "192.0.2.65", "peerASN": 64601, "bfdEnabled": "false"}]},
}


def peers_file(**changes: object) -> bytes:
    """Return the file with some keys changed; None takes one away."""
    found = {**PEERS, **changes}
    return json.dumps({key: each for key, each in found.items() if each is not None}, indent=1).encode()
