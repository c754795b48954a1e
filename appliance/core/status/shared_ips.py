"""The shared IPs in a status, and what is wrong with them, by the answer of the program `announce`."""

from collections.abc import Iterator
from typing import Final

from appliance.core.announce.announce_or_withdraw import SharedState
from appliance.core.status.problem_kinds import ProblemKind, StatusProblem
from appliance.core.status.status import BgpStatus
from appliance.model.snapshot.shared_ip import Bgp, Engine
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.lines.announce_status import AnnounceStatus, NeighborStatus, SharedIpStatus

BFD_UP: Final = "Up"
"""State of BFD while both sides detect each other's death (RFC 5880 section 4.1)."""


def shared_ips(snapshot: Snapshot, announce: AnnounceStatus | None) -> tuple[SharedIpStatus, ...]:
    """Return every shared IP of the configuration; one that `announce` does not report has the state ""."""
    known = {each.name: each for each in announce.addresses} if announce else {}
    return tuple(
        known.get(each.name) or SharedIpStatus(name=each.name, addresses=each.addresses)
        for each in snapshot.shared_ips
    )


def bgp_status(bgp: Bgp, announce: AnnounceStatus | None) -> BgpStatus:
    """Return how shared IPs are announced, with every neighbour of the configuration.

    One that `announce` does not report has the state ""; with the engine `table` there are none, because
    the sessions are another daemon's.
    """
    known = {each.name: each for each in announce.neighbors} if announce else {}
    ours = bgp.neighbors if bgp.engine is Engine.BIRD else ()
    return BgpStatus(
        engine=bgp.engine.value,
        serve=bgp.serve,
        drain=bgp.drain,
        trouble=announce.trouble if announce else "",
        neighbors=tuple(
            known.get(each.name) or NeighborStatus(name=each.name, address=each.address, asn=each.asn)
            for each in ours
        ),
    )


def shared_troubles(announce: AnnounceStatus) -> Iterator[StatusProblem]:
    """Yield each problem of the shared IPs and of the sessions with neighbours."""
    if announce.trouble:
        yield StatusProblem(ProblemKind.NOT_ANNOUNCED, detail=announce.trouble)
    for shared in announce.addresses:
        if shared.state != SharedState.SERVING:
            why = f": {shared.reason}" if shared.reason else ""
            yield StatusProblem(
                ProblemKind.SHARED_IP, shared.name, detail=f"{shared.state or 'unknown'} here{why}"
            )
    for neighbor in announce.neighbors:
        yield from _session(neighbor, announce)


def _session(neighbor: NeighborStatus, announce: AnnounceStatus) -> Iterator[StatusProblem]:
    if not neighbor.is_up:
        if announce.trouble and not neighbor.state:  # which is the reason, and reported already
            return
        why = f": {neighbor.error}" if neighbor.error else f" (state {neighbor.state or 'unknown'})"
        yield StatusProblem(ProblemKind.BGP_SESSION, neighbor.name, detail=why)
    elif neighbor.bfd not in ("", BFD_UP):
        yield StatusProblem(ProblemKind.BFD_SESSION, neighbor.name, detail=neighbor.bfd)
