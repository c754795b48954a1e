"""Nodes on one Ethernet segment: network namespaces joined by a bridge that has a namespace of its own.

Everything is named after this process and deleted at the end, with the programs that still run in it::

    with Segment() as segment:
        first, second = segment.node("first"), segment.node("second")
        first.start(["nc", "-l", "80"])
"""

import contextlib
import ctypes
import itertools
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Final, Self

from support.processes.waiting import patient, wait_until
from support.run import tools

INTERFACE: Final = "eth0"
"""Name of every node's interface on the segment."""

_NAMESPACES: Final = Path("/run/netns")
_CLONE_NEWNET: Final = 0x40000000
_PATIENCE: Final = 10.0  # seconds until a killed program is gone
_serials = itertools.count(1)


class Node:
    """One machine of a segment: `eth0` with 192.0.2.N/24 and fd00::N/64, N as numbered by the segment.

    Duplicate address detection is off, so its link-local address works at once as well. `name` is the
    namespace's; `port` the interface on the bridge's side, in the namespace of `segment`.
    """

    def __init__(self, *, segment: "Segment", name: str, number: int) -> None:
        self.name = f"{segment.name}-{name}"
        self.port = f"port{number}"
        self.address = f"192.0.2.{number}"
        self.address6 = f"fd00::{number:x}"
        self.mac = f"02:00:00:00:00:{number:02x}"
        self.segment = segment
        self._processes: list[subprocess.Popen[bytes]] = []
        _ip("netns", "add", self.name)
        with self.inside():
            for place in ("all", "default"):
                Path(f"/proc/sys/net/ipv6/conf/{place}/accept_dad").write_text("0")
        segment.batch(
            f"link add {self.port} type veth peer name {INTERFACE} address {self.mac} netns {self.name}",
            f"link set {self.port} master bridge up",
        )
        self.batch(
            "link set lo up",
            f"link set {INTERFACE} up",
            f"address add {self.address}/24 dev {INTERFACE}",
            f"address add {self.address6}/64 dev {INTERFACE} nodad",
        )

    @property
    def link_local(self) -> str:
        """The link-local IPv6 address, without its interface."""
        return next(found.split("/")[0] for found in self.addresses() if found.startswith("fe80"))

    def has_link_local(self) -> bool:
        """Return whether the link-local address is there and in use."""
        shown = self.ip("-6", "-oneline", "address", "show", "dev", INTERFACE, "scope", "link")
        return "fe80" in shown and "tentative" not in shown

    def run(self, arguments: Sequence[str], *, check: bool = True, timeout: float = 30.0) -> str:
        """Run a program to its end and return its output; a failure raises with what it printed."""
        ran = subprocess.run(
            [*_entering(self.name), *arguments],
            check=False,
            capture_output=True,
            text=True,
            timeout=patient(timeout),
        )
        if check and ran.returncode:
            raise AssertionError(f"{' '.join(arguments)}: {ran.returncode}\n{ran.stdout}{ran.stderr}")
        return ran.stdout

    def start(
        self,
        arguments: Sequence[str],
        *,
        output: IO[bytes] | int = subprocess.DEVNULL,
        environment: dict[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a program; its pid is the process's. It is killed with the node if it still runs then."""
        process = subprocess.Popen(
            [*_entering(self.name), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
        )
        self._processes.append(process)
        return process

    def batch(self, *lines: str) -> None:
        """Run commands of `ip`, one on each line, by one process."""
        _batch(self.name, lines)

    def ip(self, *arguments: str) -> str:
        """Run one command of `ip`."""
        return _ip("-n", self.name, *arguments)

    def addresses(self, interface: str = INTERFACE) -> frozenset[str]:
        """Return the addresses of an interface with their prefix lengths; none when it is not there."""
        try:
            links = json.loads(self.ip("-json", "address", "show", "dev", interface))
        except AssertionError:
            return frozenset()
        return frozenset(
            f"{found['local']}/{found['prefixlen']}"
            for link in links
            for found in link.get("addr_info", ())
            if "local" in found
        )

    def holds(self, address: str, interface: str = INTERFACE) -> bool:
        """Return whether the interface has the address, given with or without its prefix length."""
        found = self.addresses(interface)
        return address in found or address in {each.split("/")[0] for each in found}

    def unplug(self) -> None:
        """Pull the cable: the interface loses its carrier."""
        self.segment.batch(f"link set {self.port} down")

    def plug(self) -> None:
        """Put the cable back; the bridge forwards again on return."""
        self.segment.batch(f"link set {self.port} up")
        self.forwards()

    def isolate(self) -> None:
        """Cut the node off without a sign of it: the carrier stays, every frame is lost."""
        self.segment.batch(f"link set {self.port} nomaster")

    def rejoin(self) -> None:
        """End `isolate`."""
        self.segment.batch(f"link set {self.port} master bridge")
        self.forwards()

    def forwards(self) -> None:
        """Wait until the bridge forwards: a frame sent earlier is lost without a sign."""
        wait_until(
            lambda: "state forwarding" in self.segment.port(self),
            what=f"{self.port} forwards",
            pause=0.002,
        )

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Be in the node: sockets and processes made in the block are the node's, and stay so after it.

        Only the calling thread moves.
        """
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            there = os.open(_NAMESPACES / self.name, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _enter(there)
            finally:
                os.close(there)
            try:
                yield
            finally:
                _enter(home)
        finally:
            os.close(home)

    def close(self) -> None:
        """Kill what still runs in the node and delete it; harmless when repeated."""
        with contextlib.suppress(AssertionError):
            for pid in _ip("netns", "pids", self.name).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        for process in self._processes:
            process.kill()  # one that was started just now may not have been in the node yet
            process.wait(_PATIENCE)
        with contextlib.suppress(AssertionError):
            _ip("netns", "delete", self.name)


class Segment:
    """A bridge that forwards at once and every multicast, and the nodes on it."""

    def __init__(self) -> None:
        self.name = f"lb{os.getpid()}n{next(_serials)}"
        self.nodes: dict[str, Node] = {}
        _ip("netns", "add", self.name)
        try:
            self.batch(
                "link add bridge type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
                "link set bridge up",
            )
        except AssertionError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def node(self, name: str) -> Node:
        """Add a node; the first one is number 1."""
        node = Node(segment=self, name=name, number=len(self.nodes) + 1)
        self.nodes[name] = node
        node.forwards()
        # The kernel makes it up, and finds that it need not be detected, a little later.
        wait_until(node.has_link_local, what=f"{node.name} has its link-local address", pause=0.002)
        return node

    def port(self, node: Node) -> str:
        """Return what `ip` tells about a node's port on the bridge."""
        return _ip("-n", self.name, "-details", "link", "show", "dev", node.port)

    def batch(self, *lines: str) -> None:
        """Run commands of `ip` where the bridge is."""
        _batch(self.name, lines)

    def run(self, arguments: Sequence[str]) -> str:
        """Run a program where the bridge is, where every frame can be seen, and return its output."""
        return subprocess.run(
            [*_entering(self.name), *arguments],
            check=True,
            capture_output=True,
            text=True,
            timeout=patient(30),
        ).stdout

    def close(self) -> None:
        """Delete the nodes and the bridge; harmless when repeated."""
        for node in self.nodes.values():
            node.close()
        with contextlib.suppress(AssertionError):
            _ip("netns", "delete", self.name)


def _enter(namespace: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(namespace, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def _entering(namespace: str) -> list[str]:
    # nsenter keeps the mounts, which `ip netns exec` does not.
    return ["nsenter", f"--net={_NAMESPACES / namespace}", "--"]


def _ip(*arguments: str) -> str:
    return _checked([tools.path("ip") or "ip", *arguments], None)


def _batch(namespace: str, lines: Sequence[str]) -> None:
    _checked([tools.path("ip") or "ip", "-n", namespace, "-batch", "-"], "\n".join(lines) + "\n")


def _checked(arguments: list[str], text: str | None) -> str:
    ran = subprocess.run(
        arguments, check=False, input=text, capture_output=True, text=True, timeout=patient(30)
    )
    if ran.returncode:
        raise AssertionError(f"{' '.join(arguments)}: {ran.stderr.strip()} (given {text!r})")
    return ran.stdout
