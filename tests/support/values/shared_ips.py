"""Shared IPs, neighbours, and what `announce` answers, for tests; a builder takes the fields to change."""

from dataclasses import replace
from typing import Final

from support.values.snapshots import snapshot

from appliance.model.snapshot.shared_ip import Bfd, Bgp, Engine, Neighbor, SharedIp, Unhealthy
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.lines.announce_status import AnnounceStatus, NeighborStatus, SharedIpStatus

ADDRESSES: Final = ("198.51.100.10/32", "2001:db8:10::10/128")


def shared_ip(name: str = "ingress-all", **changes: object) -> SharedIp:
    """Return a shared IP of both families for all neighbours."""
    made = SharedIp(
        name=name,
        addresses=ADDRESSES,
        track=(),
        unhealthy=Unhealthy.LAST_RESORT,
        communities=(),
        drain=5.0,
        neighbors=(),
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # the test's own fields


def neighbor(name: str = "tor-a", **changes: object) -> Neighbor:
    """Return a router on the segment, with BFD and no password."""
    made = Neighbor(
        name=name,
        address="10.0.0.1",
        asn=64600,
        port=179,
        password=None,
        password_file=None,
        hold=9,
        bfd=Bfd(interval=0.1, multiplier=3),
        multihop=None,
        ttl_security=False,
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # the test's own fields


def bgp(*neighbors: Neighbor, **changes: object) -> Bgp:
    """Return BGP by BIRD with these neighbours, kube-vip's tables."""
    made = Bgp(
        engine=Engine.BIRD,
        asn=64512,
        router_id="10.0.0.11",
        serve=198,
        drain=199,
        graceful_restart=15,
        neighbors=neighbors,
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # the test's own fields


def with_shared(*shared: SharedIp, by: Bgp | None = None, **changes: object) -> Snapshot:
    """Return a snapshot with these shared IPs, by default one and one neighbour."""
    return snapshot(
        number=7,
        shared_ips=shared or (shared_ip(),),
        bgp=by or bgp(neighbor()),
        groups=[],
        pools=[],
        **changes,
    )


def shared_status(name: str = "ingress-all", **changes: object) -> SharedIpStatus:
    """Return a shared IP that is served, that its neighbour has learnt, and that two other nodes serve."""
    made = SharedIpStatus(
        name=name,
        addresses=ADDRESSES,
        state="serving",
        since=100.0,
        reason="all tracks are up",
        neighbors=("tor-a",),
        announced_to=("tor-a",),
        others=("lb-1", "lb-2"),
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # the test's own fields


def session(name: str = "tor-a", **changes: object) -> NeighborStatus:
    """Return a session that is established, with BFD."""
    made = NeighborStatus(
        name=name, address="10.0.0.1", asn=64600, state="Established", since=50.0, bfd="Up", exported=1
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # the test's own fields


def announcing(*shared: SharedIpStatus, by: tuple[NeighborStatus, ...], **changes: object) -> AnnounceStatus:
    """Return the answer of `announce` with these shared IPs and sessions."""
    made = AnnounceStatus(program="announce", pid=77, engine="bird", addresses=shared, neighbors=by)
    return replace(made, **changes)  # type: ignore[arg-type]  # the test's own fields
