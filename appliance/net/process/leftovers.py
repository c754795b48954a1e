"""What runs in a runtime directory without a supervisord: found, told to end, and killed.

A supervisord that was killed leaves its programs, and a master its workers. They are nobody's children that
we could wait for, so they are looked for in /proc, and on their control sockets.
"""

import os
import signal
import socket
from collections.abc import Collection
from pathlib import Path
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.net.privileges import capabilities
from appliance.net.process import subreaper
from appliance.net.process.own_processes import own_processes
from appliance.wire.lines.control import Question, encode_question

_MODULES: Final = tuple(
    f"appliance.programs.{name}" for name in ("reload", "health", "proxy", "vrrp", "worker")
)
_VRRP, _WORKER = _MODULES[-2:]
VRRP: Final = (_VRRP, "vrrp.control")
"""The program of the virtual IPs by its module, and by its socket where its process cannot be looked at."""

_PATIENCE: Final = 0.5  # seconds for a worker to take an order; one that hangs is killed at the deadline


class Leftovers:
    """The programs of one runtime directory that we have not started, or no longer supervise."""

    def __init__(self, paths: Paths, log: FilteringBoundLogger) -> None:
        self._paths = paths
        self._log = log
        self._told: set[int | tuple[Path, float]] = set()

    def find(self) -> dict[int, str]:
        """Return the module or the socket of every program, by process id. Ours are among them."""
        with capabilities.in_effect():
            return {**self._listening(), **_running(self._paths.runtime)}

    def end_programs(self, *, spared: Collection[str] = ()) -> None:
        """TERM every program but the workers, each once: a master takes a second TERM as an order to cut.

        Those `spared` go on: successors will take their places.
        """
        for pid, name in self.find().items():
            if pid not in self._told and name != _WORKER and name not in spared:
                self._told.add(pid)
                self._log.warning("leftover-program", program=name, pid=pid)
                self._send(name, pid, signal.SIGTERM)

    def vrrps(self) -> list[int]:
        """Return the programs of the virtual IPs but our own process."""
        return [pid for pid, name in _running(self._paths.runtime).items() if name == _VRRP]

    def kill_vrrps(self, *, but: int) -> None:
        """KILL those of them that nobody has found by its lock and socket, all `but` this one."""
        for pid in self.vrrps():
            if pid != but:
                self._log.warning("leftover-killed", program=_VRRP, pid=pid)
                self._send(_VRRP, pid, signal.SIGKILL)

    def drain_workers(self, deadline: float) -> None:
        """Let every worker finish its sessions until `deadline` (Unix seconds); each is told once."""
        order = Question(command="drain", values={"deadline": deadline})
        for path in self._paths.runtime.glob("worker-*.control"):
            if (path, deadline) not in self._told and _order(path, order):
                self._told.add((path, deadline))

    def kill(self) -> None:
        """KILL everything."""
        for pid, name in self.find().items():
            self._log.warning("leftover-killed", program=name, pid=pid)
            self._send(name, pid, signal.SIGKILL)

    def _send(self, name: str, pid: int, number: signal.Signals) -> None:
        """Signal a program; one of another user's (root's, before there was ours) is told to the operator."""
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        except PermissionError:
            self._log.error("leftover-of-another-user", program=name, pid=pid, signal=number.name)

    def _listening(self) -> dict[int, str]:
        """Return who listens on the programs' control sockets; 0 is a process of another namespace."""
        sockets = (each for each in self._paths.runtime.glob("*.control") if not each.match("worker-*"))
        found = {subreaper.listener(path): path.name for path in sockets}
        return {pid: name for pid, name in found.items() if pid and pid != os.getpid()}


def _running(runtime: Path) -> dict[int, str]:
    """Return the module of every process that was started for this runtime directory."""
    return {each.pid: each.module for each in own_processes(runtime) if each.module in _MODULES}


def _order(path: Path, question: Question) -> bool:
    """Send one order without waiting for its answer; say whether it could be sent."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_PATIENCE)
        try:
            connection.connect(str(path))
            connection.sendall(encode_question(question))
        except OSError:
            return False
    return True
