"""Calls to supervisord over its unix socket: its state, its programs, start and stop of a program.

XML-RPC as supervisord implements it, on gevent sockets, so that a call does not block the program. A
supervisord that is shutting down answers every call with the fault SHUTDOWN_STATE.
"""

from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final
from xml.parsers.expat import ExpatError
from xmlrpc.client import Error, Fault, ServerProxy, Transport

import msgspec
from gevent import socket

_SHUTDOWN_STATE: Final = 6  # supervisor.xmlrpc.Faults, as are the next two
_ALREADY_STARTED: Final = 60
_NOT_RUNNING: Final = 70
_NO_WAIT: Final = False  # the last parameter of startProcess and stopProcess


class SupervisorUnavailable(Exception):  # noqa: N818  # a state of the other side, not a mistake of ours
    """supervisord does not answer on its socket, or refuses the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessInfo:
    """A program as supervisord reports it.

    `state` is one of STOPPED, STARTING, RUNNING, BACKOFF, STOPPING, EXITED, FATAL, UNKNOWN. `pid` is None
    while none runs; `started_at` is unix seconds of the last start, None before the first. `exit_status` is
    that of the last exit, 0 while running. `spawn_error` is why it is not running, "" if it is.
    """

    name: str
    state: str
    pid: int | None
    started_at: float | None
    exit_status: int
    spawn_error: str
    description: str


class SupervisorClient:
    """The supervisord whose socket is at `path`; each call opens a connection, with a timeout."""

    def __init__(self, path: Path, *, timeout: float = 5.0) -> None:
        self._path = path
        self._timeout = timeout

    def shutting_down(self) -> bool:
        """Return whether it is stopping everything; raises SupervisorUnavailable without an answer."""
        try:
            self._call("supervisor.getState")
        except Fault as fault:
            if fault.faultCode == _SHUTDOWN_STATE:
                return True
            raise SupervisorUnavailable(fault.faultString) from fault
        return False

    def processes(self) -> list[ProcessInfo]:
        """Return every program, by name; raises SupervisorUnavailable."""
        reply = self._ask("supervisor.getAllProcessInfo")
        try:
            return [_process(each) for each in msgspec.convert(reply, list[_ProcessReply])]
        except msgspec.ValidationError as error:
            raise SupervisorUnavailable(f"{self._path}: {error}") from error

    def start(self, name: str) -> None:
        """Start a program, without waiting for it; a running one stays."""
        self._ask("supervisor.startProcess", name, _NO_WAIT, harmless=_ALREADY_STARTED)

    def stop(self, name: str) -> None:
        """Stop a program, without waiting for its exit; a stopped one stays."""
        self._ask("supervisor.stopProcess", name, _NO_WAIT, harmless=_NOT_RUNNING)

    def _ask(self, method: str, *parameters: str | bool, harmless: int | None = None) -> object:
        try:
            return self._call(method, *parameters)
        except Fault as fault:
            if fault.faultCode == harmless:
                return None
            message = f"{method} {' '.join(map(str, parameters))}: {fault.faultString}"
            raise SupervisorUnavailable(message) from fault

    def _call(self, method: str, *parameters: str | bool) -> object:
        transport = _UnixTransport(self._path, self._timeout)
        try:
            with ServerProxy("http://localhost/RPC2", transport=transport) as server:
                return getattr(server, method)(*parameters)
        except Fault:
            raise
        except OSError as error:
            raise SupervisorUnavailable(f"{self._path}: {error.strerror or error}") from error
        except (HTTPException, ExpatError, Error) as error:
            raise SupervisorUnavailable(f"{self._path}: {error or type(error).__name__}") from error


class _UnixConnection(HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost")
        self._path = path
        self._seconds = timeout

    def connect(self) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(self._seconds)
        try:
            connection.connect(str(self._path))
        except OSError:
            connection.close()
            raise
        self.sock = connection


class _UnixTransport(Transport):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__()
        self._path = path
        self._seconds = timeout

    def make_connection(self, host: object) -> HTTPConnection:  # noqa: ARG002  # the path is the address
        return _UnixConnection(self._path, self._seconds)


class _ProcessReply(msgspec.Struct):
    """The fields used of supervisord's getProcessInfo."""

    name: str
    statename: str
    pid: int
    start: int
    exitstatus: int
    spawnerr: str
    description: str


def _process(reply: _ProcessReply) -> ProcessInfo:
    return ProcessInfo(
        name=reply.name,
        state=reply.statename,
        pid=reply.pid or None,
        started_at=float(reply.start) or None,
        exit_status=reply.exitstatus,
        spawn_error=reply.spawnerr,
        description=reply.description,
    )
