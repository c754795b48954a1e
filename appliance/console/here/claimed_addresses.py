"""Virtual addresses that another machine has, by ARP and neighbour discovery."""

import contextlib
import select
import time
from collections.abc import Iterable, Iterator
from ipaddress import ip_interface
from typing import Final

from appliance.model.capability import Capability
from appliance.model.messages.problems import Finding, Severity
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.netlink.links import Link, Links
from appliance.net.packets.frames import FrameSocket
from appliance.net.privileges import process_capabilities
from appliance.wire.ethernet import arp, neighbour_discovery
from appliance.wire.ethernet.arp import ArpError
from appliance.wire.ethernet.neighbour_discovery import NeighbourError

_WAIT: Final = 1.0
"""Seconds to wait for answers: RFC 5227 section 1.1 waits one to two (PROBE_MIN, PROBE_MAX)."""

_VIRTUAL_MAC: Final = {4: b"\x00\x00\x5e\x00\x01", 6: b"\x00\x00\x5e\x00\x02"}


def held_addresses(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield each virtual address that another machine has, with its hardware address.

    The answer may come from a router that rightly shares the address; so it is a warning.
    """
    if not snapshot.virtual_routers or not process_capabilities.has(Capability.CAP_NET_RAW):
        return
    with Links() as links:
        found = [(each, links.state(each.interface)) for each in snapshot.virtual_routers]
    for router, link in found:
        if link is not None and link.up and len(link.mac) == arp.MAC_BYTES:
            yield from _held(router, link)


def _held(router: VirtualRouter, link: Link) -> Iterator[Finding]:
    here = {str(ip_interface(each).ip) for each in link.addresses}
    wanted = [str(ip_interface(each).ip) for each in router.here]
    asked = [each for each in wanted if each not in here]
    if not asked:
        return
    with contextlib.suppress(OSError):  # an interface that has just been removed has no neighbours
        for address, mac in sorted(_answers(link, asked).items()):
            if mac == _VIRTUAL_MAC[router.family] + bytes([router.router_id]):
                continue  # a router of this virtual router has it, with the virtual MAC
            yield Finding(
                path=("virtual_ips", router.name, "addresses"),
                message=f"{address} is in use by {mac.hex(':')} on {link.name}: right where that is the"
                " router that it is shared with; otherwise take another address, or take it away there",
                severity=Severity.WARNING,
            )


def _answers(link: Link, addresses: list[str]) -> dict[str, bytes]:
    """Return the hardware addresses that answer for some addresses; raises OSError."""
    held: dict[str, bytes] = {}
    with FrameSocket.claims(link.name, addresses) as frames:
        for address in addresses:
            frames.send(_probe(link.mac, address))
        deadline = time.monotonic() + _WAIT
        while len(held) < len(addresses) and (left := deadline - time.monotonic()) > 0:
            select.select([frames], [], [], left)
            held |= dict(_claimed(frames.receive(), addresses))
    return held


def _probe(mac: bytes, address: str) -> bytes:
    if ":" in address:
        return neighbour_discovery.probe(mac, address)
    return arp.probe(mac, address)


def _claimed(frames: Iterable[bytes], addresses: list[str]) -> Iterator[tuple[str, bytes]]:
    for frame in frames:
        with contextlib.suppress(ArpError, NeighbourError):
            if ":" in addresses[0]:
                neighbour = neighbour_discovery.decode(frame)
                yield neighbour.target, neighbour.sender_mac
            else:
                packet = arp.decode(frame)
                yield packet.sender, packet.sender_mac
