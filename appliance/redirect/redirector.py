"""Redirects at work: polls workers and pools, and makes the kernel's rules follow.

Whether workers accept is checked twice a second, and when a worker exits; whether a pool has a server up, at
the redirect's interval. The program's one thread makes one kernel call at a time: a report that the rules are
gone is reliable.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

import gevent
from gevent import Greenlet
from gevent.event import Event
from structlog.typing import FilteringBoundLogger

from appliance.core.redirect.rules import Redirection, redirections
from appliance.core.redirect.switch import RedirectSwitch, Seen, switches
from appliance.model.paths import Paths
from appliance.model.program_names import REDIRECT
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.logging import log as logs
from appliance.net.nftables.nftables import NftablesError
from appliance.net.tracking.pool import PoolTrack
from appliance.net.tracking.program import ProxyTrack
from appliance.net.tracking.track_check import LookResult, TrackUnknown
from appliance.redirect.kernel_rules import KernelRules
from appliance.wire.lines.redirect_status import RedirectedFrontend, RedirectState
from appliance.wire.nftables.nftables_commands import Family

_GLANCE: Final = 0.5  # seconds between two checks whether workers accept
_UNSEEN: Final = LookResult(up=False, detail="no worker was looked for yet")


class Redirector:
    """The redirects of the snapshot applied last.

    `trouble` is what is wrong with the rules, empty for nothing. `on_fault` is called with a bug that has
    ended the polling: the program no longer works.
    """

    def __init__(
        self,
        paths: Paths,
        log: FilteringBoundLogger,
        rules: KernelRules,
        *,
        on_fault: Callable[[BaseException | None], None],
    ) -> None:
        self.snapshot: Snapshot | None = None
        self.trouble = ""
        self.rules = rules
        self.log = log
        self._paths = paths
        self._switches: dict[str, RedirectSwitch] = {}
        self._workers: dict[str, LookResult] = {}
        self._glances: dict[str, Greenlet] = {}
        self._withdrawn: frozenset[str] = frozenset()
        self._monitored: frozenset[Family] = frozenset()
        self._unknown: dict[str, str] = {}
        self._moved = Event()
        self._on_fault = on_fault
        self._looks = self._spawn(self._look_when_due)

    # Configuration

    def apply(self, snapshot: Snapshot) -> None:
        """Change to the redirects of a snapshot; unchanged ones keep their state.

        When this returns, the rules for addresses that this snapshot no longer binds are gone.
        """
        first = self.snapshot is None
        self.log = logs.obey(REDIRECT, snapshot.log)
        found = {
            each.name: each for each in switches(snapshot, resumed=self._were_on() if first else frozenset())
        }
        for name, each in found.items():
            before = self._switches.get(name)
            if before is not None and each.same_as(before):
                found[name] = before
        self._switches, self.snapshot, self._withdrawn = found, snapshot, frozenset()
        self._follow_programs()
        self._settle()
        self._moved.set()

    def withdraw(self, program: str) -> None:
        """Remove the rules for a proxy until the next snapshot: it will accept nothing more."""
        self._withdrawn |= {program}
        self._settle()

    def close(self, *, keep_flows: bool) -> None:
        """Stop polling, and remove everything; with `keep_flows` redirected connections continue."""
        self._looks.kill()
        gevent.killall(list(self._glances.values()))
        self.rules.close(keep_flows=keep_flows)

    # Status

    def statuses(self) -> tuple[RedirectedFrontend, ...]:
        """Return the status of each redirect."""
        return tuple(map(self._status, self._switches.values()))

    def _status(self, switch: RedirectSwitch) -> RedirectedFrontend:
        meant = tuple(redirections(switch))
        since = 0.0 if switch.since is None else time.time() - (time.monotonic() - switch.since)
        return RedirectedFrontend(
            name=switch.name,
            sources=tuple(str(each.source) for each in meant),
            targets=tuple(dict.fromkeys(str(each.target) for each in meant)),
            state=self._state(switch, meant).value,
            since=since,
            reason=self._reason(switch, meant),
            streak=switch.streak,
        )

    def _state(self, switch: RedirectSwitch, meant: tuple[Redirection, ...]) -> RedirectState:
        if self.trouble:
            return RedirectState.FAILED
        if meant and all(each.family in self._monitored for each in meant):
            return RedirectState.STANDS_BACK
        return RedirectState.ON if self._is_wanted(switch) else RedirectState.OFF

    def _reason(self, switch: RedirectSwitch, meant: tuple[Redirection, ...]) -> str:
        if self.trouble:
            return self.trouble
        theirs = sorted(self._monitored & {each.family for each in meant})
        if theirs:
            return f"OpenShift's monitor has its own rules ({', '.join(theirs)}); {switch.reason}"
        return f"{switch.program} stops" if switch.program in self._withdrawn else switch.reason

    # Polling

    def _follow_programs(self) -> None:
        """Watch the workers of exactly the programs that are used now."""
        used = {each.program for each in self._switches.values()}
        for program in self._glances.keys() - used:
            self._glances.pop(program).kill()
            self._workers.pop(program, None)
        for program in used - self._glances.keys():
            self._glances[program] = self._spawn(partial(self._glance, program))

    def _spawn(self, run: Callable[[], None]) -> Greenlet:
        made = gevent.spawn(run)
        made.link_exception(lambda ended: self._on_fault(ended.exception))
        return made

    def _glance(self, program: str) -> None:
        track = ProxyTrack(program, self._paths)
        try:
            while True:
                self._glanced(program, track)
                track.wait(_GLANCE)
        finally:
            track.close()

    def _glanced(self, program: str, track: ProxyTrack) -> None:
        try:
            found = track.look()
        except TrackUnknown as unknown:
            self._note_unknown(program, str(unknown))
            return
        self._note_unknown(program, "")
        first = program not in self._workers
        self._workers[program] = found
        if first:
            self._moved.set()
        if found.up:
            return
        mine = [each for each in self._switches.values() if each.program == program and each.wanted]
        for each in mine:
            each.nobody(Seen(accepting=False, up=False, detail=found.detail), time.monotonic())
        if mine:
            self._settle()

    def _look_when_due(self) -> None:
        while True:
            now = time.monotonic()
            due = [each for each in self._ready_to_look() if each.due <= now]
            for each in due:
                each.look(self._seen(each), now)
            if due:
                self._settle()
            waits = (each.due - time.monotonic() for each in self._ready_to_look())
            self._moved.wait(max(0.0, min(waits, default=_GLANCE)))
            self._moved.clear()

    def _ready_to_look(self) -> Iterable[RedirectSwitch]:
        return [each for each in self._switches.values() if each.program in self._workers]

    def _seen(self, switch: RedirectSwitch) -> Seen:
        workers = self._workers.get(switch.program, _UNSEEN)
        if not workers.up or switch.pool is None:
            return Seen(accepting=workers.up, up=workers.up, detail=workers.detail)
        track = PoolTrack(switch.pool, self._paths.health_board)
        try:
            pool = track.look()
        finally:
            track.close()
        return Seen(accepting=True, up=pool.up, detail=f"{switch.pool}: {pool.detail}")

    # Rules

    def _were_on(self) -> frozenset[str]:
        try:
            return self.rules.were_on()
        except NftablesError as error:
            self._note(str(error))
            return frozenset()

    def _is_wanted(self, switch: RedirectSwitch) -> bool:
        return switch.wanted and switch.program not in self._withdrawn

    def _settle(self) -> None:
        """Make the rules follow; if the kernel refuses, the next poll tries again."""
        meant = {each.name: tuple(redirections(each)) for each in self._switches.values()}
        families = tuple(dict.fromkeys(each.family for found in meant.values() for each in found))
        self._look_for_monitor(families)
        try:
            wanted = self._wanted(meant)
            if self.rules.install(families, wanted):
                on = sorted({each.name for each in wanted})
                self.log.info("redirect-rules", on=on, stands_back=sorted(self._monitored))
        except NftablesError as error:
            self._note(str(error))
            return
        self._note("")

    def _wanted(self, meant: Mapping[str, tuple[Redirection, ...]]) -> list[Redirection]:
        return [
            each
            for switch in self._switches.values()
            if self._is_wanted(switch)
            for each in meant[switch.name]
            if each.family not in self._monitored
        ]

    def _look_for_monitor(self, families: Iterable[Family]) -> None:
        """Note whether monitor has its rules; if unknown, assume no change and make ours."""
        try:
            self._monitored = self.rules.taken_by_monitor(families)
        except NftablesError as error:
            self._note_unknown("monitor", str(error))
        else:
            self._note_unknown("monitor", "")

    def _note_unknown(self, what: str, reason: str) -> None:
        """Log once why something cannot be read, and again if the reason changes."""
        if reason and self._unknown.get(what) != reason:
            self.log.warning("look-impossible", what=what, reason=reason)
        self._unknown[what] = reason

    def _note(self, trouble: str) -> None:
        before, self.trouble = self.trouble, trouble
        if trouble and trouble != before:
            self.log.error("redirect-failed", reason=trouble)
        elif before and not trouble:
            self.log.info("redirect-works-again")
