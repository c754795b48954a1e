"""The process conntrackd, which sends other nodes what connections this kernel forwards, and receives theirs.

It outlives this program, as the rules do, and the next run continues with it. It cannot change its
configuration, so another one is another process: the others' connections are in the kernel's table, and what
it missed it asks for.
"""

import contextlib
import shutil
import time
from pathlib import Path
from typing import Final

import gevent
from gevent import socket
from structlog.typing import FilteringBoundLogger

from appliance.model.capability import Capability
from appliance.model.paths import Paths
from appliance.net.files import state_files
from appliance.net.files.atomic_write import write_whole
from appliance.net.loop.turns import wait_while
from appliance.net.supervision.tended_process import PATHS, TendedProcess, kill, runs
from appliance.wire.conntrackd.conntrackd_control import (
    LIMIT,
    ConntrackdAnswerError,
    ConntrackdQuestion,
    ConntrackdStatistics,
    question,
    statistics,
)

HEARTBEAT: Final = "conntrackd"
"""Name of the heartbeat of conntrackd."""

MISSING: Final = "conntrackd is not installed: `apt install conntrackd`"

_PATIENCE: Final = 2.0  # seconds for an answer
_STARTED: Final = 5.0  # seconds until it listens
_ENDED: Final = 2.0  # seconds until one that was asked to end has gone
_PAUSE: Final = 0.02


class ConntrackdFailed(Exception):  # noqa: N818  # a state of this machine, not a mistake
    """conntrackd does not run, or does not answer; the text says why."""


def executable() -> str | None:
    """Return the path of conntrackd, None if it is not installed."""
    return shutil.which("conntrackd", path=PATHS)


class Conntrackd:
    """One conntrackd. `adopted` is whether an earlier run of this program has started it."""

    def __init__(self, paths: Paths, log: FilteringBoundLogger) -> None:
        self.log = log
        self.adopted = True
        self._paths = paths
        self._process = TendedProcess(heartbeat=paths.heartbeat(HEARTBEAT), control=paths.conntrackd_control)

    def run(self, wanted: str) -> tuple[int, ConntrackdStatistics]:
        """Have it run as configured; return its process id and counters; raises ConntrackdFailed."""
        pid = self._process.found()
        if pid and wanted != self._present():
            self.stop()
            pid = 0
        if not pid:
            pid = self._start(wanted)
        counted = self._asked()
        self._process.beat()
        return pid, counted

    def send(self, asked: ConntrackdQuestion) -> None:
        """Tell it to do something, without an answer; raises ConntrackdFailed."""
        self._ask(asked)

    def stop(self) -> None:
        """End it, and return when it has gone: it reports nothing that the kernel then forgets."""
        pid = self._process.found()
        if self._process.end() and pid:
            wait_while(lambda: runs(pid), within=_ENDED)
            kill(pid)

    def close(self) -> None:
        """Leave it as it is, to the next run."""
        self._process.leave()

    def _present(self) -> str:
        try:
            return self._paths.conntrackd_config.read_text()
        except (OSError, UnicodeDecodeError):
            return ""

    def _start(self, wanted: str) -> int:
        program = executable()
        if program is None:
            raise ConntrackdFailed(MISSING)
        files = (self._paths.conntrackd_config, self._paths.conntrackd_log, self._paths.conntrackd_lock)
        config, log, lock = files
        try:
            for each in (*files, self._paths.conntrackd_control):
                state_files.clear_way(each)
            lock.unlink(missing_ok=True)  # one that was killed leaves it, and no other starts beside it
            write_whole(log, b"")
            write_whole(config, wanted.encode())
            started = self._process.start(
                [program, "-C", str(config)], {Capability.CAP_NET_ADMIN}, output=str(log)
            )
        except OSError as error:
            raise ConntrackdFailed(f"conntrackd cannot be started: {error.strerror or error}") from error
        self.adopted = False
        self._wait(started, log)
        self.log.info("conntrackd-started", pid=started)
        return started

    def _wait(self, started: int, log: Path) -> None:
        """Wait until it listens; raises ConntrackdFailed with what it says if it ends or does not."""
        until = time.monotonic() + _STARTED
        while time.monotonic() < until and runs(started):
            if self._process.found() == started:
                return
            gevent.sleep(_PAUSE)
        kill(started)
        said = ""
        with contextlib.suppress(OSError):
            said = " ".join(log.read_bytes()[-400:].decode(errors="replace").split())
        raise ConntrackdFailed(f"conntrackd does not start: {said or 'it says nothing'}")

    def _asked(self) -> ConntrackdStatistics:
        try:
            return statistics(self._ask(ConntrackdQuestion.STATISTICS))
        except ConntrackdAnswerError as error:
            raise ConntrackdFailed(str(error)) from error

    def _ask(self, asked: ConntrackdQuestion) -> bytes:
        answer, until = bytearray(), time.monotonic() + _PATIENCE
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(_PATIENCE)
                connection.connect(str(self._paths.conntrackd_control))
                connection.sendall(question(asked))
                while len(answer) < LIMIT and (data := connection.recv(LIMIT)):
                    answer += data
                    connection.settimeout(max(until - time.monotonic(), 0.001))
        except OSError as error:
            raise ConntrackdFailed(f"conntrackd does not answer: {error}") from error
        return bytes(answer)
