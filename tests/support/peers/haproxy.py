"""Debian's HAProxy with a file that is given to it, in this network or a node's."""

import contextlib
import csv
import io
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from support.processes.processes import end
from support.processes.waiting import wait_until
from support.run import tools


class HAProxy:
    """A running HAProxy. Use it as a context manager.

    `{control}` in the text is where its stats socket has to be. `through` is a command that takes a command.
    """

    def __init__(self, text: str, *, through: Sequence[str] = ()) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="lb-haproxy-")
        root = Path(self._directory.name)
        self._control, self._log = root / "control", root / "log"
        self.path = root / "haproxy.cfg"
        self.path.write_text(text.replace("{control}", str(self._control)))
        self._through = through
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._through, tools.path("haproxy") or "haproxy", "-db", "-f", str(self.path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            wait_until(lambda: self.rows() or self._ended(), what="HAProxy answers", timeout=20.0)
            assert not self._ended(), self._log.read_text()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        end(self._process)
        self._directory.cleanup()

    @property
    def control(self) -> Path:
        """Its stats socket."""
        return self._control

    @property
    def pid(self) -> int:
        """Process id of the one that accepts."""
        assert self._process is not None
        return self._process.pid

    def log(self) -> str:
        """Return what it has written to its standard output."""
        return self._log.read_text(errors="replace")

    def rows(self) -> list[dict[str, str]]:
        """Return what `show stat` says, a row for each proxy and server; none before it answers."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
                connection.connect(str(self._control))
                connection.sendall(b"show stat\n")
                said = b"".join(iter(lambda: connection.recv(65536), b""))
                return list(csv.DictReader(io.StringIO(said.decode().removeprefix("# "))))
        return []

    def states(self) -> dict[tuple[str, str], str]:
        """Return the state of each server by its backend and name, in our words: up, down, maint, drain."""
        servers = (row for row in self.rows() if row["type"] == "2")
        return {(row["pxname"], row["svname"]): _state(row["status"]) for row in servers}

    def check_results(self) -> dict[str, str]:
        """Return what its checks have found so far, by server, without those that have not ended."""
        rows = [row for row in self.rows() if row["check_status"]]
        found = {row["svname"]: row["check_status"].removeprefix("* ") for row in rows}
        return {name: status for name, status in found.items() if status not in {"UNK", "INI"}}

    def _ended(self) -> bool:
        assert self._process is not None
        return self._process.poll() is not None


def accepts(text: str, directory: Path) -> bool:
    """Return whether `haproxy -c` takes a file."""
    path = directory / "checked.cfg"
    path.write_text(text)
    command = [tools.path("haproxy") or "haproxy", "-c", "-q", "-f", str(path)]
    return subprocess.run(command, check=False, capture_output=True, timeout=30).returncode == 0


def _state(status: str) -> str:
    word = status.split(maxsplit=1)[0].lower()
    return "up" if word == "no" else word  # `no check`
