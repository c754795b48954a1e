"""Debian's keepalived in a node, with a configuration, pid files and a notify FIFO of its own."""

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from support.network.namespaces import INTERFACE, Node
from support.processes.processes import alive, kill
from support.processes.waiting import wait_until
from support.run import tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One `vrrp_instance`. `advert` is seconds; `lines` are further lines of its block."""

    name: str = "VI"
    router_id: int = 42
    version: int = 3
    priority: int = 100
    advert: float = 0.1
    addresses: tuple[str, ...] = ("192.0.2.100/24",)
    password: str | None = None
    peers: tuple[str, ...] = ()
    source: str | None = None
    nopreempt: bool = False
    interface: str = INTERFACE
    lines: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the block of the configuration."""
        lines = [
            f"interface {self.interface}",
            f"version {self.version}",
            "state BACKUP",
            f"virtual_router_id {self.router_id}",
            f"priority {self.priority}",
            f"advert_int {self.advert:g}",
            f"virtual_ipaddress {{\n{_lines(self.addresses)}\n}}",
            *self.lines,
        ]
        if self.password is not None:
            lines.append(f"authentication {{\nauth_type PASS\nauth_pass {self.password}\n}}")
        if self.source is not None:
            lines.append(f"unicast_src_ip {self.source}")
        if self.peers:
            lines.append(f"unicast_peer {{\n{_lines(self.peers)}\n}}")
        if self.nopreempt:
            lines.append("nopreempt")
        return f"vrrp_instance {self.name} {{\n{_lines(lines)}\n}}\n"


class Keepalived:
    """One running keepalived. Use it as a context manager."""

    def __init__(
        self, node: Node, *instances: Instance, head: str = "", globally: Iterable[str] = ()
    ) -> None:
        """Start it; `head` goes before the instances, `globally` into `global_defs`."""
        self.node = node
        self._directory = tempfile.TemporaryDirectory(prefix="lb-keepalived-")
        self.root = Path(self._directory.name)
        self._fifo_path = self.root / "fifo"
        os.mkfifo(self._fifo_path)
        # Opened for writing too, so that the reading end never sees an end of file.
        self._fifo = os.open(self._fifo_path, os.O_RDWR | os.O_NONBLOCK)
        self._heard = b""
        defaults = ["enable_script_security", "script_user root", f"vrrp_notify_fifo {self._fifo_path}"]
        self._head = f"global_defs {{\n{_lines([*defaults, *globally])}\n}}\n{head}\n"
        self.configure(*instances)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.kill()
        os.close(self._fifo)
        if kind is not None:
            sys.stderr.write(f"--- log of keepalived in {self.node.name}\n{self.log()[-6000:]}\n")
        self._directory.cleanup()

    def configure(self, *instances: Instance) -> None:
        """Write other instances into its configuration, for the next `reload` or `start`."""
        blocks = "".join(each.text() for each in instances)
        (self.root / "keepalived.conf").write_text(self._head + blocks)

    def start(self) -> None:
        """Start it, for the first time or again."""
        command = [tools.path("keepalived") or "keepalived", "--dont-fork", "--log-console", "--log-detail"]
        command += ["--vrrp", f"--use-file={self.root / 'keepalived.conf'}"]
        command += [f"--pid={self.root / 'pid'}", f"--vrrp_pid={self.root / 'vrrp.pid'}"]
        with (self.root / "log").open("ab") as log:
            self._process = self.node.start(
                command, output=log, environment={**os.environ, "TMPDIR": str(self.root)}
            )

    def log(self) -> str:
        """Return what it has logged."""
        return (self.root / "log").read_text(errors="replace")

    def states(self, name: str = "VI", *, kind: str = "INSTANCE") -> list[str]:
        """Return every state of an instance that it has told, oldest first (`kind` "GROUP" for a group)."""
        try:
            while chunk := os.read(self._fifo, 1 << 16):
                self._heard += chunk
        except BlockingIOError:
            pass
        prefix = f'{kind} "{name}" '
        lines = self._heard.decode().splitlines()
        told = [line.removeprefix(prefix).split()[0] for line in lines if line.startswith(prefix)]
        # That a master heard a worse one is told in the same place, and is no state.
        return [each for each in told if each != "MASTER_RX_LOWER_PRI"]

    def state(self, name: str = "VI") -> str:
        """Return the last state of an instance, "" before the first."""
        return next(reversed(self.states(name)), "")

    def wait_for(self, state: str, name: str = "VI") -> None:
        """Wait for a state: MASTER, BACKUP, FAULT, STOP."""
        wait_until(lambda: self.state(name) == state, what=f"keepalived's {name} is {state}", timeout=20.0)

    def stop(self) -> None:
        """TERM it, and return when it has left; it takes a second to end."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(15)

    def terminate(self) -> None:
        """TERM it and do not wait."""
        assert self._process is not None
        self._process.terminate()

    def kill(self) -> None:
        """KILL it and its children; what it put on the interface stays there."""
        assert self._process is not None
        # The child would leave well when its parent dies, and the parent start another child.
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGSTOP)
            for pid in _children(self._process.pid):
                kill(pid)
            self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """Stop its VRRP process where it stands."""
        os.kill(self._worker(), signal.SIGSTOP)

    def go_on(self) -> None:
        """End `pause`."""
        os.kill(self._worker(), signal.SIGCONT)

    def counted(self, name: str = "VI") -> dict[str, int | float]:
        """Return what it has counted of an instance, its state (0 to 3) and its delays, by its own JSON."""
        told = self.root / "keepalived.json"
        told.unlink(missing_ok=True)
        os.kill(self._worker(), _signal_for_json())

        def found() -> dict[str, int | float] | None:
            with contextlib.suppress(OSError, ValueError):  # it is not written, or not to its end
                by_name = {each["data"]["iname"]: each for each in json.loads(told.read_bytes())}
                return {**by_name[name]["data"], **by_name[name]["stats"]}
            return None

        return wait_until(found, what=f"keepalived tells what it has counted of {name}")

    def reload(self) -> None:
        """Let it read its configuration again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)

    def _worker(self) -> int:
        return int((self.root / "vrrp.pid").read_text())


@functools.cache
def _signal_for_json() -> int:
    """Return the number of the signal, which is a matter of how it was built."""
    command = [tools.path("keepalived") or "keepalived", "--signum=JSON"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout)


def _children(pid: int) -> list[int]:
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(each) for each in listed if alive(int(each))]


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)
