"""Virtual addresses on the interface `lo`, where this machine has them without answering for them.

The kernel answers ARP for an IPv4 address of `lo` on other interfaces unless their arp_ignore is 1, and uses
it as the source of ARP requests unless their arp_announce is 2 (ip-sysctl). Both are set for the interface
that the address belongs to, by netlink, as containers often have /proc/sys read-only. Neighbour discovery
never answers for an address of another interface. After a crash, addresses are recognised by IFA_PROTO or, if
the kernel keeps none (before Linux 5.18), by being configured.

An IPv4 address that is shared has the other end 127.0.0.1: FRR takes an address of `lo` without one for a
connected network, which wins over the route in the table that it should announce (FRR 8.4).
"""

import errno
import os
import socket
import struct
from collections.abc import Collection
from functools import partial
from ipaddress import ip_address
from typing import Final

from appliance.net.netlink.address_messages import all_addresses
from appliance.net.netlink.addresses import kernel_marks
from appliance.net.netlink.link_messages import Ipv4Option, set_ipv4_options
from appliance.net.netlink.netlink import ACKNOWLEDGE, CREATE, EXCLUSIVE, Message, Requests, request
from appliance.net.netlink.rtnetlink import attribute, by_kind, one_decoding_error, readable

LEFT: Final = 113
"""IFA_PROTO of the addresses of virtual IPs that connections still need; `vrrp` marks with 112."""

SHARED: Final = 114
"""IFA_PROTO of shared addresses."""

_NEW_ADDRESS: Final = 20  # RTM_NEWADDR of linux/rtnetlink.h
_GONE_ADDRESS: Final = 21  # RTM_DELADDR
_ADDRESS: Final = struct.Struct("=BBBBI")  # struct ifaddrmsg of linux/if_addr.h
_CACHE: Final = struct.Struct("=IIII")  # struct ifa_cacheinfo
_IFA_ADDRESS, _IFA_LOCAL, _IFA_CACHEINFO, _IFA_FLAGS, _IFA_PROTO = 1, 2, 6, 8, 11
_NO_DAD: Final = 0x02
_NO_PREFIX_ROUTE: Final = 0x200
_HOST: Final = 254  # RT_SCOPE_HOST: never the source of packets to another machine
_FOR_EVER: Final = 0xFFFFFFFF
_WORD: Final = struct.Struct("=I")
_OTHER_END: Final = bytes((127, 0, 0, 1))
_SILENT: Final = {Ipv4Option.ARP_IGNORE: 1, Ipv4Option.ARP_ANNOUNCE: 2}
_DONE: Final = (0, errno.EEXIST, errno.EADDRNOTAVAIL)


class KeptAddresses:
    """The addresses on `lo` with a mark. Methods raise OSError and may be repeated."""

    def __init__(self, *, mark: int = LEFT) -> None:
        self._mark = mark
        self._requests = Requests()
        self._lo = socket.if_nametoindex("lo")
        self._silent: set[int] = set()

    def close(self) -> None:
        """Close the socket; the addresses stay."""
        self._requests.close()

    def present(self, configured: Collection[str]) -> frozenset[str]:
        """Return our addresses on `lo`; `configured` are the virtual addresses."""
        known = readable(partial(_decode, mark=self._mark), self._requests.dump(all_addresses(self._lo)))
        return frozenset(
            address
            for index, address, marked in known
            if index == self._lo and (marked or (not kernel_marks() and address in configured))
        )

    def silence(self, interface: int) -> None:
        """Make an interface use only its own addresses in ARP replies and requests, before `keep`."""
        if interface not in self._silent:
            self._done(set_ipv4_options(interface, _SILENT))
            self._silent.add(interface)

    def keep(self, address: str) -> None:
        """Add an address."""
        self._done(_add(self._lo, address, self._mark))

    def remove(self, address: str) -> None:
        """Remove an address of ours."""
        self._done(_remove(self._lo, address, self._mark))

    def _done(self, request: bytes) -> None:
        (result,) = self._requests.ask([request])
        if result not in _DONE:
            raise OSError(result, os.strerror(result))


def _add(index: int, address: str, mark: int) -> bytes:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    flags = _NO_PREFIX_ROUTE | (_NO_DAD if family == socket.AF_INET6 else 0)
    body = _named(index, address, mark, flags)
    body += attribute(_IFA_FLAGS, _WORD.pack(flags)) + attribute(_IFA_PROTO, bytes([mark]))
    if family == socket.AF_INET6:  # deprecated: no source of new connections (RFC 6724 section 5 rule 3)
        body += attribute(_IFA_CACHEINFO, _CACHE.pack(0, _FOR_EVER, 0, 0))
    return request(_NEW_ADDRESS, ACKNOWLEDGE | CREATE | EXCLUSIVE, body)


def _remove(index: int, address: str, mark: int) -> bytes:
    body = _named(index, address, mark, 0)
    return request(_GONE_ADDRESS, ACKNOWLEDGE, body)


def _named(index: int, address: str, mark: int, flags: int) -> bytes:
    """Return the part of a message that names an address and its other end."""
    found = ip_address(address)
    family = socket.AF_INET if found.version == 4 else socket.AF_INET6
    other = _OTHER_END if mark == SHARED and found.version == 4 else found.packed
    body = _ADDRESS.pack(family, found.max_prefixlen, flags & 0xFF, _HOST, index)
    return body + attribute(_IFA_LOCAL, found.packed) + attribute(_IFA_ADDRESS, other)


def _decode(message: Message, mark: int) -> tuple[int, str, bool] | None:
    """Return interface, address, and whether it has the mark; raises DamagedMessage."""
    with one_decoding_error():
        family, _length, _flags, _scope, index = _ADDRESS.unpack_from(message.body)
        if family not in (socket.AF_INET, socket.AF_INET6):
            return None
        found = by_kind(message.body[_ADDRESS.size :])
        address = socket.inet_ntop(family, found.get(_IFA_LOCAL) or found[_IFA_ADDRESS])
        return index, address, found.get(_IFA_PROTO) == bytes([mark])
