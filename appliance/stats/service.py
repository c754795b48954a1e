"""The service of `stats` as a snapshot defines it: addresses, access control, and the command socket."""

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import gevent
from gevent import socket
from structlog.typing import FilteringBoundLogger

from appliance.core.status.headline import headline
from appliance.model.paths import Paths
from appliance.model.program_names import LINGER
from appliance.model.snapshot.snapshot import Snapshot, Stats
from appliance.net.control.control_client import ControlUnavailable, ask
from appliance.net.control.kept_listener import RETRY, KeptListener
from appliance.net.listening.bind_addresses import Address
from appliance.net.listening.bind_refusals import BindProblem
from appliance.net.listening.listeners import Listeners, ReservedBinds
from appliance.net.loop.turns import until_next
from appliance.stats.access import AccessError, WebAccess, web_access
from appliance.stats.changes import Changes
from appliance.stats.command_line import CommandLine
from appliance.stats.figures import HistoryFile, LatestFigures
from appliance.stats.pages import Pages
from appliance.stats.web_server import WebServer
from appliance.wire.lines.control import AnswerProblem, Question

_PAUSE: Final = 5.0  # seconds from one report to the next, at least
_PAUSE_AT_MOST: Final = 40.0
_COST: Final = 0.05
"""Largest share of a processor for collecting figures that no client has asked for."""

_ASKED: Final = 1.0  # seconds for an answer

Serve = Callable[[socket.socket], WebServer]
"""Returns a server for a listening socket, and takes over the socket."""


def report_always(paths: Paths, figures: LatestFigures) -> None:
    """Report as long as the greenlet runs."""
    while True:
        begun = time.thread_time()
        report(paths, figures)
        pause = (time.thread_time() - begun) / _COST
        gevent.sleep(min(max(pause, _PAUSE), _PAUSE_AT_MOST))


def report(paths: Paths, figures: LatestFigures) -> None:
    """Report it once, if there are other nodes."""
    if not paths.control(LINGER).exists():
        return
    found = figures.get()
    if not isinstance(found.observations.snapshot, Snapshot) or found.observations.snapshot.linger is None:
        return
    level = headline(found.status, moment=str).level
    question = Question(command="condition", values={"condition": level.value})
    with contextlib.suppress(ControlUnavailable):  # it is reported again
        ask(paths.control(LINGER), question, timeout=_ASKED)


class WebListeners:
    """The addresses of the page; those reserved for a snapshot are served once it is committed."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._held = Listeners()
        self._reserved: ReservedBinds | None = None
        self._servers: dict[Address, WebServer] = {}

    def reserve(self, stats: Stats) -> tuple[BindProblem, ...]:
        """Bind for a snapshot; return the obstacle if there is one, and then nothing has changed."""
        self.abort()
        found = self._held.reserve(stats.binds)
        if not isinstance(found, ReservedBinds):
            return found
        self._reserved = found
        return ()

    def abort(self) -> None:
        """Close the sockets bound for a snapshot that is not accepted."""
        if self._reserved is not None:
            self._held.release(self._reserved.fresh)
            self._reserved = None

    def commit(self) -> None:
        """Serve exactly the addresses reserved last."""
        if self._reserved is None:
            return
        wanted = {address for places in self._reserved.addresses.values() for address in places}
        self._reserved = None
        self._held.open(wanted)
        for address in wanted - self._servers.keys():
            server = self._serve(socket.socket(fileno=os.dup(self._held.fileno(address))))
            server.start()
            self._servers[address] = server
        for address in self._servers.keys() - wanted:
            self._servers.pop(address).stop(timeout=0)
        self._held.keep_only(wanted)

    def close(self) -> None:
        """Stop serving."""
        self.abort()
        for server in self._servers.values():
            server.stop(timeout=0)
        self._servers.clear()
        self._held.keep_only(())


class ErrorLog:
    """The methods of a file that pywsgi uses for its log."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log

    def write(self, text: str) -> None:
        """Log a line."""
        if line := text.strip():
            self._log.debug("request-refused", reason=line)

    def flush(self) -> None:
        """Do nothing: each line is written at once."""


class StatsRefused(Exception):  # noqa: N818  # an outcome, reported to `reload`
    """A snapshot that cannot be served, and why."""

    def __init__(self, *reasons: AnswerProblem) -> None:
        self.reasons = reasons
        super().__init__("; ".join(each.message for each in reasons))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A snapshot whose addresses are bound and whose files are read; `stats` None means nothing to serve."""

    number: int
    stats: Stats | None
    access: WebAccess | None
    changed: bool


class StatsService:
    """The service; it serves nothing before the first commit."""

    def __init__(self, paths: Paths, log: FilteringBoundLogger) -> None:
        self.number = 0
        self._log = log
        self._stats: Stats | None = None
        self._access: WebAccess | None = None
        self._history = HistoryFile(paths.history, log)
        self._figures = LatestFigures(
            paths, self._history, on_fault=lambda error: log.error("look-failed", exc_info=error)
        )
        self._pages = Pages(
            self._figures,
            self._current_access,
            self._current_stats,
            Changes(paths, self._figures, log),
            on_denied=lambda client: log.warning("access-denied", client=client),
        )
        self._listeners = WebListeners(self._server)
        self._command_line = CommandLine(paths, self._figures, log)
        self._socket: KeptListener | None = None
        self._keeper = gevent.spawn(self._keep)
        self._reporter = gevent.spawn(report_always, paths, self._figures)

    @property
    def socket_failures(self) -> dict[str, str]:
        """Return why the command socket cannot be listened on, by its path; nothing if it can."""
        if self._socket is None or not self._socket.failure or self._stats is None:
            return {}
        return {str(self._stats.socket): self._socket.failure}

    @property
    def not_kept(self) -> dict[str, str]:
        """Return why the history of the last hours cannot be written, by its path; nothing if it can."""
        return {str(self._history.path): self._history.failure} if self._history.failure else {}

    def prepare(self, snapshot: Snapshot) -> Prepared:
        """Bind addresses and read files of a snapshot; raises StatsRefused, and then nothing has changed."""
        stats = snapshot.stats
        if stats is None:
            self._listeners.abort()
            return Prepared(number=snapshot.number, stats=None, access=None, changed=self._stats is not None)
        try:
            access = web_access(stats)
        except AccessError as error:
            raise StatsRefused(AnswerProblem(message=str(error), path="stats")) from error
        if problems := self._listeners.reserve(stats):
            raise StatsRefused(*(AnswerProblem(message=str(each), path="stats.bind") for each in problems))
        return Prepared(number=snapshot.number, stats=stats, access=access, changed=stats != self._stats)

    def commit(self, prepared: Prepared) -> None:
        """Serve the snapshot prepared last."""
        self.number = prepared.number
        if prepared.stats is None or prepared.access is None:
            self.close()
            return
        # A password or a certificate may have changed in its file: the version read in `prepare` is used.
        self._access = prepared.access.after(self._access)
        former, self._stats = self._stats, prepared.stats
        self._listeners.commit()
        self._follow_socket(prepared.stats.socket, former=former)
        self._figures.forget()

    def abort(self) -> None:
        """Close the sockets bound for a snapshot that is not accepted."""
        self._listeners.abort()

    def close(self) -> None:
        """Stop serving."""
        self._follow_socket(None, former=self._stats)
        self._listeners.close()
        self._stats = self._access = None

    def _follow_socket(self, path: str | None, *, former: Stats | None) -> None:
        if former is not None and former.socket == path and self._socket is not None:
            return
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if path is not None:
            serve = self._command_line.serve
            self._socket = KeptListener(Path(path), serve, self._log, name="stats-socket")

    def _keep(self) -> None:
        while True:
            gevent.sleep(until_next(RETRY))
            if self._socket is not None:
                self._socket.keep()

    def _server(self, listener: socket.socket) -> WebServer:
        return WebServer(listener, self._pages, self._current_access, ErrorLog(self._log))

    def _current_stats(self) -> Stats:
        if self._stats is None:
            raise RuntimeError("asked though nothing is served")
        return self._stats

    def _current_access(self) -> WebAccess:
        if self._access is None:
            raise RuntimeError("asked though nothing is served")
        return self._access
