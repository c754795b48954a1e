"""HAProxy's stats socket: reads lines, executes them one by one, and answers in HAProxy's words.

A connection takes one line and is closed, or, after `prompt`, takes lines until `quit`. Changes of servers go
to the programs `health` and the workers, as those from the console, so that they survive reloads.
"""

import time
from collections.abc import Callable
from typing import Final, assert_never

from gevent import socket
from gevent.lock import BoundedSemaphore
from structlog.typing import FilteringBoundLogger

from appliance.core.haproxy import show_answers
from appliance.core.haproxy.process import info_fields
from appliance.model.paths import Paths
from appliance.model.server_states import AdminState
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.loop.turns import Turns
from appliance.stats import servers
from appliance.stats.figures import LatestFigures
from appliance.stats.servers import NotDone
from appliance.wire.haproxy import commands
from appliance.wire.haproxy.commands import (
    LINE_LIMIT,
    NO_BACKEND,
    NO_PROXY,
    NO_SERVER,
    Command,
    GetWeight,
    Refused,
    SetState,
    SetWeight,
    ShowServersState,
    ShowStat,
    ShutdownSessions,
    Simple,
)
from appliance.wire.haproxy.statistics import csv_text, info_text, servers_state_text
from appliance.wire.lines.listed_session import ListedSession

MOST_CONNECTIONS: Final = 32
SILENCE: Final = 10.0
"""Seconds for a client to send a whole line, and again to read an answer (HAProxy's `stats timeout`)."""

_CHUNK: Final = 4096
_AT_ONCE: Final = 0.001  # seconds: a timeout of 0 means none to Python


class CommandLine:
    """Serves the connections of the socket; every client that can connect may change servers."""

    def __init__(self, paths: Paths, figures: LatestFigures, log: FilteringBoundLogger) -> None:
        self._paths = paths
        self._figures = figures
        self._log = log
        self._turns = Turns()
        self._places = BoundedSemaphore(MOST_CONNECTIONS)

    def serve(self, connection: socket.socket) -> None:
        """Serve one connection to its end."""
        if not self._places.acquire(blocking=False):
            connection.close()
            return
        try:
            self._serve(connection)
        except OSError:
            pass  # the client is gone, or too slow
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this connection
            self._log.error("command-failed", exc_info=error)
        finally:
            self._places.release()
            connection.close()

    def _serve(self, connection: socket.socket) -> None:
        interactive, rest = False, b""
        late = time.monotonic() + SILENCE
        while True:
            self._turns.give()
            line, newline, rest = rest.partition(b"\n")
            if not newline:
                rest = line
                connection.settimeout(max(_AT_ONCE, late - time.monotonic()))
                chunk = connection.recv(_CHUNK)
                if not chunk or len(rest) > LINE_LIMIT:
                    return
                rest += chunk
                continue
            connection.settimeout(SILENCE)
            for command in commands.commands(line.rstrip(b"\r")):
                self._turns.give()
                if command is Simple.QUIT:
                    return
                interactive = interactive or command is Simple.PROMPT
                end = "\n> " if interactive else "\n"
                connection.sendall((self.answer(command) + end).encode())
            if not interactive:
                return
            late = time.monotonic() + SILENCE

    def answer(self, command: Command) -> str:
        """Execute one command, and return HAProxy's answer."""
        match command:
            case Simple():
                said = self._simple(command)
            case ShowStat():
                said = self._show_stat(command)
            case ShowServersState(pool=pool):
                said = self._servers_state(pool)
            case GetWeight() | SetState() | SetWeight() | ShutdownSessions():
                said = self._missing(command.pool, command.server) or self._of_server(command)
            case Refused(answer=said):
                pass
            case _:
                assert_never(command)
        return said

    def _of_server(self, command: GetWeight | SetState | SetWeight | ShutdownSessions) -> str:
        """Execute a command for an existing server."""
        pool, server = command.pool, command.server
        match command:
            case GetWeight():
                said = self._weight(pool, server)
            case SetState(state=state):
                said = self._set_state(pool, server, state)
            case SetWeight():
                said = self._set_weight(command)
            case ShutdownSessions():
                said = self._shutdown(pool, server)
            case _:
                assert_never(command)
        return said

    def _simple(self, command: Simple) -> str:
        texts: dict[Simple, Callable[[], str]] = {
            Simple.SHOW_INFO: lambda: info_text(info_fields(self._figures.get().process)),
            Simple.SHOW_SESSIONS: lambda: "".join(map(_session, servers.sessions(self._paths))),
            Simple.SHOW_VERSION: lambda: f"{self._figures.get().process.version}\n",
            Simple.HELP: commands.help_text,
        }
        return texts.get(command, str)()  # `show table` without tables, and the prompt itself, are empty

    def _show_stat(self, command: ShowStat) -> str:
        rows = self._figures.get().rows
        found = show_answers.chosen(rows, command)
        known = command.proxy is None or any(
            command.proxy in (str(row["iid"]), row["pxname"]) for row in rows
        )
        return csv_text(found) if known else NO_PROXY

    def _servers_state(self, pool: str | None) -> str:
        figures = self._figures.get()
        if pool is not None and not show_answers.has_pool(figures.rows, pool):
            return "Can't find backend.\n"
        snapshot = figures.observations.snapshot
        lines = (
            show_answers.server_states(figures.rows, snapshot, pool) if isinstance(snapshot, Snapshot) else ()
        )
        return servers_state_text(lines)

    def _weight(self, pool: str, server: str) -> str:
        figures = self._figures.get()
        row, snapshot = show_answers.server_row(figures.rows, pool, server), figures.observations.snapshot
        if row is None or not isinstance(snapshot, Snapshot):
            return NO_SERVER
        return f"{row['uweight']} (initial {show_answers.configured_weight(snapshot, pool, server)})\n"

    def _missing(self, pool: str, server: str) -> str:
        """Return HAProxy's answer about a missing server, nothing if it exists."""
        rows = self._figures.get().rows
        if not show_answers.has_pool(rows, pool):
            return NO_BACKEND
        return "" if show_answers.server_row(rows, pool, server) else NO_SERVER

    def _set_state(self, pool: str, server: str, state: AdminState) -> str:
        try:
            servers.set_state(self._paths, pool=pool, server=server, state=state)
        except NotDone as error:
            return f"{error}\n"
        finally:
            self._figures.forget()
        self._log.info("state-set", pool=pool, server=server, state=state.name.lower(), by="stats socket")
        return ""

    def _set_weight(self, command: SetWeight) -> str:
        pool, server, weight = command.pool, command.server, command.weight
        try:
            servers.set_weight(self._paths, pool=pool, server=server, weight=weight)
        except NotDone as error:
            return f"{error}\n"
        finally:
            self._figures.forget()
        self._log.info("weight-set", pool=pool, server=server, weight=str(weight), by="stats socket")
        return ""

    def _shutdown(self, pool: str, server: str) -> str:
        ended = servers.end_sessions(self._paths, pool=pool, server=server)
        self._log.info("sessions-ended", pool=pool, server=server, sessions=ended, by="stats socket")
        return ""


def _session(each: ListedSession) -> str:
    """Return a line of `show sess`, with the fields that have a meaning here."""
    pool, _, server = (each.server or "<NONE>/<none>").partition("/")
    family = "tcpv6" if each.client.startswith("[") else "tcpv4"
    return (
        f"{each.id}: proto={family} src={each.client} fe={each.frontend} be={pool} srv={server} "
        f"age={_seconds(each.age)} idle={_seconds(each.idle)} state={each.phase} in={_known(each.bytes_in)} "
        f"out={_known(each.bytes_out)}\n"
    )


def _seconds(seconds: float | None) -> str:
    return "?" if seconds is None else f"{int(seconds)}s"


def _known(count: int | None) -> str:
    """Return a count; the kernel reports bytes of forwarded connections only if it counts them."""
    return "?" if count is None else str(count)
