"""Our virtual addresses on the machine's interfaces: added, removed, and recognised after a crash.

The mark (IFA_PROTO, Linux 5.18) identifies an address as ours; if the kernel keeps no marks, the record does
(owned_addresses). Addresses of other programs are never removed. Every function is idempotent, also after a
crash.
"""

import contextlib
import errno
import os
import platform
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_interface
from typing import Final

from appliance.net.closable import Closable
from appliance.net.netlink import rtnetlink
from appliance.net.netlink.address_messages import (
    AddressFacts,
    add_address,
    all_addresses,
    decode_address,
    remove_address,
)
from appliance.net.netlink.address_record import AddressRecord
from appliance.net.netlink.link_messages import Ipv4Option, set_ipv4_options
from appliance.net.netlink.netlink import Requests

_MARKS_SINCE: Final = (5, 18)
_GONE: Final = frozenset({errno.EADDRNOTAVAIL, errno.ENODEV})


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAddress:
    """One address of ours, `192.0.2.100/24`, on the interface with this index."""

    index: int
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedAddress:
    """One address to add to the interface `index`; `label` is IFA_LABEL, for IPv4 only."""

    index: int
    address: str
    label: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The outcome of `take`, by address. Another program added the `foreign` ones; `failed` has reasons."""

    added: frozenset[str] = frozenset()
    already: frozenset[str] = frozenset()
    foreign: frozenset[str] = frozenset()
    failed: dict[str, str] = field(default_factory=dict)


def kernel_marks() -> bool:
    """Return whether this kernel keeps IFA_PROTO."""
    release = re.match(r"(\d+)\.(\d+)", platform.release())
    return release is not None and (int(release[1]), int(release[2])) >= _MARKS_SINCE


class Addresses(Closable):
    """Adds and removes our addresses. Its methods raise OSError when the kernel does not answer at all."""

    def __init__(self, record: AddressRecord, *, marks: bool | None = None) -> None:
        self._requests = Requests()
        self._record = record
        self._marks = kernel_marks() if marks is None else marks
        self._prepared: dict[WantedAddress, bytes] = {}
        self._taken: set[HeldAddress] = set()
        self._promoting: set[int] = set()
        self._names: dict[int, str] = {}

    def close(self) -> None:
        """Close the netlink socket; the addresses stay as they are."""
        self._requests.close()

    def present(self) -> frozenset[HeldAddress]:
        """Return our addresses that are on interfaces now."""
        return self._ours(self._facts())

    def leftovers(self) -> frozenset[HeldAddress]:
        """Return our addresses that this process did not add: an earlier `vrrp` left them."""
        return self.present() - self._taken

    def own(self) -> frozenset[str]:
        """Return the addresses of this machine that are not ours, without prefix lengths."""
        facts = self._facts()
        ours = self._ours(facts)
        return frozenset(
            _bare(each.address)
            for each in facts
            if HeldAddress(index=each.index, address=each.address) not in ours
        )

    def unrecorded(self, interface: str, addresses: Iterable[str]) -> list[str]:
        """Return which of these have neither our mark nor an entry in the record."""
        return [each for each in addresses if (interface, each) not in self._record.entries]

    def prepare(self, index: int, addresses: Iterable[str], *, label: str | None = None) -> None:
        """Encode the requests of a later `take`; called again when the interface's own addresses change.

        An address in a network that the interface already reaches gets no prefix route.
        """
        facts = self._facts(index)
        ours = {held.address for held in self._ours(facts)}
        reached = {
            ip_interface(each.address).network for each in facts if each.usable and each.address not in ours
        }
        for wanted in _wanted(index, addresses, label):
            network = ip_interface(wanted.address).network
            single = network.prefixlen == network.max_prefixlen
            self._prepared[wanted] = add_address(
                index, wanted.address, label=label, prefix_route=not single and network not in reached
            )
        self._promote(index)

    def take(self, index: int, addresses: Iterable[str], *, label: str | None = None) -> Taken:
        """Add addresses to an interface, in order; existing ones stay as they are.

        An IPv6 address of ours with another prefix length is replaced. Raises OSError if the record cannot be
        written: then nothing was added.
        """
        wanted = _wanted(index, addresses, label)
        if not wanted:
            return Taken()
        if not all(each in self._prepared for each in wanted):
            self.prepare(index, [each.address for each in wanted], label=label)
        foreign = frozenset() if self._marks else self._record_new(index, wanted)
        outcomes = self._added(each for each in wanted if each.address not in foreign)
        outcomes |= dict.fromkeys(foreign, errno.EEXIST)
        refused = frozenset(
            each for each, outcome in outcomes.items() if outcome == errno.EEXIST and ":" in each
        )
        if refused:
            free = self._replace_length(index, refused)
            outcomes |= self._added(each for each in wanted if each.address in free)
        taken = self._sorted(index, outcomes)
        self._taken |= {HeldAddress(index=index, address=address) for address in taken.added | taken.already}
        return taken

    def release(self, index: int, addresses: Iterable[str]) -> frozenset[str]:
        """Remove those of our addresses that can be; return which existed; raises OSError if one cannot."""
        wanted = {each.address for each in _wanted(index, addresses, None)}
        found = sorted(held.address for held in self._ours(self._facts(index)) if held.address in wanted)
        results = self._requests.ask([remove_address(index, address) for address in found])
        refused = {
            address: result
            for address, result in zip(found, results, strict=True)
            if result not in {0, *_GONE}
        }
        gone = wanted - refused.keys()
        self._taken -= {HeldAddress(index=index, address=address) for address in gone}
        self._forget(index, gone)
        for address, result in refused.items():
            raise OSError(result, f"{address}: {os.strerror(result)}")
        return frozenset(found)

    def _added(self, wanted: Iterable[WantedAddress]) -> dict[str, int]:
        """Send the prepared requests of these addresses; return an errno for each."""
        asked = tuple(wanted)
        results = self._requests.ask([self._prepared[each] for each in asked])
        return dict(zip((each.address for each in asked), results, strict=True))

    def _replace_length(self, index: int, refused: Iterable[str]) -> frozenset[str]:
        """Remove our addresses that differ from a refused one only in prefix length; return the refused.

        An interface can have an IPv6 address only once, whatever its prefix length: otherwise EEXIST.
        """
        ours = {_bare(held.address): held.address for held in self._ours(self._facts(index))}
        old = {each: ours[_bare(each)] for each in refused if ours.get(_bare(each), each) != each}
        if old:
            self.release(index, old.values())
        return frozenset(old)

    def _facts(self, index: int = 0) -> list[AddressFacts]:
        try:
            messages = self._requests.dump(all_addresses(index))
        except OSError as error:
            if error.errno == errno.ENODEV:
                return []
            raise
        facts = rtnetlink.readable(decode_address, messages)
        return [each for each in facts if index in {0, each.index}]

    def _ours(self, facts: Iterable[AddressFacts]) -> frozenset[HeldAddress]:
        recorded = self._record.entries
        return frozenset(
            HeldAddress(index=each.index, address=each.address)
            for each in facts
            if each.ours or (recorded and (self._name(each.index), each.address) in recorded)
        )

    def _sorted(self, index: int, outcomes: Mapping[str, int]) -> Taken:
        """Sort addresses by outcome: 0 or an errno each."""
        there = {address for address, outcome in outcomes.items() if outcome == errno.EEXIST}
        ours = {held.address for held in self._ours(self._facts(index))} & there if there else set()
        return Taken(
            added=frozenset(address for address, outcome in outcomes.items() if not outcome),
            already=frozenset(ours),
            foreign=frozenset(there - ours),
            failed={
                address: os.strerror(outcome)
                for address, outcome in outcomes.items()
                if outcome not in {0, errno.EEXIST}
            },
        )

    def _record_new(self, index: int, wanted: Iterable[WantedAddress]) -> frozenset[str]:
        """Record the addresses about to be added; return those that another program added before."""
        facts = self._facts(index)
        there = {each.address for each in facts} - {held.address for held in self._ours(facts)}
        name = self._name(index)
        self._record.add((name, each.address) for each in wanted if each.address not in there)
        return frozenset(each.address for each in wanted if each.address in there)

    def _forget(self, index: int, addresses: Iterable[str]) -> None:
        if self._record.entries:
            name = self._name(index)
            self._record.discard((name, address) for address in addresses)

    def _name(self, index: int) -> str:
        """Return the name of an interface, the last known one if it is gone."""
        with contextlib.suppress(OSError):
            self._names[index] = socket.if_indextoname(index)
        return self._names.get(index, "")

    def _promote(self, index: int) -> None:
        """Make the kernel keep the other IPv4 addresses of a network when the first one is removed.

        Without promote_secondaries it removes all of them with the first, whose secondaries they are.
        """
        if index not in self._promoting:
            request = set_ipv4_options(index, {Ipv4Option.PROMOTE_SECONDARIES: 1})
            if self._requests.ask([request]) == [0]:
                self._promoting.add(index)


def _wanted(index: int, addresses: Iterable[str], label: str | None) -> list[WantedAddress]:
    return [WantedAddress(index=index, address=_canonical(address), label=label) for address in addresses]


@lru_cache(maxsize=4096)
def _canonical(address: str) -> str:
    return str(ip_interface(address))


def _bare(address: str) -> str:
    return address.partition("/")[0]
