"""rtnetlink messages about interfaces (links): notifications of the kernel, and requests that change them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from socket import AF_INET, AF_UNSPEC
from typing import Final

from appliance.net.netlink.netlink import ACKNOWLEDGE, CREATE, DUMP, EXCLUSIVE, REQUEST, Message
from appliance.net.netlink.netlink_messages import (
    RTM_DELLINK,
    RTM_GETLINK,
    RTM_NEWLINK,
    RTM_SETLINK,
    ifinfmsg,
    nlmsg,
)
from appliance.net.netlink.rtnetlink import WORD, attribute, encode, one_decoding_error

NEW_LINK: Final[int] = RTM_NEWLINK
GONE_LINK: Final[int] = RTM_DELLINK

_UP: Final = 0x1  # flags of linux/if.h
_RUNNING: Final = 0x40
_SKIP_STATISTICS: Final = 1 << 3  # RTEXT_FILTER_SKIP_STATS of linux/rtnetlink.h
_AF_SPEC: Final = 26  # IFLA_AF_SPEC of linux/if_link.h
_INET_CONF: Final = 1  # IFLA_INET_CONF
_GENERATE_NONE: Final = 1  # IN6_ADDR_GEN_MODE_NONE


class Ipv4Option(IntEnum):
    """Options of an interface in /proc/sys/net/ipv4/conf, by their numbers in linux/ip.h."""

    RP_FILTER = 8
    ARP_ANNOUNCE = 18
    ARP_IGNORE = 19
    PROMOTE_SECONDARIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MacvlanFacts:
    """One macvlan: an interface with a MAC of its own on the interface with the index `parent`."""

    index: int
    name: str
    mac: bytes
    parent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VxlanFacts:
    """One VXLAN device, with its number and UDP port."""

    index: int
    name: str
    mac: bytes
    vni: int
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFacts:
    """One interface. `up` is administratively up (IFF_UP) and able to carry traffic (IFF_RUNNING)."""

    index: int
    name: str
    mac: bytes
    up: bool


def decode_link(message: Message) -> LinkFacts | None:
    """Return the interface, None for the port of a bridge (family AF_BRIDGE); raises DamagedMessage."""
    with one_decoding_error():
        decoded = _decoded(message)
        return None if decoded["family"] != AF_UNSPEC else _facts(decoded)


def decode_macvlan(message: Message) -> MacvlanFacts | None:
    """Return the macvlan of a message, None for any other link; raises DamagedMessage."""
    with one_decoding_error():
        decoded = _decoded(message)
        if decoded.get_nested("IFLA_LINKINFO", "IFLA_INFO_KIND") != "macvlan":
            return None
        link = _facts(decoded)
        parent = int(decoded.get_attr("IFLA_LINK") or 0)
        return MacvlanFacts(index=link.index, name=link.name, mac=link.mac, parent=parent)


def decode_vxlan(message: Message) -> VxlanFacts | None:
    """Return the VXLAN device of a message, None for any other link; raises DamagedMessage."""
    with one_decoding_error():
        decoded = _decoded(message)
        if decoded.get_nested("IFLA_LINKINFO", "IFLA_INFO_KIND") != "vxlan":
            return None
        link, details = _facts(decoded), decoded.get_nested("IFLA_LINKINFO", "IFLA_INFO_DATA")
        vni, port = (int(details.get_attr(f"IFLA_VXLAN_{each}") or 0) for each in ("ID", "PORT"))
        return VxlanFacts(index=link.index, name=link.name, mac=link.mac, vni=vni, port=port)


def all_links() -> bytes:
    """Return the request for a dump of all links, without their statistics."""
    message = ifinfmsg()
    message["attrs"] = [("IFLA_EXT_MASK", _SKIP_STATISTICS)]
    return encode(message, kind=RTM_GETLINK, flags=REQUEST | DUMP)


def add_macvlan(name: str, *, parent: int, mac: bytes) -> bytes:
    """Return the request that creates a macvlan, set down; EEXIST if the name is taken."""
    # Not private mode: there the parent does not receive frames of others with the same MAC, and another
    # active router sends such frames.
    details = {"IFLA_MACVLAN_MODE": "bridge"}
    return add_device("macvlan", details, IFLA_IFNAME=name, IFLA_LINK=parent, IFLA_ADDRESS=mac.hex(":"))


def add_device(kind: str, details: Mapping[str, object], **settings: object) -> bytes:
    """Return the request that creates a device of a kind, set down; EEXIST if its name is taken."""
    info: list[tuple[str, object]] = [("IFLA_INFO_KIND", kind)]
    if details:
        info.append(("IFLA_INFO_DATA", {"attrs": list(details.items())}))
    message = ifinfmsg()
    message["attrs"] = [*settings.items(), ("IFLA_LINKINFO", {"attrs": info})]
    return encode(message, kind=RTM_NEWLINK, flags=REQUEST | ACKNOWLEDGE | CREATE | EXCLUSIVE)


def remove_link(index: int) -> bytes:
    """Return the request that deletes an interface; ENODEV if it does not exist."""
    message = ifinfmsg()
    message["index"] = index
    return encode(message, kind=RTM_DELLINK, flags=REQUEST | ACKNOWLEDGE)


def set_up(index: int, *, up: bool) -> bytes:
    """Return the request that sets an interface up or down."""
    message = ifinfmsg()
    message["index"], message["change"] = index, _UP
    message["flags"] = _UP if up else 0
    return encode(message, kind=RTM_SETLINK, flags=REQUEST | ACKNOWLEDGE)


def no_link_local(index: int) -> bytes:
    """Return the request that keeps the kernel from generating a link-local IPv6 address for an interface."""
    message = ifinfmsg()
    message["index"] = index
    mode = {"attrs": [("IFLA_INET6_ADDR_GEN_MODE", _GENERATE_NONE)]}
    message["attrs"] = [("IFLA_AF_SPEC", {"attrs": [("AF_INET6", mode)]})]
    return encode(message, kind=RTM_SETLINK, flags=REQUEST | ACKNOWLEDGE)


def set_ipv4_options(index: int, options: Mapping[Ipv4Option, int]) -> bytes:
    """Return the request that sets options of an interface; containers often have /proc/sys read-only."""
    message = ifinfmsg()
    message["index"] = index
    encoded = encode(message, kind=RTM_SETLINK, flags=REQUEST | ACKNOWLEDGE)
    # IFLA_INET_CONF has two forms: the kernel sends an array, and expects nested attributes
    # (net/ipv4/devinet.c). pyroute2 supports only the array.
    values = b"".join(attribute(option, WORD.pack(value)) for option, value in options.items())
    encoded += attribute(_AF_SPEC, attribute(AF_INET, attribute(_INET_CONF, values)))
    return WORD.pack(len(encoded)) + encoded[WORD.size :]


def _facts(decoded: nlmsg) -> LinkFacts:
    name = decoded.get_attr("IFLA_IFNAME")
    if not name:
        raise LookupError("IFLA_IFNAME")
    return LinkFacts(
        index=int(decoded["index"]),
        name=str(name),
        mac=bytes.fromhex(str(decoded.get_attr("IFLA_ADDRESS") or "").replace(":", "")),
        up=decoded["flags"] & (_UP | _RUNNING) == _UP | _RUNNING,
    )


def _decoded(message: Message) -> nlmsg:
    decoded = ifinfmsg(message.data)
    decoded.decode()
    return decoded
