"""Metrics of shared IPs and of the sessions with neighbours, also under the names that MetalLB has.

MetalLB's label `peer` is address and port of BGP, also of IPv6 without brackets, and the address alone of BFD
(frr-tools/metrics/collector). `vrf` is that of FRR's default instance. Its `metallb_bgp_updates_total` is not
here: BIRD counts changes of routes, not messages.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from appliance.core.announce.announce_or_withdraw import SharedState
from appliance.core.status.observations import Observations
from appliance.core.status.shared_ips import BFD_UP
from appliance.core.status.status import BgpStatus, Status
from appliance.model.snapshot.shared_ip import Neighbor
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.exposition import Metric, gauge, labels
from appliance.wire.lines.announce_status import NeighborStatus

_VRF: Final = "default"


def shared_ip_metrics(status: Status, observations: Observations) -> Iterator[Metric]:
    """Yield the metrics, none if the configuration has no shared IPs."""
    if not status.shared_ips:
        return
    about = "1 for the current state of a shared IP on this node, 0 for the others."
    yield gauge(
        "appliance_shared_ip_state",
        about,
        [
            (labels(name=each.name, state=state.value), int(each.state == state))
            for each in status.shared_ips
            for state in SharedState
        ],
    )
    about = "Other nodes that have a shared IP, by their reports."
    yield gauge(
        "appliance_shared_ip_other_nodes",
        about,
        [(labels(name=each.name), len(each.others)) for each in status.shared_ips],
    )
    if status.bgp is not None and isinstance(observations.snapshot, Snapshot) and observations.snapshot.bgp:
        yield from _sessions(status.bgp, observations.snapshot.bgp.neighbors)


def _sessions(bgp: BgpStatus, configured: Iterable[Neighbor]) -> Iterator[Metric]:
    ports = {each.name: each.port for each in configured}
    named = [(labels(neighbor=each.name), each) for each in bgp.neighbors]
    with_bfd = [(name, each) for name, each in named if each.bfd]
    about = "1 if the BGP session with a neighbour is established."
    yield gauge("appliance_bgp_session_up", about, [(name, int(each.is_up)) for name, each in named])
    about = "1 if BFD with a neighbour is up; absent without BFD."
    yield gauge("appliance_bgp_bfd_up", about, [(name, _bfd(each)) for name, each in with_bfd])
    about = "Routes that are announced to a neighbour."
    yield gauge("appliance_bgp_announced", about, [(name, each.exported) for name, each in named])
    peers = [(labels(peer=_peer(each, ports), vrf=_VRF), each) for each in bgp.neighbors]
    about = "As MetalLB's: 1 if the BGP session with a peer is established."
    yield gauge("metallb_bgp_session_up", about, [(name, int(each.is_up)) for name, each in peers])
    about = "As MetalLB's: routes that are announced to a peer; a gauge in spite of its name."
    yield gauge(
        "metallb_bgp_announced_prefixes_total", about, [(name, each.exported) for name, each in peers]
    )
    about = "As MetalLB's: 1 if BFD with a peer is up."
    found = [(labels(peer=_host(each), vrf=_VRF), _bfd(each)) for each in bgp.neighbors if each.bfd]
    yield gauge("metallb_bfd_session_up", about, found)


def _bfd(neighbor: NeighborStatus) -> int:
    return int(neighbor.bfd == BFD_UP)


def _host(neighbor: NeighborStatus) -> str:
    return neighbor.address.partition("%")[0]


def _peer(neighbor: NeighborStatus, ports: dict[str, int]) -> str:
    return f"{_host(neighbor)}:{ports.get(neighbor.name, 179)}"
