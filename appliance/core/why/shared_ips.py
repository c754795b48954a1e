"""Why this node serves a shared IP, or does not, and why a session with a router is down."""

from collections.abc import Iterator, Mapping
from typing import Final

from appliance.core.announce.announce_or_withdraw import LEAVES, SharedState
from appliance.core.status.shared_ips import BFD_UP
from appliance.core.why.explanation import Change, Decider, Evidence, Explanation, Finding, Kind, explained
from appliance.model.messages.quoting import printable
from appliance.model.snapshot.shared_ip import Bgp, Engine, Neighbor, SharedIp, Unhealthy
from appliance.model.snapshot.virtual_router import Track, TrackKind
from appliance.wire.lines.announce_status import AnnounceStatus, NeighborStatus, SharedIpStatus

_SHOWS: Final = "appliance bgp status"
_CAUSES: Final[Mapping[str, str]] = {
    "Connection refused": "Nothing accepts at {address}, TCP port {port}: BGP does not run there, or this"
    " node is no neighbour of the router.",
    "Bad peer AS": "The router and the configuration disagree about an ASN: here this node is {own} and the"
    " router {asn}.",
    "Hold timer expired": "Nothing was received from it for {hold} s: the router or the path to it is down.",
    "BFD": "BFD detected that the router, or the path to it, is dead.",
    "oute to host": "There is no path to {address}: a router that is not on the segment needs `multihop`.",
    "unreachable": "There is no path to {address}: a router that is not on the segment needs `multihop`.",
}
"""Sentences for words in BIRD's errors."""

_SILENT: Final = (
    "It does not answer, or not to this node: a firewall on TCP port {port}, a password that differs or is on"
    " one side only, or TTL security on one side only, all look alike."
)


def explain_shared_ip(shared: SharedIp, evidence: Evidence) -> Explanation:
    """Return why a shared IP is in its state on this node."""
    announce = evidence.observations.answer(AnnounceStatus)
    known = {each.name: each for each in announce.addresses} if announce else {}
    running = known.get(shared.name)
    if announce is None or running is None:
        found = _unknown(shared.name, evidence)
    else:
        found = _served(shared, running, announce, evidence)
    return explained(Kind.SHARED_IP, shared.name, found, evidence)


def explain_neighbor(neighbor: Neighbor, evidence: Evidence) -> Explanation:
    """Return why the session with a router is up, or is not."""
    announce = evidence.observations.answer(AnnounceStatus)
    known = {each.name: each for each in announce.neighbors} if announce else {}
    session = known.get(neighbor.name)
    bgp = evidence.snapshot.bgp
    assert bgp is not None  # noqa: S101  # it has the neighbour
    if bgp.engine is Engine.TABLE:
        found = _of_other_daemon(neighbor, bgp)
    elif announce is None or session is None:
        found = _unknown(neighbor.name, evidence)
    else:
        found = _session(neighbor, session, announce, bgp, evidence)
    return explained(Kind.NEIGHBOR, neighbor.name, found, evidence)


def _unknown(name: str, evidence: Evidence) -> Finding:
    program = next((each for each in evidence.status.programs if each.name == "announce"), None)
    why = f" ({program.reason})" if program and program.reason else ""
    return Finding(
        state="unknown",
        decided_by=Decider.PROGRAM,
        answer=f"This node has no state of {name}: the program announce does not answer{why}.",
        reasons=("What it announced stays announced while it is away.",),
        changes=(Change(text="See what runs", command="appliance status"),),
    )


def _served(
    shared: SharedIp, running: SharedIpStatus, announce: AnnounceStatus, evidence: Evidence
) -> Finding:
    leaves = running.reason == LEAVES
    since, reason = evidence.since(running.since), printable(running.reason) or "no reason is given"
    decided_by = Decider.OPERATOR if leaves else Decider.TRACK if shared.track else Decider.CONFIGURATION
    if running.state == SharedState.STARTING:
        decided_by = Decider.NOBODY
    return Finding(
        state=running.state,
        since=running.since,
        decided_by=decided_by,
        answer=f"{shared.name} is {running.state} on this node{since}: {reason}.",
        reasons=(*_means(shared, running), *_learnt(running, announce, evidence), *_others(running)),
        changes=tuple(_changes(shared, running, leaves=leaves)),
    )


def _means(shared: SharedIp, running: SharedIpStatus) -> Iterator[str]:
    """Yield what routers do in this state."""
    if running.state == SharedState.STARTING:
        yield "It is not announced yet: a node that joined too early would reset connections of others."
    elif running.state == SharedState.DRAINED:
        yield "Routers use this node only if no other serves the address; open connections go on."
    elif running.state == SharedState.WITHDRAWN:
        yield "Routers do not use this node; the address stays, and open connections go on."
        if shared.unhealthy is Unhealthy.WITHDRAW:
            yield "With `unhealthy: last-resort` it would be announced as drained instead."


def _learnt(running: SharedIpStatus, announce: AnnounceStatus, evidence: Evidence) -> Iterator[str]:
    bgp = evidence.snapshot.bgp
    if running.state not in (SharedState.SERVING, SharedState.DRAINED) or bgp is None:
        return
    if bgp.engine is Engine.TABLE:
        table = bgp.serve if running.state == SharedState.SERVING else bgp.drain
        yield (
            f"It is written to the kernel's table {table}; whether it is announced is the other daemon's to"
            " show."
        )
        return
    if running.announced_to:
        yield f"It is announced to {', '.join(running.announced_to)}."
    sessions = {each.name: each for each in announce.neighbors}
    for name in running.neighbors:
        if name not in running.announced_to:
            session = sessions.get(name) or NeighborStatus(name=name)
            why = f": {printable(session.error)}" if session.error else ""
            yield f"{name} has not learnt it: the BGP session is {session.state or 'unknown'}{why}."
    if not running.neighbors:
        yield "No neighbour of this node is to learn it: see `neighbors` of both."


def _others(running: SharedIpStatus) -> Iterator[str]:
    if running.others:
        yield f"{', '.join(map(printable, running.others))} {_have(len(running.others))} it, too."
    else:
        yield "No other known node has it."


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _changes(shared: SharedIp, running: SharedIpStatus, *, leaves: bool) -> Iterator[Change]:
    if leaves:
        yield Change(text="Take part again", command="appliance reload")
    elif running.state == SharedState.SERVING:
        yield Change(text="Leave it to other nodes", command="appliance leave")
    else:
        yield from map(_track, shared.track)
        yield Change(text="It is served again by itself as soon as that is mended", command=_SHOWS)


def _track(track: Track) -> Change:
    what = f"Its track {track.name} is {track.kind} {track.target}"
    is_pool = track.kind is TrackKind.POOL
    return Change(text=what, command=f"appliance why {track.target} --kind pool" if is_pool else None)


def _of_other_daemon(neighbor: Neighbor, bgp: Bgp) -> Finding:
    return Finding(
        state="unknown",
        decided_by=Decider.OTHER_PROGRAM,
        answer=f"The session with {neighbor.name} is another daemon's: `engine: table`.",
        reasons=(f"It announces what is in the kernel's tables {bgp.serve} and {bgp.drain}.",),
        changes=(
            Change(text="What FRR needs for it", command="appliance bgp example frr"),
            Change(text="What BIRD needs for it", command="appliance bgp example bird"),
        ),
    )


def _session(
    neighbor: Neighbor, session: NeighborStatus, announce: AnnounceStatus, bgp: Bgp, evidence: Evidence
) -> Finding:
    since = evidence.since(session.since)
    where = f"{neighbor.name} ({neighbor.address}, AS {neighbor.asn})"
    if session.is_up:
        return Finding(
            state=session.state,
            since=session.since,
            decided_by=Decider.PEER,
            answer=f"The session with {where} is up{since}.",
            reasons=(f"{session.exported} routes are announced to it.", *_bfd(session)),
            changes=(Change(text="See all sessions", command=_SHOWS),),
        )
    if announce.trouble:
        return Finding(
            state=session.state or "unknown",
            since=session.since,
            decided_by=Decider.PROGRAM,
            answer=f"The session with {where} is down{since}: {printable(announce.trouble)}.",
            changes=(Change(text="See all sessions", command=_SHOWS),),
        )
    said = f": {printable(session.error)}" if session.error else ""
    return Finding(
        state=session.state or "unknown",
        since=session.since,
        decided_by=Decider.PEER,
        answer=f"The session with {where} is down{since} (state {session.state or 'unknown'}){said}.",
        reasons=(_cause(neighbor, session, bgp),),
        changes=(
            Change(text="Compare address, `asn`, `password` and `ttl_security` with the router's"),
            Change(text="See all sessions", command=_SHOWS),
        ),
    )


def _cause(neighbor: Neighbor, session: NeighborStatus, bgp: Bgp) -> str:
    sentence = next((text for words, text in _CAUSES.items() if words in session.error), _SILENT)
    host = neighbor.address.partition("%")[0]
    return sentence.format(
        address=host, port=neighbor.port, own=bgp.asn, asn=neighbor.asn, hold=neighbor.hold
    )


def _bfd(session: NeighborStatus) -> Iterator[str]:
    if session.bfd == BFD_UP:
        yield "BFD is up."
    elif session.bfd:
        yield (
            f"BFD is {session.bfd}: the router does not have it for this node, its times differ, or UDP port"
            " 3784 (4784 with `multihop`) is blocked."
        )
