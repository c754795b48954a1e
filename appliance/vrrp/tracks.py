"""The tracks of virtual routers' priorities: interfaces, by netlink, and the checks of the tracker.

The tracker is a child process because it may wait, which this program must not; it also runs notify commands.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.core.tracking.priority import TrackResult
from appliance.model.snapshot.virtual_router import Track, TrackKind, VirtualRouter
from appliance.net.boards import heartbeats
from appliance.net.loop.loop import Loop
from appliance.net.netlink.links import Links
from appliance.net.process.python import SAFE_PATH
from appliance.vrrp.groups.router_groups import RouterGroups
from appliance.vrrp.instance.vrrp_instance import VrrpInstance
from appliance.vrrp.tracker_child import TrackerChild
from appliance.wire.lines.tracker_lines import (
    CommandEnded,
    RunCommand,
    TrackerLineError,
    TrackVerdict,
    WatchTracks,
    WriteLine,
    decode_report,
    encode,
)

_TRACKER: Final = (SAFE_PATH, "-m", "appliance.programs.tracker")


class Tracks:
    """The tracks of all virtual routers; `groups` returns the present groups."""

    def __init__(
        self,
        loop: Loop,
        links: Links,
        log: FilteringBoundLogger,
        *,
        heartbeat: Path,
        groups: Callable[[], RouterGroups],
    ) -> None:
        self.log = log
        self._heartbeat = heartbeat
        self._links = links
        self._groups = groups
        self._tracker = TrackerChild(
            loop,
            _TRACKER,
            greeting=self._watch_line,
            on_line=self._reported,
            on_start=self._expect_heartbeat,
            on_end=lambda reason: self.log.warning("tracker-ended", reason=reason),
        )

    def require(self, routers: Iterable[VirtualRouter]) -> None:
        """Start a tracker if one of these routers needs it and none runs."""
        if any(_needs_tracker(each) for each in routers):
            self._tracker.require()

    def report(self) -> None:
        """Send the tracker its tracks."""
        self._tracker.greet()

    def run(self, order: RunCommand | WriteLine) -> None:
        """Have the tracker run a command, or write a line."""
        self._tracker.send(encode(order))

    def update_interfaces(self, instance: VrrpInstance) -> bool:
        """Store the state of the interfaces that an instance tracks; return whether one has changed."""
        before = dict(instance.tracked.results)
        for track in instance.router.track:
            if track.kind is TrackKind.INTERFACE:
                link = self._links.state(track.target)
                up = link is not None and link.up
                instance.tracked.results[track.name] = TrackResult(
                    up=up, detail="" if up else f"{track.target} is down"
                )
        return instance.tracked.results != before

    def close(self) -> None:
        """End the tracker, after it has run its pending commands."""
        self._tracker.close()

    def _watch_line(self) -> bytes:
        tracks = (
            (each.name, track)
            for group in self._groups()
            for each in group.instances.values()
            for track in _watched(each.router)
        )
        return encode(WatchTracks(tracks=tuple(tracks)))

    def _reported(self, line: bytes) -> None:
        try:
            report = decode_report(line)
        except TrackerLineError as error:
            self.log.error("tracker-line", reason=str(error))  # noqa: TRY400  # the line is wrong, not this
            return
        if isinstance(report, TrackVerdict):
            self._verdict(report)
        else:
            self._command_ended(report)

    def _verdict(self, verdict: TrackVerdict) -> None:
        found = self._groups().find(verdict.router)
        if found is None or all(each.name != verdict.track for each in found[1].router.track):
            return
        group, instance = found
        before = instance.tracked.results.get(verdict.track)
        instance.tracked.results[verdict.track] = TrackResult(
            up=verdict.up, value=verdict.value, detail=verdict.detail
        )
        group.update_priority(instance, time.monotonic())
        if before is None or before.up is not verdict.up:
            say = self.log.info if verdict.up else self.log.warning
            say(
                "track-up" if verdict.up else "track-down",
                router=verdict.router,
                track=verdict.track,
                detail=verdict.detail,
                priority=instance.election.priority,
            )

    def _command_ended(self, ended: CommandEnded) -> None:
        self.log.info("notify", router=ended.router, command=list(ended.words), outcome=ended.outcome)

    def _expect_heartbeat(self, pid: int) -> None:
        """Have the watchdog watch a tracker from its start: otherwise one that hangs at once would stay."""
        try:
            heartbeats.expect(self._heartbeat, pid)
        except OSError as error:
            self.log.warning("heartbeat-unseen", name="tracker", reason=error.strerror)


def _watched(router: VirtualRouter) -> Iterator[Track]:
    """Yield the tracks that the tracker watches."""
    return (track for track in router.track if track.kind is not TrackKind.INTERFACE)


def _needs_tracker(router: VirtualRouter) -> bool:
    notify = router.notify
    commands = (notify.active, notify.backup, notify.fault, notify.stop, notify.any)
    return any(commands) or notify.fifo is not None or any(_watched(router))
