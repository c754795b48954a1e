"""The program `discover` without its commands: sources, their state, and its delivery."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import gevent
from gevent.event import Event
from structlog.typing import FilteringBoundLogger

from appliance.core.discovery.finding import address_choice
from appliance.core.discovery.members import Records, verdicts
from appliance.discovery.reports import DiscoveryReports
from appliance.discovery.watched_source import WatchedSource
from appliance.model.paths import Paths
from appliance.model.program_names import DISCOVER
from appliance.model.snapshot.discovery import ApiAddress, Kubernetes, Source
from appliance.model.snapshot.found_servers import BOOTSTRAP, NOTHING, FoundServers, known_from, with_found
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.boards.board_content import content
from appliance.net.control.control_client import ControlUnavailable, ask
from appliance.net.files import found_files
from appliance.net.kubernetes.mailbox import Mailbox
from appliance.net.kubernetes.reflector import ApiServers, Failed, Reflector, Seen
from appliance.net.logging import log as logs
from appliance.wire.boards.health_board import decode
from appliance.wire.kubernetes.requests import Resource
from appliance.wire.lines.control import Question

_PATIENCE = 180.0  # seconds for an answer: another reload may be under way
_FAILURES = 3  # consecutive failures until they are reported


class Delivery:
    """Delivery of found servers to the pools: written to files, and applied by the program `reload`.

    `not_kept` are files that cannot be written, with the reason; `trouble` is why pools lack servers.
    """

    def __init__(self, paths: Paths, reports: DiscoveryReports) -> None:
        self.not_kept: dict[str, str] = {}
        self.trouble: str | None = None
        self._failures = 0
        self._paths = paths
        self._reports = reports
        self._kept: FoundServers | None = None

    def deliver(self) -> bool:
        """Make `reload` apply the written files; return whether it did. Waits for the answer."""
        try:
            answer = ask(self._paths.control("reload"), Question(command="discovered"), timeout=_PATIENCE)
        except ControlUnavailable as error:
            return self._failed(str(error))
        if not answer.ok:
            return self._failed(answer.reason)
        self.done()
        return True

    def done(self) -> None:
        """Forget the trouble: the pools have the found servers."""
        self._failures, self.trouble = 0, None

    def keep(self, found: FoundServers) -> None:
        """Write both files if changed: for `reload`, and for a start without the API."""
        if found == self._kept and not self.not_kept:
            return
        failed: dict[str, str] = {}
        for write in (found_files.write, found_files.keep):
            try:
                write(self._paths, found)
            except OSError as error:
                failed[str(error.filename)] = error.strerror or str(error)
        for path, reason in failed.items():
            if self.not_kept.get(path) != reason:
                self._reports.not_written(path, reason)
        self._kept, self.not_kept = found, failed

    def _failed(self, reason: str) -> bool:
        self._failures += 1
        # At a start, and while it restarts, `reload` is briefly unavailable.
        if self._failures >= _FAILURES and self.trouble != reason:
            self._reports.not_taken(reason)
            self.trouble = reason
        return False


_TURN: Final = 1.0  # seconds between two checks of held servers and failed deliveries
_AGAIN: Final = 5.0  # seconds until `reload` is asked again after an answer without a change
_API_PORT: Final = 6443


class DiscoverService:
    """Watches the sources of the snapshot applied last; passes the servers found to `reload`."""

    def __init__(self, paths: Paths, log: FilteringBoundLogger) -> None:
        self.snapshot: Snapshot | None = None
        self.reports = DiscoveryReports(log)
        self.delivery = Delivery(paths, self.reports)
        self.sources: list[WatchedSource] = []
        self.found = found_files.read(paths)
        self._paths = paths
        self._servers = ApiServers()
        self._mailbox: Mailbox[Seen | Failed] = Mailbox(self._receive)
        self._settings: Kubernetes | None = None
        self._wake = Event()
        self._again_at = 0.0
        self._handed: FoundServers | None = None
        self._greenlet = gevent.spawn(self._work)

    def apply(self, snapshot: Snapshot) -> None:
        """Follow the sources of a snapshot from now on; existing ones continue unchanged."""
        self.snapshot = snapshot
        self.reports.log = logs.obey(DISCOVER, snapshot.log)
        same = snapshot.kubernetes == self._settings
        self._settings = snapshot.kubernetes
        wanted = list(_wanted(snapshot)) if snapshot.kubernetes else []
        going_on = {each.key: each for each in self.sources if same and each.key in wanted}
        self._close_all(each for each in self.sources if each.key not in going_on)
        self.sources = [
            going_on.get((source, bootstrap)) or self._watch(snapshot, source, bootstrap=bootstrap)
            for source, bootstrap in wanted
        ]
        self._know_servers()
        self._wake.set()

    def close(self) -> None:
        """Stop watching."""
        self._greenlet.kill()
        self._close_all(self.sources)
        self._mailbox.close()

    def problems(self) -> tuple[str, ...]:
        """Return the problems, for the operator."""
        wall = time.time()
        found = [why for each in self.sources for why in each.problems(wall)]
        if self.delivery.trouble:
            found.append(f"discover: what was found is not in the pools: {self.delivery.trouble}")
        return tuple(found)

    def _watch(self, snapshot: Snapshot, source: Source, *, bootstrap: bool) -> WatchedSource:
        """Start to watch a source; continues from its earlier state if known."""
        known = self.found.of(source) or known_from(snapshot, source)
        return WatchedSource(source, known, bootstrap=bootstrap, reflect=self._reflect)

    def _reflect(self, resource: Resource) -> Reflector:
        if self._settings is None:
            raise RuntimeError("a source without a way to the API")
        reflector = Reflector(resource, self._settings, self._servers, self._mailbox.post)
        reflector.start()
        return reflector

    @staticmethod
    def _close_all(sources: Iterable[WatchedSource]) -> None:
        for each in sources:
            each.close()

    # What the API shows

    def _receive(self, message: Seen | Failed) -> None:
        source = next((each for each in self.sources if message.reflector in each.resources), None)
        if source is None or self.snapshot is None:
            return  # of a source no longer watched
        match message:
            case Failed():
                self.reports.failed(source.failed(message), message)
            case Seen():
                self.reports.seen(source.seen(message))
                if message.objects is not None:
                    source.observe(address_choice(self.snapshot), time.monotonic())
                    self._know_servers()
                self._wake.set()

    def _know_servers(self) -> None:
        """Ask the known masters in addition to the configured servers."""
        masters = [each for each in self.sources if each.source.is_masters]
        found = [
            ApiAddress(host=server.host, port=_API_PORT)
            for each in masters
            for server in each.members.found.servers
        ]
        self._servers.found((*(api for each in masters for api in each.api_servers), *found))

    # What becomes of it

    def _work(self) -> None:
        while True:
            self._wake.wait(timeout=self._patience())
            self._wake.clear()
            try:
                self._turn()
            except Exception:  # the next turn may succeed; the traceback is in the log
                self.reports.log.exception("discover-failed")

    def _patience(self) -> float:
        deadlines = [each.members.deadline for each in self.sources]
        nearest = min((each for each in deadlines if each is not None), default=None)
        return _TURN if nearest is None else min(_TURN, max(0.01, nearest - time.monotonic()))

    def _turn(self) -> None:
        """Decide which servers are due, and deliver them if the pools differ."""
        snapshot = self.snapshot
        if snapshot is None:
            return
        self._decide(snapshot, self._records())
        self.delivery.keep(self.found)
        if with_found(snapshot, self.found, before=snapshot) == snapshot:
            self.delivery.done()
        elif self.found != self._handed or time.monotonic() >= self._again_at:
            handed = self.found
            done = self.delivery.deliver()
            self._handed, self._again_at = handed, time.monotonic() + (_AGAIN if done else 0.0)

    def _decide(self, snapshot: Snapshot, records: Records) -> None:
        now, wall = time.monotonic(), time.time()
        for each in self.sources:
            members = each.members
            said = verdicts(each.source, members.found.servers, snapshot=snapshot, records=records)
            change = members.decide(now, verdicts=said, api=each.api_servers, wall=wall)
            self.reports.held(members)
            if change is not None:
                self.reports.changed(members, change)
                self._know_servers()
        installed = self.found.installed or any(each.is_installed for each in self.sources)
        if installed and not self.found.installed:
            self.reports.installed()
        sources = tuple(each.members.found for each in self.sources if each.members.found.servers)
        self.found = replace(NOTHING, sources=sources, installed=installed)

    def _records(self) -> Records:
        """Return the results of the checks; none without a board."""
        board = content(self._paths.health_board, decode)
        return board.by_name() if board else {}


def _wanted(snapshot: Snapshot) -> Iterator[tuple[Source, bool]]:
    """Yield the sources, and for each whether to watch for the end of the bootstrap."""
    for each in snapshot.sources:
        yield each, each.is_masters and _has_bootstrap(snapshot)


def _has_bootstrap(snapshot: Snapshot) -> bool:
    """Return whether there is a bootstrap server to remove once the installation is complete."""
    masters = (each for each in snapshot.pools if each.discover and each.discover.source.is_masters)
    return any(server.name == BOOTSTRAP for pool in masters for server in pool.servers)
