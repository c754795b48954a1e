"""Nodes that all serve the same shared addresses behind a router with ECMP routes, and a client beyond it.

The router gets its routes by hand, as it would by BGP, and hashes ports and addresses (layer 4).
"""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Self

from support.linger.linger_field import KEY, PORT, SERVER_PORT, LingerNode, listed
from support.network import echoer
from support.network.namespaces import INTERFACE, Node, Segment
from support.processes.waiting import wait_until
from support.supervisor.appliance import Values

SHARED: Final = "198.51.100.10"
SHARED6: Final = "2001:db8:10::10"
OUTSIDE: Final = "203.0.113"
OUTSIDE6: Final = "2001:db8:20:"
NAMES: Final = ("one", "two", "three", "four", "five")

UPLINK: Final = "out0"
"""The router's interface towards the client."""

_ROUTER: Final = 254  # the router's number outside
_PATIENCE: Final = 30.0


def config(peers: Iterable[str], *, linger: bool = True) -> dict[str, object]:
    """Return the configuration of a node with these peers, whose pool is the server of its own name."""
    found: dict[str, object] = {
        "api": {"workers": 1, "frontends": {"kube-api": {"bind": [f"[::]:{PORT}"], "pool": "own"}}},
        "pools": {
            "own": {
                "check": {"type": "tcp", "interval": "1s"},
                "servers": {"own": {"address": f"127.0.0.1:{SERVER_PORT}"}},
            }
        },
        "defaults": {"drain": "2s"},
        "shared_ips": {"all": {"addresses": [f"{SHARED}/32", f"{SHARED6}/128"], "drain": "1s"}},
        "bgp": {"engine": "table", "asn": 64512},
    }
    return {**found, "linger": {"key": KEY, "peers": list(peers)}} if linger else found


class SharedField:
    """The nodes by name, their router and the client. Use it as a context manager."""

    def __init__(self, count: int, *, linger: bool = True) -> None:
        self._stack = contextlib.ExitStack()
        self._linger = linger
        self._segment = self._stack.enter_context(Segment())
        self._outside = self._stack.enter_context(Segment())
        self.machines = {name: self._segment.node(name) for name in NAMES[:count]}
        self.router = self._segment.node("router")
        self.client = self._outside.node("client")
        self.nodes: dict[str, LingerNode] = {}
        self._join_networks()

    def __enter__(self) -> Self:
        with self._stack:
            for name, machine in self.machines.items():
                made = LingerNode(machine, name, self.config(name), server=echoer.__file__)
                self.nodes[name] = self._stack.enter_context(made)
            self.wait_until_ready()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *given: object) -> None:
        self._stack.__exit__(*given)  # type: ignore[arg-type]  # as it came

    def route(self, *names: str) -> None:
        """Have the router spread connections over these nodes."""
        for address, via in ((SHARED, "address"), (SHARED6, "address6")):
            hops = [f"nexthop via {getattr(self.machines[name], via)} dev {INTERFACE}" for name in names]
            self.router.ip(*f"route replace {address} {' '.join(hops)}".split())

    def wait_until_ready(self) -> None:
        """Wait until each node that lives says that the addresses can be announced, and has heard all."""
        if self._linger:
            for name in self.nodes:
                wait_until(lambda: self.is_ready(name), what=f"{name} is ready", timeout=_PATIENCE)  # noqa: B023  # called at once

    def is_ready(self, name: str) -> bool:
        """Return whether a node is ready with all others that run."""
        others = sum(each.appliance.is_running() for each in self.nodes.values()) - 1
        shared = self.shared(name)
        return len(shared) == 2 and all(
            each["ready"] and len(listed(each, "nodes")) == others for each in shared
        )

    def shared(self, name: str) -> list[Values]:
        """Return what a node says of the shared addresses."""
        return listed(self.nodes[name].status(), "shared")

    def strays(self, name: str) -> dict[str, int]:
        """Return what became of the strays at a node."""
        found = self.nodes[name].status().get("strays", {})
        assert isinstance(found, dict)
        return found

    def config(self, name: str, *more: str) -> dict[str, object]:
        """Return a node's configuration; `more` are further peers."""
        peers = [
            address
            for other, each in self.machines.items()
            for address in (each.address, each.address6)
            if other != name
        ]
        return config([*peers, *more], linger=self._linger)

    def _join_networks(self) -> None:
        """Connect the router to the client's network, and all to the router."""
        self._outside.batch(
            f"link add uplink type veth peer name {UPLINK} netns {self.router.name}",
            "link set uplink master bridge up",
        )
        self.router.batch(
            f"link set {UPLINK} up",
            f"address add {OUTSIDE}.{_ROUTER}/24 dev {UPLINK}",
            f"address add {OUTSIDE6}:{_ROUTER}/64 dev {UPLINK} nodad",
        )
        _set(
            self.router,
            "ipv4/ip_forward",
            "ipv6/conf/all/forwarding",
            "ipv4/fib_multipath_hash_policy",
            "ipv6/fib_multipath_hash_policy",
        )
        self.client.batch(
            f"address flush dev {INTERFACE} scope global",
            f"address add {OUTSIDE}.1/24 dev {INTERFACE}",
            f"address add {OUTSIDE6}:1/64 dev {INTERFACE} nodad",
            f"route add default via {OUTSIDE}.{_ROUTER}",
            f"route add default via {OUTSIDE6}:{_ROUTER}",
        )
        for machine in self.machines.values():
            machine.batch(
                f"route add default via {self.router.address}",
                f"route add default via {self.router.address6}",
            )


def _set(node: Node, *names: str) -> None:
    """Set these options of a node's network to 1."""
    with node.inside():
        for each in names:
            (Path("/proc/sys/net") / each).write_text("1")


@contextlib.contextmanager
def shared_field(count: int, *, linger: bool = True) -> Iterator[SharedField]:
    """Run so many nodes, all of which the router uses."""
    with SharedField(count, linger=linger) as field:
        field.route(*field.machines)
        yield field
