"""Processes of a runtime directory without a supervisord: found, terminated, and killed.

A supervisord that was killed leaves its programs, and a master its workers. They are not our children, so
they are searched in /proc, and on their control sockets.
"""

import os
import signal
import socket
from collections.abc import Collection
from pathlib import Path
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.core.program_table import BY_NAME, PROGRAMS
from appliance.model.paths import Paths
from appliance.model.program_names import VRRP
from appliance.net.privileges import capabilities
from appliance.net.privileges.peer_credentials import listening_process
from appliance.net.process.own_processes import own_processes
from appliance.wire.lines.control import Question, encode_question

_VRRP: Final = BY_NAME[VRRP].module
_CHILDREN: Final = [each for program in PROGRAMS for each in program.children]
_OUTLIVING: Final = frozenset(each.module for each in _CHILDREN if each.outlives)
_MODULES: Final = frozenset(each.module for each in PROGRAMS) | _OUTLIVING
OF_VRRP: Final = (_VRRP, f"{VRRP}.control")
"""The program of the virtual IPs by its module, and by its socket if its process is not visible."""

_PATIENCE: Final = 0.5  # seconds for a worker to take an order; one that hangs is killed at the deadline


class Leftovers:
    """The programs of one runtime directory that we did not start, or no longer supervise."""

    def __init__(self, paths: Paths, log: FilteringBoundLogger) -> None:
        self._paths = paths
        self._log = log
        self._told: set[int | tuple[Path, float]] = set()

    def find(self) -> dict[int, str]:
        """Return the module or socket of every program by process id, including those that we started.

        Our capabilities must be in effect: /proc shows a program's environment only to processes with its
        rights.
        """
        with capabilities.in_effect():
            return {**self._listening(), **_running(self._paths.runtime)}

    def end_programs(self, *, spared: Collection[str] = (), but: Collection[int] = ()) -> None:
        """Send TERM to every program but the workers, once: a second TERM makes a master cut connections.

        The `spared` continue: their successors take over from them. So do the processes `but`: they are ours.
        """
        for pid, name in self.find().items():
            if pid not in self._told and pid not in but and name not in _OUTLIVING and name not in spared:
                self._told.add(pid)
                self._log.warning("leftover-program", program=name, pid=pid)
                self._send(name, pid, signal.SIGTERM)

    def vrrps(self) -> list[int]:
        """Return the process ids of all `vrrp` of this runtime directory but our own."""
        return [pid for pid, name in _running(self._paths.runtime).items() if name == _VRRP]

    def kill_vrrps(self, *, but: int) -> None:
        """Kill every `vrrp` of this runtime directory except `but`: no lock or socket led to them."""
        for pid in self.vrrps():
            if pid != but:
                self._log.warning("leftover-killed", program=_VRRP, pid=pid)
                self._send(_VRRP, pid, signal.SIGKILL)

    def drain_workers(self, deadline: float) -> None:
        """Order every worker, once, to finish its sessions until `deadline`, Unix seconds."""
        order = Question(command="drain", values={"deadline": deadline})
        for path in self._paths.runtime.glob("worker-*.control"):
            if (path, deadline) not in self._told and _order(path, order):
                self._told.add((path, deadline))

    def kill(self) -> None:
        """Kill every program and worker."""
        for pid, name in self.find().items():
            self._log.warning("leftover-killed", program=name, pid=pid)
            self._send(name, pid, signal.SIGKILL)

    def _send(self, name: str, pid: int, number: signal.Signals) -> None:
        """Signal a program; log one of another user (root's, from a start before the user was changed)."""
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        except PermissionError:
            self._log.error("leftover-of-another-user", program=name, pid=pid, signal=number.name)

    def _listening(self) -> dict[int, str]:
        """Return the processes that listen on control sockets, even if /proc does not show them."""
        sockets = (each for each in self._paths.runtime.glob("*.control") if not each.match("worker-*"))
        found = {listening_process(path): path.name for path in sockets}
        return {pid: name for pid, name in found.items() if pid and pid != os.getpid()}


def _running(runtime: Path) -> dict[int, str]:
    """Return the module of every process that was started for this runtime directory."""
    return {each.pid: each.module for each in own_processes(runtime) if each.module in _MODULES}


def _order(path: Path, question: Question) -> bool:
    """Send one order without waiting for its answer; return whether it could be sent."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_PATIENCE)
        try:
            connection.connect(str(path))
            connection.sendall(encode_question(question))
        except OSError:
            return False
    return True
