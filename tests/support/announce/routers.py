"""Routers that learn shared addresses by BGP: Debian's BIRD and FRR, each in a node with files of its own."""

import json
import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from support.network.namespaces import Node
from support.processes.processes import kill
from support.processes.waiting import wait_until
from support.run import tools

ASN: Final = 64600
_FRR: Final = Path("/usr/lib/frr")


class Router:
    """Spreads connections over all nodes that announce an address. Use it as a context manager."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._directory = tempfile.TemporaryDirectory(prefix="lb-router-")
        self.root = Path(self._directory.name)
        self._processes: list[subprocess.Popen[bytes]] = []
        with node.inside():
            for family in ("ipv4", "ipv6"):
                Path(f"/proc/sys/net/{family}/fib_multipath_hash_policy").write_text("1")
            Path("/proc/sys/net/ipv4/ip_forward").write_text("1")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for each in self._processes:
            kill(each.pid)
        if kind is not None:
            sys.stderr.write(f"--- log of the router\n{self.log()[-4000:]}\n")
        self._directory.cleanup()

    def log(self) -> str:
        """Return what it has logged."""
        found = sorted(self.root.glob("*log*"))
        return "".join(each.read_text(errors="replace") for each in found)

    def next_hops(self, address: str) -> frozenset[str]:
        """Return the nodes to which the kernel of the router sends packets for an address."""
        family = "-6" if ":" in address else "-4"
        found = json.loads(self.node.ip("-json", family, "route", "show", address) or "[]")
        return frozenset(
            str(hop["via"]["host"] if "via" in hop else hop["gateway"])
            for route in found
            for hop in route.get("nexthops", [route])
            if "gateway" in hop or "via" in hop
        )

    def serving(self, address: str, nodes: Sequence[Node]) -> list[str]:
        """Return the names of those of these nodes that get packets for an address."""
        hops = self.next_hops(address)
        return [each.name for each in nodes if hops & {each.address, each.address6, each.link_local}]

    def wait_for(self, address: str, *nodes: Node, timeout: float = 30.0) -> None:
        """Wait until exactly these nodes get the packets for an address."""
        names = [each.name for each in nodes]
        wait_until(
            lambda: self.serving(address, nodes) == names and len(self.next_hops(address)) == len(nodes),
            what=f"the router sends packets for {address} to {', '.join(names) or 'no node'}",
            timeout=timeout,
        )

    def watch(self) -> None:
        """Record the changes of the kernel's routes from now on, for `changes`."""
        self._start(["ip", "monitor", "route"], "monitor")

    def changes(self, address: str) -> list[str]:
        """Return the recorded changes of routes for an address."""
        recorded = (self.root / "monitor").read_text().splitlines()
        return [each for each in recorded if address in each]

    def _start(self, words: Sequence[str], log: str) -> None:
        with (self.root / log).open("ab") as output:
            self._processes.append(self.node.start(words, output=output))

    def _start_frr(self, config: Path) -> None:
        """Start zebra, bfdd and bgpd with one file."""
        for path in (self.root, config):  # its daemons become the user frr
            os.chown(path, pwd.getpwnam("frr").pw_uid, pwd.getpwnam("frr").pw_gid)
        for name in ("zebra", "bfdd", "bgpd"):
            words = [str(_FRR / name), "-z", str(self.root / "zserv"), "--vty_socket", str(self.root)]
            words += ["-i", str(self.root / f"{name}.pid"), "-P", "0", "--log", "stdout", "-f", str(config)]
            words += ["--bfdctl", str(self.root / "bfdd.sock")] if name == "bfdd" else []
            self._start(words, f"log-{name}")
            if name == "zebra":
                wait_until((self.root / "zserv").exists, what="zebra listens", timeout=20.0)


class BirdRouter(Router):
    """BIRD 2; an announcement with GRACEFUL_SHUTDOWN is used only if there is no other (RFC 8326)."""

    def __init__(
        self, node: Node, neighbors: Sequence[str], *, asn: int, lines: str = "", bfd: bool = True
    ) -> None:
        super().__init__(node)
        peers = "".join(
            f"""protocol bgp n{number} {{ local as {ASN}; neighbor {each} as {asn}; {lines}
  connect delay time 1; error wait time 1, 4; {"bfd { interval 100 ms; multiplier 3; };" if bfd else ""}
  ipv{6 if ":" in each else 4} {{ export none; import filter {{
    if (65535, 0) ~ bgp_community then bgp_local_pref = 0; accept; }}; }}; }}
"""
            for number, each in enumerate(neighbors)
        )
        (self.root / "bird.conf").write_text(
            f"""router id {node.address};
log stderr all;
protocol device {{ }}
protocol bfd {{ }}
protocol kernel {{ merge paths on; ipv4 {{ import none; export all; }}; }}
protocol kernel {{ merge paths on; ipv6 {{ import none; export all; }}; }}
{peers}"""
        )
        bird = tools.path("bird") or "bird"
        self._start([bird, "-f", "-c", str(self.root / "bird.conf"), "-s", str(self.root / "ctl")], "log")

    def show(self, command: str) -> str:
        """Return the answer to a command."""
        birdc = tools.path("birdc") or "birdc"
        return self.node.run([birdc, "-s", str(self.root / "ctl"), *command.split()], check=False)


class FrrRouter(Router):
    """FRR: zebra, bgpd and bfdd. It gives GRACEFUL_SHUTDOWN the preference 0 by itself."""

    def __init__(self, node: Node, neighbors: Sequence[str], *, asn: int, lines: str = "") -> None:
        super().__init__(node)
        peers = "".join(
            f" neighbor {each} remote-as {asn}\n neighbor {each} bfd profile fast\n{lines}"
            for each in neighbors
        )
        families = "".join(
            f" address-family {word} unicast\n"
            + "".join(
                f"  {'no ' if (':' in each) != (word == 'ipv6') else ''}neighbor {each} activate\n"
                for each in neighbors
            )
            + "  maximum-paths 16\n exit-address-family\n"
            for word in ("ipv4", "ipv6")
        )
        config = self.root / "frr.conf"
        config.write_text(
            "hostname router\n"
            "bfd\n profile fast\n  receive-interval 100\n  transmit-interval 100\n"
            f"router bgp {ASN}\n bgp router-id {node.address}\n"
            " no bgp ebgp-requires-policy\n bgp bestpath as-path multipath-relax\n"
            f" timers bgp 3 9\n{peers}{families}"
        )
        self._start_frr(config)

    def show(self, command: str) -> str:
        """Return the answer to a command of vtysh."""
        vtysh = tools.path("vtysh") or "vtysh"
        return self.node.run([vtysh, "--vty_socket", str(self.root), "-c", command], check=False)
