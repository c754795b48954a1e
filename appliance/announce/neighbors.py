"""The neighbours of this node: BIRD's configuration for them, and the states of their sessions."""

import time
from collections.abc import Iterable
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.announce import bird
from appliance.announce.bird import Bird
from appliance.core.status.shared_ips import BFD_UP
from appliance.model.operator_events import EventKind, OperatorEvent, Publish
from appliance.model.paths import Paths
from appliance.model.snapshot.shared_ip import Bgp, Engine, Neighbor, SharedIp
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files import hmac_keys
from appliance.net.netlink.route_lookup import own_address
from appliance.wire.bird.bird_answers import BfdSession
from appliance.wire.bird.bird_config import (
    BirdConfigError,
    BirdSettings,
    bird_config,
    needs_source,
    protocol,
)
from appliance.wire.lines.announce_status import ESTABLISHED, NeighborStatus

_BFD_COMES_UP: Final = 10.0  # seconds that BFD may take after the session
_SLOW_BFD: Final = 1.0  # seconds taken for an interval that is not known (RFC 5880 section 6.8.3)
_NO_BFD: Final = BfdSession(state="Down")
_SOMEWHERE: Final = "192.0.2.1"  # an address for documentation: only the route to it is looked up


class Neighbors:
    """The neighbours, and BIRD. `trouble` is why BIRD does not run as configured, "" if it does."""

    def __init__(self, paths: Paths, log: FilteringBoundLogger, *, publish: Publish) -> None:
        self.log = log
        self._publish = publish
        self._paths = paths
        self._bird = Bird(paths, log)
        self._statuses: dict[str, NeighborStatus] = {}
        self._without_bfd: set[str] = set()
        self._intervals: dict[str, float] = {}
        self._trouble = ""

    @property
    def trouble(self) -> str:
        """Why BIRD does not run as configured, "" if it does."""
        return self._trouble or self._bird.trouble

    @property
    def statuses(self) -> tuple[NeighborStatus, ...]:
        """The status of each neighbour; with the engine `table` they are the other daemon's."""
        return tuple(self._statuses.values())

    @property
    def established(self) -> frozenset[str]:
        """The names of those whose session is established."""
        return frozenset(name for name, each in self._statuses.items() if each.is_up)

    def objection(self, proposed: Snapshot) -> str:
        """Return why BIRD would refuse a configuration, "" if it would not."""
        if proposed.bgp is None or proposed.bgp.engine is not Engine.BIRD:
            return ""
        try:
            return bird.objection(_text(proposed.bgp, proposed, self._paths), self._paths)
        except (BirdConfigError, OSError) as error:
            return str(error)

    def tend(self, snapshot: Snapshot) -> None:
        """Have BIRD run for this configuration, or end it; called once a second."""
        self._bird.log = self.log
        if snapshot.bgp is None or snapshot.bgp.engine is not Engine.BIRD:
            self._bird.stop()
            self._statuses = {}
            return
        try:
            text = _text(snapshot.bgp, snapshot, self._paths)
        except (BirdConfigError, OSError) as error:
            self._trouble = str(error)
            return
        self._trouble = ""
        self._bird.tend(text, detection=self._detection(snapshot.bgp))
        self._follow(snapshot.bgp)

    def close(self, *, ends: bool) -> None:
        """Leave BIRD to the next run; with `ends` it ends, and withdraws everything."""
        if ends:
            self._bird.stop()
        self._bird.close()

    def _follow(self, bgp: Bgp) -> None:
        """Note since when sessions have their state, and log those that come and go."""
        known, self._statuses = self._statuses, {}
        for neighbor in bgp.neighbors:
            before = known.get(neighbor.name, NeighborStatus(name=neighbor.name, since=time.time()))
            status = self._statuses[neighbor.name] = self._status(neighbor, before)
            if status.is_up and not before.is_up:
                self.log.info("bgp-session-up", neighbor=status.name, address=status.address)
                self._publish(_session_event(EventKind.BGP_SESSION_UP, status, status.address))
            elif before.is_up and not status.is_up:
                reason = status.error or self.trouble
                self.log.error(
                    "bgp-session-down", neighbor=status.name, address=status.address, reason=reason
                )
                self._publish(_session_event(EventKind.BGP_SESSION_DOWN, status, reason))
            self._follow_bfd(status)
        self._without_bfd.intersection_update(self._statuses)

    def _follow_bfd(self, status: NeighborStatus) -> None:
        """Report a session whose BFD does not come up, and later that it has."""
        reported = status.name in self._without_bfd
        if reported and status.bfd == BFD_UP:
            self._without_bfd.discard(status.name)
            self.log.info("bfd-up", neighbor=status.name, address=status.address)
            self._publish(_session_event(EventKind.BFD_UP, status, status.address))
        late = status.is_up and time.time() - status.since > _BFD_COMES_UP
        if late and not reported and status.bfd not in ("", BFD_UP):
            self._without_bfd.add(status.name)
            self.log.error("bfd-down", neighbor=status.name, address=status.address)
            self._publish(_session_event(EventKind.BFD_DOWN, status, f"{status.address}: {status.bfd}"))

    def _detection(self, bgp: Bgp) -> float:
        """Return the longest detection time of the neighbours' BFD, seconds (RFC 5880 section 6.8.4)."""
        times = (
            each.bfd.multiplier * max(each.bfd.interval, self._intervals.get(each.name, _SLOW_BFD))
            for each in bgp.neighbors
            if each.bfd
        )
        return max(times, default=0.0)

    def _status(self, neighbor: Neighbor, before: NeighborStatus) -> NeighborStatus:
        session = self._bird.sessions.get(protocol(neighbor.name))
        state = session.state if session else ""
        bfd = self._bird.bfd.get(neighbor.address.partition("%")[0], _NO_BFD)
        if bfd.state == BFD_UP:
            self._intervals[neighbor.name] = bfd.interval
        return NeighborStatus(
            name=neighbor.name,
            address=neighbor.address,
            asn=neighbor.asn,
            state=state,
            since=before.since if state == before.state else time.time(),
            bfd=bfd.state if neighbor.bfd else "",
            exported=session.exported if session else 0,
            error=(session.error or session.info) if session and state != ESTABLISHED else "",
        )


def _session_event(kind: EventKind, status: NeighborStatus, detail: str) -> OperatorEvent:
    return OperatorEvent(when=time.time(), kind=kind, subject=status.name, after=status.state, detail=detail)


def carries(neighbor: Neighbor, shared: SharedIp) -> bool:
    """Return whether a neighbour learns some address of a shared IP."""
    if shared.neighbors and neighbor.name not in shared.neighbors:
        return False
    return any((6 if ":" in each else 4) in neighbor.families for each in shared.addresses)


def _text(bgp: Bgp, snapshot: Snapshot, paths: Paths) -> str:
    """Return BIRD's configuration; raises BirdConfigError, and OSError for a password file."""
    passwords = {each.name: each.password for each in bgp.neighbors if each.password is not None}
    in_files = {each.name: each.password_file for each in bgp.neighbors if each.password_file}
    passwords |= {name: hmac_keys.text_of(path) for name, path in in_files.items()}
    return bird_config(
        BirdSettings(
            bgp=bgp,
            shared=snapshot.shared_ips,
            router_id=bgp.router_id or _router_id(bgp.neighbors),
            passwords=passwords,
            sources={each.name: _source(each) for each in bgp.neighbors if needs_source(each, bgp)},
            log=str(paths.bird_log),
        )
    )


def _router_id(neighbors: Iterable[Neighbor]) -> str:
    """Return this node's IPv4 address towards the first neighbour that has one; raises OSError."""
    towards = next((each.address for each in neighbors if ":" not in each.address), _SOMEWHERE)
    try:
        return own_address(towards)
    except OSError as error:
        message = "`router_id: auto` finds no IPv4 address of this node: set it"
        raise OSError(error.errno, message) from None


def _source(neighbor: Neighbor) -> str:
    try:
        return own_address(neighbor.address)
    except OSError as error:
        message = f"there is no route to {neighbor.address}: BFD over several hops needs this node's address"
        raise OSError(error.errno, message) from None
