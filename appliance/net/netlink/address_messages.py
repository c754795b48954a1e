"""rtnetlink messages about interfaces' addresses: notifications and requests, as in linux/if_addr.h."""

import struct
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_interface
from socket import AF_INET, AF_INET6, inet_ntop
from typing import Final

from appliance.net.netlink.netlink import ACKNOWLEDGE, CREATE, DUMP, EXCLUSIVE, REQUEST, Message
from appliance.net.netlink.netlink_messages import RTM_DELADDR, RTM_GETADDR, RTM_NEWADDR, ifaddrmsg, nlmsg
from appliance.net.netlink.rtnetlink import WORD, by_kind, encode, one_decoding_error

OURS: Final = 112
"""IFA_PROTO of our addresses (Linux 5.18); VRRP's protocol number, which no other program is known to use."""

NEW_ADDRESS: Final[int] = RTM_NEWADDR
GONE_ADDRESS: Final[int] = RTM_DELADDR

_NO_DAD: Final = 0x02  # flags of linux/if_addr.h
_DAD_FAILED: Final = 0x08
_TENTATIVE: Final = 0x40
_NO_PREFIX_ROUTE: Final = 0x200

_FOR_EVER: Final = 0xFFFFFFFF
_HEADER_SIZE: Final = 16  # struct nlmsghdr of linux/netlink.h
_ADDRESS_MESSAGE: Final = struct.Struct("=BBBBI")  # struct ifaddrmsg of linux/if_addr.h
_IFA_ADDRESS: Final = 1
_IFA_LOCAL: Final = 2
_IFA_FLAGS: Final = 8
_IFA_PROTO: Final = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressFacts:
    """One address of the interface `index`, as `192.0.2.1/24`; `mark` is its IFA_PROTO, 0 for none.

    `usable` is false while IPv6 duplicate address detection runs (RFC 4862 section 5.4), or if it failed.
    """

    index: int
    address: str
    mark: int = 0
    usable: bool

    @property
    def ours(self) -> bool:
        """Whether it has the mark of `vrrp`."""
        return self.mark == OURS


def decode_address(message: Message) -> AddressFacts | None:
    """Return the address, None for other families than IPv4 and IPv6; raises DamagedMessage."""
    # Not decoded by pyroute2: with many addresses that takes longer than a backup waits for the active router
    # at the shortest advertisement intervals.
    with one_decoding_error():
        return _address_facts(message.data[_HEADER_SIZE:])


@lru_cache(maxsize=4096)
def _address_facts(body: bytes) -> AddressFacts | None:
    family, prefix_length, short_flags, _scope, index = _ADDRESS_MESSAGE.unpack_from(body)
    if family not in (AF_INET, AF_INET6):
        return None
    found = by_kind(body[_ADDRESS_MESSAGE.size :])
    # On a point-to-point link IFA_ADDRESS is the other end.
    packed = found.get(_IFA_LOCAL) or found[_IFA_ADDRESS]
    (flags,) = WORD.unpack(found[_IFA_FLAGS]) if _IFA_FLAGS in found else (short_flags,)
    return AddressFacts(
        index=index,
        address=f"{inet_ntop(family, packed)}/{prefix_length}",
        mark=int.from_bytes(found.get(_IFA_PROTO, b"")),
        usable=not flags & (_TENTATIVE | _DAD_FAILED),
    )


def add_address(
    index: int,
    address: str,
    *,
    mark: int = OURS,
    label: str | None = None,
    prefix_route: bool = False,
    scope: int = 0,
    other_end: str | None = None,
) -> bytes:
    """Return the request that adds an address of ours, usable at once; EEXIST if it exists.

    An IPv6 address is added as deprecated: connections from this machine use another source (RFC 6724 section
    5 rule 3). With IPv4 the kernel uses the first address of a network, which ours is not. Without
    `prefix_route` the address's network gets no route.
    """
    message = _address(index, address, other_end)
    message["scope"] = scope
    flags = 0 if prefix_route else _NO_PREFIX_ROUTE
    attributes = message["attrs"]
    if message["family"] == AF_INET6:
        # Detection takes a second, in which no node would answer for the address. VRRP decides who has it.
        flags |= _NO_DAD
        attributes.append(("IFA_CACHEINFO", {"ifa_preferred": 0, "ifa_valid": _FOR_EVER}))
    elif label is not None:
        attributes.append(("IFA_LABEL", label))
    attributes += [("IFA_FLAGS", flags), ("IFA_PROTO", mark)]
    return encode(message, kind=RTM_NEWADDR, flags=REQUEST | ACKNOWLEDGE | CREATE | EXCLUSIVE)


@lru_cache(maxsize=1024)
def remove_address(index: int, address: str, *, other_end: str | None = None) -> bytes:
    """Return the request that removes an address; EADDRNOTAVAIL if it does not exist."""
    return encode(_address(index, address, other_end), kind=RTM_DELADDR, flags=REQUEST | ACKNOWLEDGE)


def all_addresses(index: int = 0) -> bytes:
    """Return the request for all addresses, or one interface's if the kernel can filter (Linux 4.20)."""
    message = ifaddrmsg()
    message["index"] = index
    return encode(message, kind=RTM_GETADDR, flags=REQUEST | DUMP)


def _address(index: int, address: str, other_end: str | None) -> nlmsg:
    interface = ip_interface(address)
    message = ifaddrmsg()
    message["family"] = AF_INET if interface.version == 4 else AF_INET6
    message["prefixlen"] = interface.network.prefixlen
    message["index"] = index
    message["attrs"] = [("IFA_LOCAL", str(interface.ip)), ("IFA_ADDRESS", other_end or str(interface.ip))]
    return message
