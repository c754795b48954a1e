"""What many virtual routers cost: the share of a core of a keepalived and of ours, with an advert a second.

All of them are active on one node, in a network namespace, half of them IPv4 and half of them IPv6.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.network.namespaces import Node, Segment
from support.processes.waiting import wait_until
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vrrp_node import VrrpNode, router

COUNTS: Final = (510, 1000)
_SETTLED: Final = 20.0
_MEASURED: Final = 15.0
_ON_A_SEGMENT: Final = 250  # router ids of a family on one interface end at 255
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How much of one core a program took with so many virtual routers."""

    program: str
    count: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where one virtual router is: its interface, id and address."""

    interface: str
    number: int
    address: str


def measure(*, say: Callable[[str], None]) -> tuple[Share, ...]:
    """Return the shares, each program with each number in turn."""
    shares = tuple(_one(program, count) for count in COUNTS for program in ("keepalived", "appliance"))
    for each in shares:
        say(f"{each.program} with {each.count}: {each.share:.1%} of a core")
    return shares


def markdown(shares: tuple[Share, ...]) -> str:
    """Return a table of them."""
    lines = [f"| {each.program} | {each.count} | {each.share:.1%} |" for each in shares]
    return "\n".join(["| program | virtual routers | share of a core |", "|---|---|---|", *lines])


def _one(program: str, count: int) -> Share:
    with Segment() as segment:
        node = segment.node("one")
        places = [_place(number) for number in range(count)]
        _add_interfaces(segment, node, {each.interface for each in places})
        share = _of_keepalived(node, places) if program == "keepalived" else _of_ours(node, places)
    return Share(program=program, count=count, share=share)


def _place(number: int) -> _Place:
    part, host = divmod(number, _ON_A_SEGMENT)
    address = f"198.18.{part}.{host + 1}/32" if part % 2 == 0 else f"fd00:{part}::{host + 1:x}/128"
    return _Place(interface=f"eth{part // 2}", number=host + 1, address=address)


def _add_interfaces(segment: Segment, node: Node, names: set[str]) -> None:
    for name in sorted(names - {"eth0"}):
        segment.batch(
            f"link add {name} type veth peer name {name} netns {node.name}",
            f"link set {name} up",  # a segment of its own: the ids are used anew
        )
        node.batch(f"link set {name} up", f"address add 198.19.{name[3:]}.1/24 dev {name}")
    wait_until(lambda: all(_has_link_local(node, name) for name in names), what="link-local addresses")


def _has_link_local(node: Node, name: str) -> bool:
    return any(each.startswith("fe80") for each in node.addresses(name))


def _of_keepalived(node: Node, places: list[_Place]) -> float:
    instances = [
        Instance(
            name=f"r{index}",
            interface=each.interface,
            router_id=each.number,
            addresses=(each.address,),
            advert=1.0,
        )
        for index, each in enumerate(places)
    ]
    with Keepalived(node, *instances) as keepalived:
        for each in instances:
            keepalived.wait_for("MASTER", each.name)
        return _share([int((keepalived.root / name).read_text()) for name in ("pid", "vrrp.pid")])


def _of_ours(node: Node, places: list[_Place]) -> float:
    routers = [
        router(
            f"r{index}",
            interface=each.interface,
            router_id=each.number,
            addresses=(each.address,),
            advert=1.0,
        )
        for index, each in enumerate(places)
    ]
    with VrrpNode(node, *routers) as ours:
        ours.wait_for("active", routers[-1].name)
        return _share([ours.pid])


def _share(pids: list[int]) -> float:
    """Return the share when what a start brings is over."""
    time.sleep(_SETTLED)
    begun, used = time.monotonic(), _used(pids)
    time.sleep(_MEASURED)
    return (_used(pids) - used) / (time.monotonic() - begun)


def _used(pids: list[int]) -> float:
    """Return processor seconds, user and system."""
    fields = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids)
    return sum(int(each[11]) + int(each[12]) for each in fields) / _TICKS
