"""The program `health` in a runtime directory of its own, and what its board and its log say."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from support.peers.backend import Backend
from support.processes.log_lines import logged
from support.processes.processes import end, kill
from support.processes.waiting import wait_until
from support.values import snapshots

from appliance.model.paths import Paths
from appliance.model.server_states import AdminState, HealthVerdict
from appliance.model.snapshot.pools import Check, Pool, Server
from appliance.model.snapshot.snapshot import Snapshot, encode
from appliance.net.boards.board_layout import BoardError
from appliance.net.boards.board_reader import BoardReader
from appliance.net.control.control_client import ControlUnavailable, ask
from appliance.wire.boards.health_board import HealthBoard, ServerHealthRecord, decode
from appliance.wire.lines import connect_failure
from appliance.wire.lines.control import Answer, Question

QUICK = snapshots.check(
    "http", path="/readyz", interval=0.1, fast_interval=0.05, down_interval=0.1, timeout=2.0, rise=2, fall=2
)
COMMAND = f"{sys.executable} -m appliance.programs.health"
SLOW = replace(QUICK, interval=60.0, fast_interval=60.0, down_interval=60.0)


class Health:
    """A runtime directory with a health program in it, which can be killed and started again."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="lb-health-")
        root = Path(self._directory.name)
        self.paths = Paths(config=root / "appliance.yaml", runtime=root / "run", state=root / "state")
        (self.paths.runtime / "snapshots").mkdir(parents=True)
        self._log = root / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self.command = COMMAND.split()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            end(self._process)
        self._directory.cleanup()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The program started last."""
        assert self._process is not None
        return self._process

    def accept(self, snapshot: Snapshot) -> None:
        """Make a snapshot the one that a starting program obeys."""
        self.paths.accepted.write_bytes(encode(snapshot))

    def start(self) -> None:
        """Start the program and wait until it answers."""
        self._process = self.spawn()
        wait_until(self._answers, what="health answers")

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start the program."""
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self.command,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.paths.environment()},
            )

    def kill(self) -> None:
        """Kill the program with -9."""
        kill(self.process.pid)
        self.process.wait()

    def ask(self, command: str, **values: object) -> Answer:
        """Ask the program over its control socket."""
        return ask(self.paths.control("health"), Question(command=command, values=values))

    def propose(self, snapshot: Snapshot) -> Answer:
        """Write a snapshot and have it prepared."""
        self.paths.snapshot(snapshot.number).write_bytes(encode(snapshot))
        return self.ask("prepare", snapshot=snapshot.number)

    def apply(self, snapshot: Snapshot) -> None:
        """Prepare and commit a snapshot."""
        assert self.propose(snapshot).ok
        assert self.ask("commit", snapshot=snapshot.number).ok

    def board(self) -> HealthBoard | None:
        """Return the board, None before the first one."""
        with contextlib.suppress(BoardError), BoardReader(self.paths.health_board) as board:
            payload = board.read()
            return decode(payload) if payload else None
        return None

    def server(self, name: str) -> ServerHealthRecord | None:
        """Return what the board says of a server, None when it says nothing."""
        board = self.board()
        return next((each for each in board.servers if each.server == name), None) if board else None

    def wait_for(self, name: str, verdict: HealthVerdict, *, by: int = 0) -> ServerHealthRecord:
        """Return the record of a server as soon as it has this verdict, and was seen after `by` failures."""

        def wanted() -> ServerHealthRecord | None:
            record = self.server(name)
            return record if record and record.verdict is verdict and record.failed >= by else None

        return wait_until(wanted, what=f"{name} is {verdict.name}")

    def events(self, *names: str) -> list[dict[str, object]]:
        """Return the log lines of these events."""
        return logged(self._log, *names)

    def log(self) -> str:
        """Return everything that the program said."""
        return self._log.read_text()

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.log()
        with contextlib.suppress(ControlUnavailable):
            return self.ask("status").ok
        return False


def of(
    servers: Sequence[Server],
    *,
    number: int = 1,
    name: str = "masters",
    level: str = "info",
    **changes: object,
) -> Snapshot:
    """Return a snapshot of one pool."""
    pool: Pool = snapshots.pool(name, servers=servers, **changes)
    log = replace(snapshots.snapshot().log, level=level)
    return snapshots.snapshot(number=number, pools=[pool], log=log)


def server(name: str, backend: Backend | int, check: Check | None = QUICK, **changes: object) -> Server:
    """Return a server with a check."""
    port = backend if isinstance(backend, int) else backend.port
    return snapshots.server(name, port=port, check=check, **changes)


def weight(health: Health, name: str) -> float:
    """Return the weight of a server on the board, 0.0 where it says nothing."""
    record = health.server(name)
    return record.weight if record else 0.0


def admins(health: Health) -> dict[str, AdminState]:
    """Return the operator states on the board, by server."""
    board = health.board()
    return {each.server: each.admin for each in board.servers} if board else {}


def newer(health: Health, name: str, than: float) -> bool:
    """Return whether a server was checked after a moment, in Unix seconds."""
    record = health.server(name)
    return record is not None and record.checked_at > than


def all_checked(health: Health, count: int, *, since: float = 0.0) -> bool:
    """Return whether so many servers were checked after a moment, in Unix seconds."""
    board = health.board()
    return board is not None and sum(each.checked_at > since for each in board.servers) == count


def connects_failed(health: Health, name: str, *, times: int = 1) -> None:
    """Say as a worker does that clients could not connect to a server."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as worker:
        for _ in range(times):
            worker.sendto(connect_failure.encode("masters", name), str(health.paths.health_connect_failures))


def checks(health: Health, name: str) -> int:
    """Return how many checks of a server are in the log, at level debug."""
    seen = health.events("check", "server-up", "server-down")
    return sum(event["server"] == name for event in seen)
