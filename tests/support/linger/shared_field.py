"""Nodes that all serve the same shared addresses behind a router with ECMP routes, and a client beyond it.

The router gets its routes by hand, as it would by BGP, and hashes ports and addresses (layer 4). With
`racks` each node is on a segment of its own, and only the router is on all of them.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Self

from support.documents.pages import page
from support.linger.linger_field import KEY, PORT, SERVER_PORT, LingerNode, listed
from support.network import echoer
from support.network.namespaces import INTERFACE, Node, Segment
from support.processes.waiting import wait_until
from support.supervisor.appliance import Values

SHARED: Final = "198.51.100.10"
SHARED6: Final = "2001:db8:10::10"
OUTSIDE: Final = "203.0.113"
OUTSIDE6: Final = "2001:db8:20:"
HOPS: Final = {
    4: tuple(f"192.0.2.{each}" for each in range(201, 207)),
    6: tuple(f"fd00::{each}" for each in range(201, 207)),
}
"""The virtual next hops of `HopsField`; six go evenly to three nodes, to two and to one."""

NAMES: Final = ("one", "two", "three", "four", "five")

UPLINK: Final = "out0"
"""The router's interface towards the client."""

_MANUAL: Final = re.findall(
    r"^\$ (ip route replace .*|sysctl .*fib_mult.*)$", page("shared-ips"), re.MULTILINE
)
"""What docs/shared-ips.md types at a router: a route to two next hops, and a hash of addresses and ports."""

_ROUTER: Final = 254  # the router's number outside
_PATIENCE: Final = 30.0


def config(
    peers: Iterable[str], *, linger: bool = True, vxlan: dict[str, object] | None = None
) -> dict[str, object]:
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
    if not linger:
        return found
    more = {} if vxlan is None else {"vxlan": vxlan}
    return {**found, "linger": {"key": KEY, "peers": list(peers), **more}}


class SharedField:
    """The nodes by name, their router and the client. Use it as a context manager."""

    def __init__(
        self,
        count: int,
        *,
        linger: bool = True,
        racks: bool = False,
        vxlan: dict[str, object] | None = None,
        wait: bool = True,
        resilient: bool = False,
    ) -> None:
        self._stack = contextlib.ExitStack()
        self._resilient = resilient
        self._linger = linger
        self._wait = wait
        self._racks = racks
        self._vxlan = vxlan
        self._segment = self._stack.enter_context(Segment())
        self._outside = self._stack.enter_context(Segment())
        segments = [self._stack.enter_context(Segment()) if racks else self._segment for _ in range(count)]
        self.machines = {name: each.node(name) for name, each in zip(NAMES, segments, strict=False)}
        self.router = self._segment.node("router")
        self.client = self._outside.node("client")
        self.nodes: dict[str, LingerNode] = {}
        self._join_networks()

    def __enter__(self) -> Self:
        with self._stack:
            for name, machine in self.machines.items():
                made = LingerNode(machine, name, self.config(name), server=echoer.__file__)
                self.nodes[name] = self._stack.enter_context(made)
            if self._wait:
                self.wait_until_ready()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *given: object) -> None:
        self._stack.__exit__(*given)  # type: ignore[arg-type]  # as it came

    def route(self, *names: str) -> None:
        """Have the router spread connections over these nodes."""
        for address, via in ((SHARED, "address"), (SHARED6, "address6")):
            hops = [f"via {getattr(self.machines[name], via)} dev {self._port(name)}" for name in names]
            if self._resilient:
                self._route_resilient(address, names, hops)
            else:
                paths = " ".join(f"nexthop {each}" for each in hops)
                self.router.ip(*f"route replace {address} {paths}".split())

    def _route_resilient(self, address: str, names: Iterable[str], hops: Iterable[str]) -> None:
        """Have a group whose buckets stay with their next hops, except those of a next hop that goes."""
        group = 200 if ":" in address else 100
        numbers = [group + 1 + list(self.machines).index(each) for each in names]
        members = "/".join(map(str, numbers))
        self.router.batch(
            *(f"nexthop replace id {number} {hop}" for number, hop in zip(numbers, hops, strict=True)),
            f"nexthop replace id {group} group {members} type resilient buckets 128 idle_timer 1",
            f"route replace {address} nhid {group}",
        )

    def wait_for(self, *names: str) -> None:
        """Wait until these nodes serve the addresses, and have the router use exactly them."""
        for each in names:
            wait_until(lambda: self.serves(each), what=f"{each} serves", timeout=_PATIENCE)  # noqa: B023  # called at once
        self.route(*names)

    def serves(self, name: str) -> bool:
        """Return whether a node has both addresses in the table that routers are to learn."""
        machine = self.machines[name]
        shown = "".join(machine.ip(family, "route", "show", "table", "all") for family in ("-4", "-6"))
        return all(f"{address} dev lo table 198" in shown for address in (SHARED, SHARED6))

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
        return config([*peers, *more], linger=self._linger, vxlan=self._vxlan)

    def _port(self, name: str) -> str:
        """Return the router's interface towards a node."""
        return f"to{name}" if self._racks else INTERFACE

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
        # Within one kernel the router does not hash the packet's header, but takes the hash of the client's
        # socket, and that changes when the client sends again (net.core.txrehash).
        _set(self.client, "core/txrehash", to="0")
        self.client.batch(
            f"address flush dev {INTERFACE} scope global",
            f"address add {OUTSIDE}.1/24 dev {INTERFACE}",
            f"address add {OUTSIDE6}:1/64 dev {INTERFACE} nodad",
            f"route add default via {OUTSIDE}.{_ROUTER}",
            f"route add default via {OUTSIDE6}:{_ROUTER}",
        )
        for number, (name, machine) in enumerate(self.machines.items()):
            via, via6 = self.router.address, self.router.address6
            if self._racks:
                via, via6 = self._join_rack(name, machine, number)
            machine.batch(f"route add default via {via}", f"route add default via {via6}")

    def _join_rack(self, name: str, machine: Node, number: int) -> tuple[str, str]:
        """Put a node in a network of its own; return the router's addresses there."""
        port, network, network6 = self._port(name), f"10.0.{number}", f"fd00:{number + 1}:"
        machine.segment.batch(
            f"link add uplink type veth peer name {port} netns {self.router.name}",
            "link set uplink master bridge up",
        )
        for node, interface, place in ((self.router, port, _ROUTER), (machine, INTERFACE, 1)):
            node.batch(
                f"address flush dev {interface} scope global",
                f"link set {interface} up",
                f"address add {network}.{place}/24 dev {interface}",
                f"address add {network6}:{place}/64 dev {interface} nodad",
            )
        machine.address, machine.address6 = f"{network}.1", f"{network6}:1"
        return f"{network}.{_ROUTER}", f"{network6}:{_ROUTER}"


def _set(node: Node, *names: str, to: str = "1") -> None:
    """Set these options of a node's network."""
    with node.inside():
        for each in names:
            (Path("/proc/sys/net") / each).write_text(to)


class HopsField(SharedField):
    """The same without BGP: virtual IPs, which VRRP spreads over the nodes, are the router's next hops."""

    def config(self, *_: str) -> dict[str, object]:
        """Return the configuration of all nodes; each virtual IP follows the shared addresses."""
        virtual = {
            f"hop-{family}-{number}": {
                "addresses": [f"{hop}/{24 if family == 4 else 64}"],
                "interface": INTERFACE,
                "router_id": number,
                "version": 3,
                "advert": "200ms",
                "spread": {},
                "track": {"serves": {"program": "announce", "interval": "300ms", "fall": 3}},
            }
            for family, hops in HOPS.items()
            for number, hop in enumerate(hops, start=1)
        }
        nodes = {
            each: {"address": machine.address, "ipv6": machine.address6}
            for each, machine in self.machines.items()
        }
        found = config([])
        del found["bgp"]
        return {**found, "nodes": nodes, "virtual_ips": virtual, "linger": {"key": KEY}}

    def route(self, *_: str) -> None:
        """Have the router spread connections over the virtual IPs, by the commands of the page."""
        route, sysctl = _MANUAL
        for address, hops in ((SHARED, HOPS[4]), (SHARED6, HOPS[6])):
            command = route.replace(SHARED, address).partition(" nexthop ")[0]
            self.router.run([*command.split(), *" ".join(f"nexthop via {hop}" for hop in hops).split()])
        self.router.run(sysctl.split())

    def wait_for(self, *names: str) -> None:
        """Wait until these nodes have all next hops, each of them some; a dead node holds its own, unseen."""
        total = sum(map(len, HOPS.values()))
        wait_until(
            lambda: all(held := [self.hops(each) for each in names]) and sum(held) == total,
            what=f"the next hops are at {', '.join(names)}",
            timeout=60.0,
        )

    def hops(self, name: str) -> int:
        """Return how many of the next hops a node holds."""
        held = {each.partition("/")[0] for each in self.machines[name].addresses()}
        return sum(hop in held for hops in HOPS.values() for hop in hops)


@contextlib.contextmanager
def hops_field(count: int) -> Iterator[HopsField]:
    """Run so many nodes, over which VRRP has spread the next hops."""
    with HopsField(count) as field:
        field.route()
        field.wait_for(*field.machines)
        yield field


@contextlib.contextmanager
def shared_field(
    count: int,
    *,
    linger: bool = True,
    racks: bool = False,
    vxlan: dict[str, object] | None = None,
    wait: bool = True,
    resilient: bool = False,
) -> Iterator[SharedField]:
    """Run so many nodes, all of which the router uses; `wait` until all have heard each other."""
    made = SharedField(count, linger=linger, racks=racks, vxlan=vxlan, wait=wait, resilient=resilient)
    with made as field:
        if wait:
            field.wait_for(*field.machines)
        else:
            field.route(*field.machines)
        yield field
