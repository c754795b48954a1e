"""The networks of this machine: the addresses of its interfaces with their prefix lengths."""

import contextlib
import socket
from ipaddress import ip_interface

from appliance.net.netlink.address_messages import AddressFacts, all_addresses, decode_address
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.rtnetlink import readable


def networks() -> tuple[str, ...]:
    """Return the addresses of all interfaces, `192.0.2.1/24`; raises OSError."""
    return tuple(sorted({each.address for each in _addresses()}))


def placed_addresses() -> dict[str, tuple[str, ...]]:
    """Return the addresses without prefix lengths by interface, in the kernel's order; raises OSError."""
    found: dict[str, tuple[str, ...]] = {}
    for each in _addresses():
        with contextlib.suppress(OSError):  # it has gone
            name = socket.if_indextoname(each.index)
            found[name] = (*found.get(name, ()), each.address.partition("/")[0])
    return found


def interfaces() -> tuple[str, ...]:
    """Return the interfaces with an address neither loopback nor link-local, by name; raises OSError."""
    known = ((each.index, ip_interface(each.address)) for each in _addresses())
    found = {index for index, address in known if not (address.is_loopback or address.is_link_local)}
    names = set()
    for index in found:
        with contextlib.suppress(OSError):  # it has gone
            names.add(socket.if_indextoname(index))
    return tuple(sorted(names))


def _addresses() -> list[AddressFacts]:
    with Requests() as requests:
        return list(readable(decode_address, requests.dump(all_addresses())))
