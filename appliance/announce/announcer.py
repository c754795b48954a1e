"""The shared addresses at work: follows tracks and `linger`, and makes the kernel and BIRD follow.

What routers learn changes as soon as a verdict does; BIRD is tended by a greenlet of its own, so one that
does not answer delays nothing.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

import gevent
from gevent.event import Event
from structlog.typing import FilteringBoundLogger

from appliance.announce.kernel_addresses import KernelAddresses
from appliance.announce.neighbors import Neighbors, carries
from appliance.announce.tracks import Tracks
from appliance.core.announce.announce_or_withdraw import (
    Announced,
    Gate,
    SharedState,
    adopted,
    after,
    begun,
    due,
)
from appliance.model.operator_events import EventKind, OperatorEvent, Publish, publish_nowhere
from appliance.model.paths import Paths
from appliance.model.program_names import ANNOUNCE, LINGER
from appliance.model.snapshot.shared_ip import Bgp, SharedIp
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.control_client import status_of
from appliance.net.files import stopped_virtual_ips
from appliance.net.logging import log as logs
from appliance.wire.lines.announce_status import SharedIpStatus
from appliance.wire.lines.control import AnswerProblem
from appliance.wire.lines.linger_status import LingerStatus

_GLANCE: Final = 1.0  # seconds between two checks without news
_ASSERTED: Final = 5.0  # seconds between two checks that the kernel still has everything
_LINGER_ASKED: Final = 0.3  # seconds between two questions to `linger` while an address waits for it
_ANSWERED: Final = 1.0  # seconds for its answer
_TENDED: Final = 1.0  # seconds between two looks at BIRD
_KINDS: Final[Mapping[SharedState, EventKind]] = {
    SharedState.SERVING: EventKind.IP_ANNOUNCED,
    SharedState.DRAINED: EventKind.IP_DRAINED,
    SharedState.WITHDRAWN: EventKind.IP_WITHDRAWN,
}


class Announcer:
    """The shared addresses of the snapshot applied last.

    `on_fault` is called with a bug that has ended the polling: the program no longer works. `publish` gets
    the events.
    """

    def __init__(
        self,
        paths: Paths,
        log: FilteringBoundLogger,
        *,
        on_fault: Callable[[BaseException | None], None],
        publish: Publish = publish_nowhere,
    ) -> None:
        self.snapshot: Snapshot | None = None
        self.log = log
        self.states: dict[str, Announced] = {}
        self.others: Mapping[str, tuple[str, ...]] = {}
        self._known: dict[str, tuple[str, ...]] = {}
        self._paths = paths
        self._takes_part = not stopped_virtual_ips.are_stopped(paths)
        self._ends = False
        self._kernel = KernelAddresses()
        self._publish = publish
        self.neighbors = Neighbors(paths, log, publish=publish)
        self._news = Event()
        self._tracks = Tracks(paths, log, on_change=self._news.set)
        self._unready: Mapping[str, str] = {}
        self._linger_due = float("-inf")
        self._assert_due = float("-inf")
        self._kernel_trouble = ""
        self._looks = [gevent.spawn(each) for each in (self._look_when_due, self._tend_bird)]
        for each in self._looks:
            each.link_exception(lambda ended: on_fault(ended.exception))

    # Configuration

    @property
    def trouble(self) -> str:
        """Why something is not as configured, "" if all is."""
        return "; ".join(filter(None, (self._kernel_trouble, self.neighbors.trouble)))

    def apply(self, snapshot: Snapshot) -> None:
        """Change to the shared addresses of a snapshot; those that stay keep their state."""
        first = self.snapshot is None
        self.log = self._tracks.log = self.neighbors.log = logs.obey(ANNOUNCE, snapshot.log)
        self.snapshot = snapshot
        found = self._adopt(snapshot.shared_ips, snapshot.bgp) if first and snapshot.bgp else {}
        now = time.monotonic()
        self.states = {
            each.name: self.states.get(each.name) or found.get(each.name) or begun(now)
            for each in snapshot.shared_ips
        }
        self._tracks.follow({track for each in snapshot.shared_ips for track in each.track})
        self._assert_due = self._linger_due = float("-inf")
        self._news.set()

    def objections(self, proposed: Snapshot) -> Iterable[AnswerProblem]:
        """Yield why a snapshot cannot be applied: what BIRD would refuse."""
        if why := self.neighbors.objection(proposed):
            yield AnswerProblem(message=why, path="bgp")

    def take_part(self, *, wanted: bool) -> None:
        """Leave the addresses to other nodes, or take part again."""
        self._takes_part = wanted
        self._news.set()

    def leave(self) -> None:
        """Withdraw everything in order, and return when that is done."""
        self._ends = True  # `reload` may still send that this node takes part
        self._news.set()
        while any(each.is_announced for each in self.states.values()):
            gevent.sleep(0.05)

    def close(self, *, ends: bool) -> None:
        """Stop; with `ends` BIRD and all routes go, while addresses stay for the connections to them."""
        gevent.killall(self._looks)
        self._tracks.close()
        self.neighbors.close(ends=ends)
        self._kernel.close()

    def _adopt(self, every: Iterable[SharedIp], bgp: Bgp) -> dict[str, Announced]:
        """Return the states in which an earlier run left the addresses."""
        try:
            known = self._kernel.adopted(bgp)
        except OSError as error:
            self._kernel_trouble = error.strerror or str(error)
            return {}
        now = time.monotonic()
        found = {}
        for shared in every:
            states = {known[each] for each in shared.addresses if each in known}
            if states:
                serves = SharedState.SERVING in states
                found[shared.name] = adopted(SharedState.SERVING if serves else SharedState.DRAINED, now)
        if found:
            self.log.info("announce-adopted", shared_ips=sorted(found))
        return found

    # Polling

    def _look_when_due(self) -> None:
        while True:
            self._news.wait(self._pause())
            self._news.clear()
            if self.snapshot is not None:
                self._look(self.snapshot, time.monotonic())

    def _pause(self) -> float:
        now, wait = time.monotonic(), _GLANCE
        for shared in self.snapshot.shared_ips if self.snapshot else ():
            at = due(self.states[shared.name], self._gate(shared), drain=shared.drain)
            wait = min(wait, at - now) if at is not None else wait
        return max(wait, 0.01)

    def _look(self, snapshot: Snapshot, now: float) -> None:
        self._look_at_linger(snapshot, now)
        if snapshot is not self.snapshot:
            return  # another one was applied meanwhile, which is news
        before = self.states
        self.states = {
            each.name: after(
                before[each.name], self._gate(each), unhealthy=each.unhealthy, drain=each.drain, now=now
            )
            for each in snapshot.shared_ips
        }
        changed = [name for name, each in self.states.items() if each.state is not before[name].state]
        if changed or now >= self._assert_due:
            self._settle(snapshot, now)
        for name in changed:
            state = self.states[name]
            event = self.log.info if state.state is SharedState.SERVING else self.log.warning
            event("shared-ip", name=name, state=state.state.value, reason=state.reason)
            if state.state in _KINDS:
                self._publish(_changed(name, before[name], state))

    def _gate(self, shared: SharedIp) -> Gate:
        up, why = self._tracks.verdict(shared.track)
        return Gate(
            tracks=up,
            why=why,
            unready=self._unready.get(shared.name, ""),
            leaves=self._ends or not self._takes_part,
        )

    def _look_at_linger(self, snapshot: Snapshot, now: float) -> None:
        """Ask `linger` whether connections of other nodes would be forwarded, and who else has addresses."""
        if snapshot.linger is None:
            self._unready, self.others, self._known = {}, {}, {}
            return
        if now < self._linger_due or self._ends:
            return
        status = status_of(self._paths.control(LINGER), LingerStatus, timeout=_ANSWERED)
        known = {each.address: each for each in status.shared} if status else {}
        unready, others = {}, {}
        for shared in snapshot.shared_ips:
            literal = [each.partition("/")[0] for each in shared.addresses]
            missing = [each for each in literal if each not in known or not known[each].ready]
            if missing:
                unready[shared.name] = "`linger` does not forward connections of other nodes yet"
            others[shared.name] = tuple(
                sorted({node for each in literal if each in known for node in known[each].nodes})
            )
        for name in others.keys() - unready.keys():  # of the rest, `linger` has not received all reports yet
            before, self._known[name] = self._known.get(name), others[name]
            if before and not others[name]:
                self.log.warning("last-path", name=name, before=list(before))
                self._publish(_last_path(name, before))
        self._unready, self.others = unready, others
        self._linger_due = now + (_LINGER_ASKED if unready else _GLANCE)

    def _settle(self, snapshot: Snapshot, now: float) -> None:
        """Make the kernel follow; if it refuses, the next look tries again."""
        self._assert_due = now + _ASSERTED
        states = {
            each: self.states[shared.name].state
            for shared in snapshot.shared_ips
            for each in shared.addresses
        }
        try:
            restored = self._kernel.put(states, snapshot.bgp)
        except OSError as error:
            self._assert_due = now
            self._note(error.strerror or str(error))
            return
        self._note("")
        if restored:
            self.log.warning("route-restored", routes=list(restored))

    def _note(self, trouble: str) -> None:
        before, self._kernel_trouble = self._kernel_trouble, trouble
        if trouble and trouble != before:
            self.log.error("announce-failed", reason=trouble)
        elif before and not trouble:
            self.log.info("announce-works-again")

    def _tend_bird(self) -> None:
        while True:
            if self.snapshot is not None:
                self.neighbors.tend(self.snapshot)
            gevent.sleep(_TENDED)

    # Status

    def shared_statuses(self) -> tuple[SharedIpStatus, ...]:
        """Return the status of each shared IP."""
        snapshot = self.snapshot
        if snapshot is None or snapshot.bgp is None:
            return ()
        return tuple(map(partial(self._shared_status, snapshot.bgp), snapshot.shared_ips))

    def _shared_status(self, bgp: Bgp, shared: SharedIp) -> SharedIpStatus:
        state = self.states[shared.name]
        mine = [each.name for each in bgp.neighbors if carries(each, shared)]
        up = self.neighbors.established if state.is_announced else frozenset()
        return SharedIpStatus(
            name=shared.name,
            addresses=shared.addresses,
            state=state.state.value,
            since=time.time() - (time.monotonic() - state.since),
            reason=state.reason,
            neighbors=tuple(mine),
            announced_to=tuple(each for each in mine if each in up),
            others=self.others.get(shared.name, ()),
        )


def _last_path(name: str, before: Sequence[str]) -> OperatorEvent:
    gone = f"until then {', '.join(before)}"
    return OperatorEvent(when=time.time(), kind=EventKind.LAST_PATH, subject=name, detail=gone)


def _changed(name: str, before: Announced, after: Announced) -> OperatorEvent:
    return OperatorEvent(
        when=time.time(),
        kind=_KINDS[after.state],
        subject=name,
        before=before.state.value,
        after=after.state.value,
        cause=after.reason,
    )
