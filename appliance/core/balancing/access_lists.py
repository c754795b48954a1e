"""Which clients may connect: allow and deny lists of networks, looked up by the client's address."""

import ipaddress
from collections.abc import Iterable
from typing import Final

_MAPPED: Final = ipaddress.IPv6Network("::ffff:0:0/96")


class NetworkSet:
    """Networks, thousands perhaps: a connection's look-up costs one step for each prefix length."""

    def __init__(self, networks: Iterable[str]) -> None:
        tables: dict[tuple[int, int], set[int]] = {}
        for text in networks:
            size, shift, start = prefix(text)
            tables.setdefault((size, shift), set()).add(start)
        self._tables = [(size, shift, frozenset(starts)) for (size, shift), starts in tables.items()]

    def __contains__(self, packed: bytes) -> bool:
        """Whether an address, of 4 or 16 bytes, is in one of the networks."""
        number, size = int.from_bytes(packed, "big"), len(packed)
        return any(size == width and number >> shift in starts for width, shift, starts in self._tables)


class AccessLists:
    """Which clients may use a frontend: an allow list admits only its networks, and deny wins."""

    def __init__(self, *, allow: Iterable[str], deny: Iterable[str]) -> None:
        self._allow = NetworkSet(allow) if (allow := tuple(allow)) else None
        self._deny = NetworkSet(deny)

    def admits(self, packed: bytes) -> bool:
        """Return whether a client of this address, of 4 or 16 bytes, is let in."""
        if packed in self._deny:
            return False
        return self._allow is None or packed in self._allow


def prefix(text: str) -> tuple[int, int, int]:
    """Return the bytes of a network's addresses, the bits of a host, and the prefix that is before them."""
    network = _plain(ipaddress.ip_network(text, strict=False))
    shift = network.max_prefixlen - network.prefixlen
    return network.max_prefixlen // 8, shift, int(network.network_address) >> shift


def _plain(
    network: ipaddress.IPv4Network | ipaddress.IPv6Network,
) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Return ::ffff:10.0.0.0/104 as 10.0.0.0/8: clients are looked up by their IPv4 address."""
    if network.version == 6 and network.subnet_of(_MAPPED):
        start = int(network.network_address) & 0xFFFFFFFF
        return ipaddress.ip_network((start, network.prefixlen - 96))
    return network
