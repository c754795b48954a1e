"""The virtual router's own MAC (RFC 9568 section 7.3): a macvlan on the interface, with the addresses.

Off by default: virtualisation hosts drop frames whose MAC they did not assign. The macvlan is up only while
the virtual router is active: from any frame of a backup, a switch would learn that the MAC is at the backup's
port. IPv6 advertisements from it need the parent's link-local address on it as well.
"""

import errno
import re
import socket
from typing import Final, Literal

from appliance.net.netlink import rtnetlink
from appliance.net.netlink.link_messages import (
    Ipv4Option,
    MacvlanFacts,
    add_macvlan,
    all_links,
    decode_macvlan,
    no_link_local,
    remove_link,
    set_ipv4_options,
    set_up,
)
from appliance.net.netlink.netlink import Requests

_PREFIXES: Final = {4: bytes.fromhex("00005e0001"), 6: bytes.fromhex("00005e0002")}
_NAME: Final = re.compile(r"vrrp([46])\.(\d+)\.(\d+)")


def name(router_id: int, *, parent: int, family: Literal[4, 6]) -> str:
    """Return the name of a macvlan; `parent` is the index of its interface."""
    return f"vrrp{family}.{parent}.{router_id}"


def mac(router_id: int, *, family: Literal[4, 6]) -> bytes:
    """Return 00-00-5E-00-01-VRID, or -02- for IPv6."""
    return _PREFIXES[family] + bytes([router_id])


def add(requests: Requests, *, parent: int, router_id: int, family: Literal[4, 6]) -> MacvlanFacts:
    """Create the macvlan, set down; an existing one is used as it is. Raises OSError with the reason.

    The parent then answers ARP for its own addresses only (arp_ignore): it would give its own MAC for those
    on the macvlan.
    """
    called, address = name(router_id, parent=parent, family=family), mac(router_id, family=family)
    requests.change(add_macvlan(called, parent=parent, mac=address), accepted={errno.EEXIST})
    made = MacvlanFacts(name=called, index=socket.if_nametoindex(called), mac=address, parent=parent)
    if made not in present(requests):
        raise OSError(errno.EEXIST, f"{called} exists and is not a virtual MAC of ours")
    # The parent has the route, and answers: rp_filter would drop packets that arrive here as spoofed.
    options = {Ipv4Option.RP_FILTER: 0, Ipv4Option.ARP_IGNORE: 1}
    requests.change(set_ipv4_options(made.index, options))
    requests.change(set_ipv4_options(parent, {Ipv4Option.ARP_IGNORE: 1}))
    # Without IPv6 on this machine there is nothing to prevent.
    requests.change(no_link_local(made.index), accepted={errno.EAFNOSUPPORT})
    return made


def raise_up(requests: Requests, virtual: MacvlanFacts) -> None:
    """Set it up, so that it sends and receives; raises OSError."""
    requests.change(set_up(virtual.index, up=True))


def lower(requests: Requests, virtual: MacvlanFacts) -> None:
    """Set it down, which removes its IPv6 addresses; harmless if it is gone. Raises OSError."""
    requests.change(set_up(virtual.index, up=False), accepted={errno.ENODEV})


def remove(requests: Requests, virtual: MacvlanFacts) -> None:
    """Delete it with the addresses on it; another call is harmless. Raises OSError."""
    requests.change(remove_link(virtual.index), accepted={errno.ENODEV})


def present(requests: Requests) -> tuple[MacvlanFacts, ...]:
    """Return the macvlans with a name and MAC of ours; after a crash, an earlier `vrrp` left them."""
    found = rtnetlink.readable(decode_macvlan, requests.dump(all_links()))
    return tuple(each for each in found if each.mac == _mac_of(each.name))


def _mac_of(name: str) -> bytes | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return _PREFIXES[int(match[1])] + (int(match[3]) & 0xFF).to_bytes(1, "big")
