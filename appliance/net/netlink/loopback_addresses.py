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
import socket
from collections.abc import Collection
from typing import Final

from appliance.net.netlink.address_messages import (
    add_address,
    all_addresses,
    decode_address,
    remove_address,
)
from appliance.net.netlink.link_messages import Ipv4Option, set_ipv4_options
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.rtnetlink import readable
from appliance.net.netlink.virtual_addresses import kernel_marks

LEFT: Final = 113
"""IFA_PROTO of the addresses of virtual IPs that connections still need; `vrrp` marks with 112."""

SHARED: Final = 114
"""IFA_PROTO of shared addresses."""

_HOST: Final = 254  # RT_SCOPE_HOST: never the source of packets to another machine
_OTHER_END: Final = "127.0.0.1"
_SILENT: Final = {Ipv4Option.ARP_IGNORE: 1, Ipv4Option.ARP_ANNOUNCE: 2}


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
        known = readable(decode_address, self._requests.dump(all_addresses(self._lo)))
        bare = ((each, each.address.partition("/")[0]) for each in known if each.index == self._lo)
        return frozenset(
            address
            for each, address in bare
            if each.mark == self._mark or (not kernel_marks() and address in configured)
        )

    def silence(self, interface: int) -> None:
        """Make an interface use only its own addresses in ARP replies and requests, before `keep`."""
        if interface not in self._silent:
            self._requests.change(set_ipv4_options(interface, _SILENT))
            self._silent.add(interface)

    def keep(self, address: str) -> None:
        """Add an address."""
        request = add_address(
            self._lo, address, mark=self._mark, scope=_HOST, other_end=self._other_end(address)
        )
        self._requests.change(request, accepted={errno.EEXIST})

    def remove(self, address: str) -> None:
        """Remove an address of ours."""
        request = remove_address(self._lo, address, other_end=self._other_end(address))
        self._requests.change(request, accepted={errno.EADDRNOTAVAIL})

    def _other_end(self, address: str) -> str | None:
        return _OTHER_END if self._mark == SHARED and ":" not in address else None
