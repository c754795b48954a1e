"""FRR's vrrpd, with its zebra, in a node: a second peer beside keepalived.

FRR holds a virtual address on a macvlan of its own with the virtual MAC, which has to be there before it
starts; while it is not the active router it takes the macvlan's carrier away (protodown).
"""

import json
import os
import pwd
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from support.network.namespaces import INTERFACE, Node
from support.processes.processes import end
from support.processes.waiting import wait_until
from support.run import tools

_MACVLAN: Final = "vrrp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One virtual router of one family; `advert` is seconds."""

    router_id: int = 42
    version: int = 3
    priority: int = 100
    advert: float = 0.1
    address: str = "192.0.2.100/24"
    preempt: bool = True

    @property
    def family(self) -> int:
        """4 or 6."""
        return 6 if ":" in self.address else 4

    @property
    def mac(self) -> str:
        """The virtual MAC (RFC 9568 section 7.3)."""
        return f"00:00:5e:00:{'02' if self.family == 6 else '01'}:{self.router_id:02x}"

    def lines(self) -> list[str]:
        """Return its lines of the configuration."""
        words = "ipv6" if self.family == 6 else "ip"
        start = f" vrrp {self.router_id}"
        return [
            f"{start} version {self.version}",
            f"{start} priority {self.priority}",
            f"{start} advertisement-interval {round(self.advert * 1000)}",
            f"{start} {words} {self.address.partition('/')[0]}",
            f"{start} preempt" if self.preempt else f"no{start} preempt",
        ]


class Frr:
    """zebra and vrrpd in a node. Use it as a context manager."""

    def __init__(self, node: Node, settings: Settings) -> None:
        """Make the macvlan and start both."""
        self.node = node
        self._settings = settings
        # Its daemons become the user frr, who has to reach what is here.
        self._directory = tempfile.TemporaryDirectory(prefix="lb-frr-")
        self.root = Path(self._directory.name)
        self._write(settings)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._make_macvlan(settings)
        self._start("zebra")
        wait_until((self.root / "zebra.socket").exists, what="zebra listens")
        self._start("vrrpd")
        wait_until((self.root / "vrrpd.vty").exists, what="vrrpd listens")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for process in reversed(self._processes):
            end(process)
        self.node.ip("link", "delete", _MACVLAN)
        if kind is not None:
            sys.stderr.write(f"--- log of frr in {self.node.name}\n{self.log()[-6000:]}\n")
        self._directory.cleanup()

    def log(self) -> str:
        """Return what both have logged."""
        return "".join(path.read_text() for path in sorted(self.root.glob("*.log")))

    def state(self) -> str:
        """Return Initialize, Backup or Master, "" while it does not answer."""
        answer = self.node.run(
            [tools.path("vtysh") or "vtysh", "--vty_socket", str(self.root), "-c", "show vrrp json"],
            check=False,
        )
        try:
            shown = json.loads(answer)
        except ValueError:
            return ""
        return str(shown[0][f"v{self._settings.family}"]["status"]) if shown else ""

    def wait_for(self, state: str) -> None:
        """Wait for a state."""
        wait_until(lambda: self.state() == state, what=f"FRR is {state}", timeout=20.0, pause=0.1)

    def answers(self) -> bool:
        """Return whether the virtual address is in use: the macvlan has its carrier."""
        return "LOWER_UP" in self.node.ip("link", "show", "dev", _MACVLAN)

    def terminate(self) -> None:
        """TERM vrrpd; zebra stays, to take the carrier away."""
        self._processes[-1].terminate()

    def _write(self, settings: Settings) -> None:
        common = f"log file {self.root}/{{}}.log informational\n"
        body = "\n".join([f"interface {INTERFACE}", *settings.lines()])
        (self.root / "zebra.conf").write_text(common.format("zebra"))
        (self.root / "vrrpd.conf").write_text(f"{common.format('vrrpd')}{body}\n")
        user = pwd.getpwnam("frr")
        for path in (self.root, *self.root.iterdir()):
            os.chown(path, user.pw_uid, user.pw_gid)

    def _make_macvlan(self, settings: Settings) -> None:
        link = f"link add {_MACVLAN} link {INTERFACE} address {settings.mac}"
        lines = [f"{link} type macvlan mode bridge"]
        if settings.family == 4:
            lines.append(f"link set {_MACVLAN} addrgenmode none")
        nodad = " nodad" if settings.family == 6 else ""
        self.node.batch(
            *lines, f"address add {settings.address} dev {_MACVLAN}{nodad}", f"link set {_MACVLAN} up"
        )

    def _start(self, daemon: str) -> None:
        files = ["-f", f"{self.root}/{daemon}.conf", "-i", f"{self.root}/{daemon}.pid"]
        sockets = ["-z", f"{self.root}/zebra.socket", "--vty_socket", str(self.root), "-P", "0"]
        with (self.root / f"{daemon}.log").open("ab") as log:
            os.chown(log.fileno(), pwd.getpwnam("frr").pw_uid, -1)
            self._processes.append(
                self.node.start([tools.path(daemon) or daemon, *files, *sockets], output=log)
            )
