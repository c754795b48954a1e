"""rtnetlink's messages about links and addresses, by pyroute2's classes, as values of ours."""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from ipaddress import ip_interface
from socket import AF_INET, AF_INET6, AF_UNSPEC, inet_ntop
from typing import Final, TypeVar

from pyroute2.netlink import nlmsg
from pyroute2.netlink.exceptions import NetlinkDecodeError
from pyroute2.netlink.rtnl import (
    RTM_DELADDR,
    RTM_DELLINK,
    RTM_GETADDR,
    RTM_GETLINK,
    RTM_NEWADDR,
    RTM_NEWLINK,
    RTM_SETLINK,
)
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

from appliance.net.netlink.netlink import ACKNOWLEDGE, CREATE, DUMP, EXCLUSIVE, REQUEST, Message

OURS: Final = 112
"""IFA_PROTO of our addresses (Linux 5.18); VRRP's protocol number, which no other program is known to use."""

NEW_LINK: Final[int] = RTM_NEWLINK
GONE_LINK: Final[int] = RTM_DELLINK
NEW_ADDRESS: Final[int] = RTM_NEWADDR
GONE_ADDRESS: Final[int] = RTM_DELADDR

_UP: Final = 0x1  # flags of linux/if.h
_RUNNING: Final = 0x40

_NO_DAD: Final = 0x02  # flags of linux/if_addr.h
_DAD_FAILED: Final = 0x08
_TENTATIVE: Final = 0x40
_NO_PREFIX_ROUTE: Final = 0x200

_FOR_EVER: Final = 0xFFFFFFFF
_SKIP_STATISTICS: Final = 1 << 3  # RTEXT_FILTER_SKIP_STATS of linux/rtnetlink.h

_WORD: Final = struct.Struct("=I")
_ATTRIBUTE: Final = struct.Struct("=HH")
_HEADER_SIZE: Final = 16  # struct nlmsghdr of linux/netlink.h
_ADDRESS_MESSAGE: Final = struct.Struct("=BBBBI")  # struct ifaddrmsg of linux/if_addr.h
_IFA_ADDRESS: Final = 1
_IFA_LOCAL: Final = 2
_IFA_FLAGS: Final = 8
_IFA_PROTO: Final = 11
_AF_SPEC: Final = 26  # IFLA_AF_SPEC of linux/if_link.h
_INET_CONF: Final = 1  # IFLA_INET_CONF
_GENERATE_NONE: Final = 1  # IN6_ADDR_GEN_MODE_NONE


class Ipv4Option(IntEnum):
    """Options of an interface in /proc/sys/net/ipv4/conf, by their numbers of linux/ip.h."""

    RP_FILTER = 8
    ARP_IGNORE = 19
    PROMOTE_SECONDARIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressFacts:
    """One address of an interface, as `192.0.2.1/24`. `usable` is neither tentative nor a duplicate."""

    index: int
    address: str
    ours: bool
    usable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MacvlanFacts:
    """One macvlan: another MAC on the interface `parent`."""

    index: int
    name: str
    mac: bytes
    parent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFacts:
    """One interface. `up` is administratively up and with a carrier."""

    index: int
    name: str
    mac: bytes
    up: bool


class DamagedMessage(Exception):  # noqa: N818  # it is the message that is damaged
    """A message of the kernel's that cannot be read."""


_Facts = TypeVar("_Facts")


def readable(decode: Callable[[Message], _Facts | None], messages: Iterable[Message]) -> Iterator[_Facts]:
    """Yield what those messages say that say something and are not damaged."""
    for message in messages:
        with suppress(DamagedMessage):
            facts = decode(message)
            if facts is not None:
                yield facts


def decode_address(message: Message) -> AddressFacts | None:
    """Return what a message about an address says; None for a family that is neither IPv4 nor IPv6.

    Raises DamagedMessage.
    """
    # By hand: with many addresses pyroute2's way takes longer than the peers of the shortest intervals wait.
    with _damage_told():
        return _address_facts(message.data[_HEADER_SIZE:])


@lru_cache(maxsize=4096)
def _address_facts(body: bytes) -> AddressFacts | None:
    family, prefix_length, short_flags, _scope, index = _ADDRESS_MESSAGE.unpack_from(body)
    if family not in (AF_INET, AF_INET6):
        return None
    found = dict(attributes(body[_ADDRESS_MESSAGE.size :]))
    # On a point-to-point link IFA_ADDRESS is the other end.
    packed = found.get(_IFA_LOCAL) or found[_IFA_ADDRESS]
    (flags,) = _WORD.unpack(found[_IFA_FLAGS]) if _IFA_FLAGS in found else (short_flags,)
    return AddressFacts(
        index=index,
        address=f"{inet_ntop(family, packed)}/{prefix_length}",
        ours=found.get(_IFA_PROTO) == bytes([OURS]),
        usable=not flags & (_TENTATIVE | _DAD_FAILED),
    )


def decode_link(message: Message) -> LinkFacts | None:
    """Return what a message about a link says; None for what is said about a bridge's port.

    Raises DamagedMessage.
    """
    with _damage_told():
        decoded = _decoded(ifinfmsg, message)
        if decoded["family"] != AF_UNSPEC:
            return None
        return LinkFacts(
            index=int(decoded["index"]),
            name=_name(decoded),
            mac=_mac(decoded),
            up=decoded["flags"] & (_UP | _RUNNING) == _UP | _RUNNING,
        )


def decode_macvlan(message: Message) -> MacvlanFacts | None:
    """Return what a message about a link says of a macvlan; None for every other link.

    Raises DamagedMessage.
    """
    with _damage_told():
        decoded = _decoded(ifinfmsg, message)
        if decoded.get_nested("IFLA_LINKINFO", "IFLA_INFO_KIND") != "macvlan":
            return None
        return MacvlanFacts(
            index=int(decoded["index"]),
            name=_name(decoded),
            mac=_mac(decoded),
            parent=int(decoded.get_attr("IFLA_LINK") or 0),
        )


def add_address(index: int, address: str, *, label: str | None, prefix_route: bool) -> bytes:
    """Return the request for an address of ours, in use at once; EEXIST where it is there already.

    An IPv6 address is marked as deprecated: connections that this machine begins take another source
    (RFC 6724 rule 3), which IPv4 does by order. Without `prefix_route` its network gets no route.
    """
    message = _address(index, address)
    flags = 0 if prefix_route else _NO_PREFIX_ROUTE
    attributes = message["attrs"]
    if message["family"] == AF_INET6:
        flags |= _NO_DAD
        attributes.append(("IFA_CACHEINFO", {"ifa_preferred": 0, "ifa_valid": _FOR_EVER}))
    elif label is not None:
        attributes.append(("IFA_LABEL", label))
    attributes += [("IFA_FLAGS", flags), ("IFA_PROTO", OURS)]
    return encode(message, kind=RTM_NEWADDR, flags=REQUEST | ACKNOWLEDGE | CREATE | EXCLUSIVE)


@lru_cache(maxsize=1024)
def remove_address(index: int, address: str) -> bytes:
    """Return the request that removes an address; EADDRNOTAVAIL where it is not there."""
    return encode(_address(index, address), kind=RTM_DELADDR, flags=REQUEST | ACKNOWLEDGE)


def all_addresses(index: int = 0) -> bytes:
    """Return the request for a dump of all addresses; `index` filters where the kernel does that."""
    message = ifaddrmsg()
    message["index"] = index
    return encode(message, kind=RTM_GETADDR, flags=REQUEST | DUMP)


def all_links() -> bytes:
    """Return the request for a dump of all links, without their statistics."""
    message = ifinfmsg()
    message["attrs"] = [("IFLA_EXT_MASK", _SKIP_STATISTICS)]
    return encode(message, kind=RTM_GETLINK, flags=REQUEST | DUMP)


def add_macvlan(name: str, *, parent: int, mac: bytes) -> bytes:
    """Return the request for a macvlan, down for now; EEXIST where the name is taken."""
    message = ifinfmsg()
    # In private mode the parent would not hear others that send from the same MAC: another active.
    details = {"attrs": [("IFLA_MACVLAN_MODE", "bridge")]}
    kind = {"attrs": [("IFLA_INFO_KIND", "macvlan"), ("IFLA_INFO_DATA", details)]}
    message["attrs"] = [
        ("IFLA_IFNAME", name),
        ("IFLA_LINK", parent),
        ("IFLA_ADDRESS", mac.hex(":")),
        ("IFLA_LINKINFO", kind),
    ]
    return encode(message, kind=RTM_NEWLINK, flags=REQUEST | ACKNOWLEDGE | CREATE | EXCLUSIVE)


def remove_link(index: int) -> bytes:
    """Return the request that deletes an interface; ENODEV where there is none."""
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
    """Return the request that keeps the kernel from making up IPv6 addresses for an interface."""
    message = ifinfmsg()
    message["index"] = index
    mode = {"attrs": [("IFLA_INET6_ADDR_GEN_MODE", _GENERATE_NONE)]}
    message["attrs"] = [("IFLA_AF_SPEC", {"attrs": [("AF_INET6", mode)]})]
    return encode(message, kind=RTM_SETLINK, flags=REQUEST | ACKNOWLEDGE)


def set_ipv4_options(index: int, options: Mapping[Ipv4Option, int]) -> bytes:
    """Return the request that sets what /proc/sys/net/ipv4/conf has, also where /proc/sys is read-only."""
    message = ifinfmsg()
    message["index"] = index
    encoded = encode(message, kind=RTM_SETLINK, flags=REQUEST | ACKNOWLEDGE)
    # pyroute2 knows only the form in which the kernel tells these, not the one in which it is told.
    values = b"".join(_attribute(option, _WORD.pack(value)) for option, value in options.items())
    encoded += _attribute(_AF_SPEC, _attribute(AF_INET, _attribute(_INET_CONF, values)))
    return _WORD.pack(len(encoded)) + encoded[_WORD.size :]


def encode(message: nlmsg, *, kind: int, flags: int) -> bytes:
    """Return the bytes of a request; its number is given to it when it is sent."""
    message["header"]["type"] = kind
    message["header"]["flags"] = flags
    message.encode()
    return bytes(message.data)


@contextmanager
def _damage_told() -> Iterator[None]:
    """Have whatever a decoder stumbles over be one error; pyroute2 has no common one for it."""
    try:
        yield
    except (LookupError, TypeError, ValueError, struct.error, OSError, NetlinkDecodeError) as error:
        raise DamagedMessage(f"{type(error).__name__}: {error}") from error


def _name(decoded: nlmsg) -> str:
    name = decoded.get_attr("IFLA_IFNAME")
    if not name:
        raise LookupError("IFLA_IFNAME")
    return str(name)


def _mac(decoded: nlmsg) -> bytes:
    return bytes.fromhex(str(decoded.get_attr("IFLA_ADDRESS") or "").replace(":", ""))


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the attributes of a message's end, each with its number."""
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        yield kind, data[at + _ATTRIBUTE.size : at + length]
        at += max((length + 3) & ~3, _ATTRIBUTE.size)


def _attribute(kind: int, payload: bytes) -> bytes:
    padding = b"\0" * (-len(payload) % 4)
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(payload), kind) + payload + padding


def _address(index: int, address: str) -> nlmsg:
    interface = ip_interface(address)
    message = ifaddrmsg()
    message["family"] = AF_INET if interface.version == 4 else AF_INET6
    message["prefixlen"] = interface.network.prefixlen
    message["index"] = index
    message["attrs"] = [("IFA_LOCAL", str(interface.ip)), ("IFA_ADDRESS", str(interface.ip))]
    return message


def _decoded(form: type[nlmsg], message: Message) -> nlmsg:
    decoded = form(message.data)
    decoded.decode()
    return decoded
