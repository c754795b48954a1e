"""A relay and both of its ends in the hands of a test, which then reads like a trace of the wire.

`Setting` describes one frontend and one pool; `relay` runs a worker for it. An `Origin` is a server whose
connections the test accepts and speaks on itself.
"""

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import structs
from support.network.ports import free_port
from support.processes.waiting import wait_until
from support.values.snapshots import bind, frontend, group, pool, server, snapshot
from support.worker.lone_worker import LoneWorker, lone_worker, up

from appliance.model.end_reasons import EndReason
from appliance.model.server_states import AdminState, HealthVerdict
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.boards.health_board import ServerHealthRecord
from appliance.wire.boards.worker_board import ServerCounters

PATIENCE = 15.0


class Origin:
    """A listening socket; `closed` gives a port that refuses."""

    def __init__(self, *, host: str = "127.0.0.1", backlog: int = 128, buffer: int = 0) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family, backlog=backlog)
        if buffer:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self._listener.settimeout(PATIENCE)
        self.host = host
        self.port: int = self._listener.getsockname()[1]

    def accept(self) -> socket.socket:
        """Return the next connection that the relay makes."""
        connection, _ = self._listener.accept()
        connection.settimeout(PATIENCE)
        return connection

    def is_quiet(self, seconds: float) -> bool:
        """Return whether no connection comes within that time."""
        self._listener.settimeout(seconds)
        try:
            self._listener.accept()[0].close()
        except TimeoutError:
            return True
        finally:
            self._listener.settimeout(PATIENCE)
        return False

    def close(self) -> None:
        """Refuse from now on."""
        self._listener.close()


@dataclass(kw_only=True)
class Setting:
    """One frontend `front` and its pool `pool` of the given servers, the last `backups` of them backups."""

    origins: Sequence[Origin] = ()
    backups: int = 0
    front: dict[str, object] = field(default_factory=dict)
    back: dict[str, object] = field(default_factory=dict)
    each: dict[str, object] = field(default_factory=dict)
    changes: dict[str, object] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = field(default_factory=free_port)

    def snapshot(self) -> Snapshot:
        """Return it as a worker is told it."""
        first = len(self.origins) - self.backups
        servers = [
            server(f"s{position}", port=origin.port, host=origin.host, backup=position >= first, **self.each)
            for position, origin in enumerate(self.origins)
        ]
        front = frontend("front", binds=[bind(self.port, host=self.host)], **self.front)
        return snapshot(
            groups=[group("api", frontends=[front])],
            pools=[pool("pool", servers=servers, **self.back)],
            **self.changes,
        )


class Relay:
    """A running worker and how a test looks at it."""

    def __init__(self, worker: LoneWorker, setting: Setting) -> None:
        self.worker = worker
        self.setting = setting

    def connect(
        self, *, source: str | None = None, source_port: int = 0, timeout: float = PATIENCE
    ) -> socket.socket:
        """Return a new client; it waits for `timeout` seconds at most."""
        host = {"::": "::1"}.get(self.setting.host, self.setting.host)
        mine = (source, source_port) if source else None
        return socket.create_connection((host, self.setting.port), timeout=timeout, source_address=mine)

    def refuses(self, *, host: str | None = None, source_port: int = 0, timeout: float = PATIENCE) -> bool:
        """Return whether a new client is reset, be it as soon as it is connected."""
        mine = ("127.0.0.1", source_port) if source_port else None
        address = (host or {"::": "::1"}.get(self.setting.host, self.setting.host), self.setting.port)
        try:
            return is_reset(socket.create_connection(address, timeout=timeout, source_address=mine))
        except ConnectionResetError:
            return True

    def pair(self, origin: Origin | None = None) -> tuple[socket.socket, socket.socket]:
        """Return a new client and its server's end."""
        client = self.connect()
        return client, (origin or self.setting.origins[0]).accept()

    def reasons(self) -> dict[EndReason, int]:
        """Return how connections have ended so far."""
        return {reason: count for reason, count in self.worker.board().reasons.items() if count}

    def ended(self, reason: EndReason, count: int = 1) -> None:
        """Wait until that many connections have ended for that reason."""
        wait_until(
            lambda: self.reasons().get(reason, 0) == count, what=f"{count} x {reason}: {self.reasons()}"
        )

    def server(self, name: str = "s0") -> ServerCounters:
        """Return a server's counters, which are on the board from its first connection on."""
        found = (each for each in self.worker.board().servers if each.server == name)
        return next(found, ServerCounters("", name, *(0,) * 6))

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for a condition."""
        wait_until(condition, what=what)

    def sessions(self) -> list[dict[str, object]]:
        """Return the sessions as the console sees them."""
        listed = self.worker.ask("sessions")["sessions"]
        assert isinstance(listed, list)
        return listed

    def publish(self, *verdicts: HealthVerdict, admin: AdminState = AdminState.READY) -> None:
        """Publish what the checks say of s0, s1, and so on; the last verdict holds for the rest."""
        self.worker.publish(self.records(verdicts, admin))

    def records(self, verdicts: Sequence[HealthVerdict], admin: AdminState) -> Iterator[ServerHealthRecord]:
        """Yield the records of all servers."""
        given = self.setting.snapshot().pools[0]
        for position, each in enumerate(given.servers):
            verdict = verdicts[min(position, len(verdicts) - 1)]
            yield structs.replace(up(given, each, verdict=verdict), admin=admin)

    def log(self) -> str:
        """Return what the worker has logged."""
        return (self.worker.paths.runtime / "log").read_text()


@contextlib.contextmanager
def relay(setting: Setting) -> Iterator[Relay]:
    """Run a worker for the setting, accepting, all servers up; it must have met no bug at the end."""
    with lone_worker(setting.snapshot()) as worker:
        running = Relay(worker, setting)
        yield running
        assert "internal-error" not in running.log(), running.log()


def reset(connection: socket.socket) -> None:
    """Close with a RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def read_all(connection: socket.socket) -> bytes:
    """Return everything up to the peer's FIN."""
    chunks = []
    while chunk := connection.recv(1 << 16):
        chunks.append(chunk)
    return b"".join(chunks)


def is_reset(connection: socket.socket) -> bool:
    """Return whether the connection ends with an error and not with a FIN."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return False
