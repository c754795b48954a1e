"""The tracker: checks everything that virtual routers track, and runs their notify commands, for `vrrp`.

Started by `vrrp` as `python -m appliance.programs.tracker [FD]`, where FD is its end of a socket pair;
without it that is standard input. It runs until that socket is closed: then the checks end with all their
processes, and commands already ordered are finished, each within its timeout, because those of a stop are
ordered last. Signals meant for `vrrp` often also reach its children (a terminal's, systemd's): they end the
tracker only after `vrrp` has exited.
"""

import os
import signal
import sys
from collections import defaultdict
from typing import Final

import gevent
from gevent import socket
from gevent.event import Event
from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.model.program_names import TRACKER
from appliance.model.snapshot.virtual_router import Track, TrackKind
from appliance.net.boards.hub_heartbeat import HubHeartbeat
from appliance.net.logging.line_limiter import limiter
from appliance.net.privileges import capabilities
from appliance.net.process.ordinary_scheduling import be_ordinary
from appliance.net.process.signals import survive
from appliance.net.scripts.notify_commands import NotifyCommands, NotifyFifos
from appliance.net.scripts.script_leftovers import end_leftovers
from appliance.net.starting.accepted_log import PAUSE, AcceptedLog
from appliance.net.tracking.track_follower import FollowedTracks, TrackFollower
from appliance.wire.lines.control import ControlError
from appliance.wire.lines.line_buffer import LineBuffer
from appliance.wire.lines.tracker_lines import (
    CommandEnded,
    RunCommand,
    TrackerLineError,
    TrackVerdict,
    WatchTracks,
    WriteLine,
    decode_order,
    encode,
)

_CHUNK: Final = 65536
_BROKEN: Final = 65  # sysexits.h, EX_DATAERR


class TrackerReports:
    """Messages to `vrrp`. While it does not read, a later verdict replaces an earlier one."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._waiting: dict[object, bytes] = {}
        self._any = Event()
        self._loop = gevent.spawn(self._send)

    def verdict(self, verdict: TrackVerdict) -> None:
        """Send the present verdict of a track."""
        self._put((verdict.router, verdict.track), encode(verdict))

    def command_ended(self, ended: CommandEnded) -> None:
        """Send how a command ended."""
        self._put(object(), encode(ended))

    def _put(self, key: object, line: bytes) -> None:
        self._waiting.pop(key, None)
        self._waiting[key] = line
        self._any.set()

    def _send(self) -> None:
        while True:
            self._any.wait()
            self._any.clear()
            while self._waiting:
                key = next(iter(self._waiting))
                try:
                    self._connection.sendall(self._waiting.pop(key))
                except OSError:
                    return  # vrrp has exited, which `Tracker` notices when reading


class Tracker:
    """The checked tracks. Routers with identical tracks share one check."""

    def __init__(self, connection: socket.socket, paths: Paths, log: FilteringBoundLogger) -> None:
        self._connection = connection
        self._log = log
        self._reports = TrackerReports(connection)
        self._tracks = FollowedTracks(paths, log, on_change=self._report)
        self._routers: dict[Track, list[str]] = {}
        self._commands = NotifyCommands(self._reports.command_ended)
        self._fifos = NotifyFifos(self._reports.command_ended)
        self._alone = False
        self._heartbeat = HubHeartbeat(paths.heartbeat(TRACKER), log)

    def serve(self) -> int:
        """Process the orders of `vrrp` until it exits; return the exit status."""
        try:
            self._obey_orders()
        except (TrackerLineError, ControlError) as error:
            self._log.error("tracker-line", error=str(error))
            return _BROKEN
        finally:
            self._heartbeat.close()  # from here on the file is the next tracker's
            self._watch({})
            self._alone = True
            self._commands.finish()
            self._fifos.close()
        return 0

    def interrupt(self) -> None:
        """End running commands if `vrrp` has exited."""
        if self._alone:
            self._commands.close()

    def _obey_orders(self) -> None:
        lines = LineBuffer()
        while chunk := self._receive():
            for line in lines.feed(chunk):
                match decode_order(line):
                    case WatchTracks(tracks=tracks):
                        self._watch(_by_track(tracks))
                    case RunCommand() as order:
                        self._commands.run(order)
                    case WriteLine() as order:
                        self._fifos.write(order)

    def _receive(self) -> bytes:
        try:
            return bytes(self._connection.recv(_CHUNK))
        except OSError:
            return b""

    def _watch(self, wanted: dict[Track, list[str]]) -> None:
        """Check exactly these tracks. Verdicts of existing ones are sent again: a router may be new."""
        known = [each for track, each in self._tracks.followers.items() if track in wanted]
        self._routers = wanted
        self._tracks.follow(wanted.keys())
        for each in known:
            self._report(each)

    def _report(self, follower: TrackFollower) -> None:
        track, state = follower.track, follower.state
        if state is None:
            return
        for router in self._routers.get(track, ()):
            self._reports.verdict(
                TrackVerdict(
                    router=router,
                    track=track.name,
                    up=state.up,
                    value=state.value,
                    detail=state.detail,
                    at=state.at,
                )
            )


def _by_track(tracks: tuple[tuple[str, Track], ...]) -> dict[Track, list[str]]:
    found: defaultdict[Track, list[str]] = defaultdict(list)
    for router, track in tracks:
        if track.kind is not TrackKind.INTERFACE:  # netlink notifies vrrp itself of those
            found[track].append(router)
    return dict(found)


def main() -> int:
    """Serve the `vrrp` that holds the other end of the socket."""
    connection = socket.socket(fileno=int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    connection.set_inheritable(False)  # the standard library's signature
    be_ordinary()
    capabilities.keep_from_children()
    paths = Paths.from_environment(os.environ)
    accepted = AcceptedLog(TRACKER, paths)
    log = accepted.logger
    gevent.spawn(_follow, accepted)
    gevent.spawn(limiter().follow, gevent.sleep)
    left = end_leftovers(paths.runtime)
    if left:
        log.warning("scripts-left", killed=left)
    tracker = Tracker(connection, paths, log)
    survive(signal.SIGUSR1, signal.SIGUSR2)
    for number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(number, tracker.interrupt)
    return tracker.serve()


def _follow(accepted: AcceptedLog) -> None:
    while True:
        gevent.sleep(PAUSE)
        accepted.follow()


if __name__ == "__main__":
    # Not sys.exit: a thread that hangs in a file system must not keep the process alive.
    os._exit(main())
