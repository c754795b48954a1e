"""Whether some networks cover another one, however many they are."""

from collections.abc import Iterable
from ipaddress import ip_network
from typing import NamedTuple


class Network(NamedTuple):
    """A network as numbers, as lists may be long; `bits` are those of its prefix."""

    version: int
    length: int
    bits: int
    host_bits: int

    @property
    def first(self) -> int:
        """Its first address."""
        return self.bits << self.host_bits

    @property
    def last(self) -> int:
        """Its last address."""
        return ((self.bits + 1) << self.host_bits) - 1


def numbered(text: str) -> Network:
    """Return a network in CIDR form as numbers."""
    found = ip_network(text)
    host_bits = found.max_prefixlen - found.prefixlen
    return Network(found.version, found.prefixlen, int(found.network_address) >> host_bits, host_bits)


class NetworkCover:
    """Networks by version and prefix length, of which there are few, however many networks there are."""

    def __init__(self, networks: Iterable[Network] = ()) -> None:
        self._bits: dict[tuple[int, int], set[int]] = {}
        for each in networks:
            self.add(each)

    def __contains__(self, network: Network) -> bool:
        return network.bits in self._bits.get((network.version, network.length), ())

    def add(self, network: Network) -> None:
        """Add a network."""
        self._bits.setdefault((network.version, network.length), set()).add(network.bits)

    def cover(self, network: Network) -> bool:
        """Return whether a network is in this set, or within one of it."""
        return any(
            network.bits >> (network.length - length) in bits
            for (version, length), bits in self._bits.items()
            if version == network.version and length <= network.length
        )
