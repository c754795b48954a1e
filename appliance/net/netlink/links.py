"""The state of interfaces and their addresses, and the changes to it.

`Links` follows rtnetlink's notifications. An event is a difference between the states of two `read`s, not a
notification: if the kernel dropped some (ENOBUFS, the receive buffer was full), a dump reads everything
again, and the events are the same.
"""

import contextlib
import errno
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from ipaddress import IPv6Network, ip_interface
from pathlib import Path
from typing import Final, Literal

from appliance.net.closable import Closable
from appliance.net.netlink import netlink, rtnetlink
from appliance.net.netlink.address_messages import (
    GONE_ADDRESS,
    NEW_ADDRESS,
    AddressFacts,
    all_addresses,
    decode_address,
)
from appliance.net.netlink.link_messages import GONE_LINK, NEW_LINK, LinkFacts, all_links, decode_link
from appliance.net.netlink.netlink import Message, Requests

_GROUPS: Final = 1 << 0 | 1 << 4 | 1 << 8  # RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR
_BUFFER: Final = 4 << 20
_RECEIVED: Final = 1 << 17
_AT_ONCE: Final = 256
_LINK_LOCAL: Final = IPv6Network("fe80::/10")


class LinkChange(StrEnum):
    """What changed at an interface."""

    APPEARED = "appeared"
    DISAPPEARED = "disappeared"
    UP = "up"
    DOWN = "down"
    MAC = "mac"
    ADDRESS_ADDED = "address-added"
    ADDRESS_REMOVED = "address-removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEvent:
    """One change of the interface `name`; `address` is the one added or removed, with its prefix length.

    A recreated interface has DISAPPEARED and APPEARED. An interface that appears or disappears has no other
    events: its state has the rest.
    """

    change: LinkChange
    name: str
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An interface. `up` is administratively up (IFF_UP) and able to carry traffic (IFF_RUNNING).

    `addresses` are the usable ones with their prefix lengths, in the kernel's order; `own` those without our
    mark.
    """

    name: str
    index: int
    mac: bytes
    up: bool
    addresses: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    def primary(self, family: Literal[4, 6], *, excluding: Collection[str] = ()) -> str | None:
        """Return the source of advertisements: the first IPv4 address, or the link-local IPv6 one.

        RFC 9568 sections 5.1.1.1 and 5.1.2.1. Without prefix length. `excluding` are virtual addresses, with
        or without prefix length: on kernels without marks `own` includes them.
        """
        virtual = {each.partition("/")[0] for each in excluding}
        for address in (each.partition("/")[0] for each in self.own):
            if address not in virtual and _fits(address, family):
                return address
        return None


class Links(Closable):
    """The machine's interfaces, kept up to date by `read`. Raises OSError if no socket can be opened."""

    def __init__(self, *, buffer: int = _BUFFER) -> None:
        self._links: dict[int, Link] = {}
        self._addresses: dict[int, dict[str, bool]] = {}
        self._touched: set[int] = set()
        self._requests = Requests()
        try:
            self._socket = netlink.open_socket(_GROUPS, buffer=buffer)
        except OSError:
            self._requests.close()
            raise
        self.overruns = 0
        self.damaged = 0  # messages that could not be decoded
        self._places: dict[str, tuple[tuple[str, str], ...]] | None = None
        self._stale = False
        # After the subscription: changes during the dump are notified after it.
        self._read_anew()
        self._reported = dict(self._links)

    def close(self) -> None:
        """Close the sockets; another call is harmless."""
        self._socket.close()
        self._requests.close()

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._socket.fileno()

    def state(self, name: str) -> Link | None:
        """Return the interface as of the last `read`; None if it does not exist."""
        return next((link for link in self._links.values() if link.name == name), None)

    def places(self, address: str) -> tuple[tuple[str, str], ...]:
        """Return the interfaces with an address added by another program, and its prefix length there."""
        if self._places is None:
            self._places = _places(self._links.values())
        return self._places.get(address, ())

    def has_mac(self, mac: bytes) -> bool:
        """Return whether an interface of this machine has this hardware address."""
        return any(link.mac == mac for link in self._links.values())

    def read(self) -> list[LinkEvent]:
        """Return the changes since the last call; never waits.

        Raises OSError if the kernel dropped notifications and does not answer the dump; the next call tries
        again, and no event is lost.
        """
        if not self._stale:
            self._follow_or_lose()
        if self._stale:
            self._drain()
            self._read_anew()
            self._stale = False
        self._assemble()
        before, self._reported = self._reported, dict(self._links)
        return _differences(before, self._reported)

    def _follow_or_lose(self) -> None:
        try:
            self._follow()
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            self.overruns += 1
            self._stale = True

    def _follow(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                for message in netlink.split(self._socket.recv(_RECEIVED)):
                    self._apply(message)

    def _drain(self) -> None:
        """Discard notifications older than the dump that follows."""
        while True:
            try:
                self._socket.recv(_RECEIVED)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise

    def _read_anew(self) -> None:
        links, addresses = all_links(), all_addresses()
        messages = [*self._requests.dump(links), *self._requests.dump(addresses)]
        self._links.clear()
        self._addresses.clear()
        for message in messages:
            self._apply(message)
        self._assemble()

    def _apply(self, message: Message) -> None:
        try:
            self._apply_whole(message)
        except rtnetlink.DamagedMessage:
            self.damaged += 1

    def _apply_whole(self, message: Message) -> None:
        if message.kind in (NEW_LINK, GONE_LINK):
            self._apply_link(decode_link(message), gone=message.kind == GONE_LINK)
        elif message.kind in (NEW_ADDRESS, GONE_ADDRESS):
            gone = message.kind == GONE_ADDRESS
            self._apply_address(decode_address(message), gone=gone)

    def _apply_link(self, facts: LinkFacts | None, *, gone: bool) -> None:
        if facts is None:
            return
        if gone:
            self._links.pop(facts.index, None)
            self._addresses.pop(facts.index, None)
            return
        self._links[facts.index] = Link(name=facts.name, index=facts.index, mac=facts.mac, up=facts.up)
        self._touched.add(facts.index)

    def _apply_address(self, facts: AddressFacts | None, *, gone: bool) -> None:
        if facts is None:
            return
        addresses = self._addresses.setdefault(facts.index, {})
        if gone or not facts.usable:
            addresses.pop(facts.address, None)
        else:
            addresses[facts.address] = facts.ours
        self._touched.add(facts.index)

    def _assemble(self) -> None:
        """Rebuild the links that had messages, with their addresses."""
        self._places = None
        for index in self._touched & self._links.keys():
            addresses = self._addresses.get(index, {})
            own = tuple(address for address, ours in addresses.items() if not ours)
            self._links[index] = replace(self._links[index], addresses=tuple(addresses), own=own)
        self._touched.clear()


def answers_for_others(interface: str) -> bool:
    """Return whether an interface answers ARP for addresses of other interfaces, Linux's default.

    arp_ignore of ip-sysctl: the kernel uses the larger value of `all` and the interface.
    """
    return not any(_arp_ignore(each) for each in ("all", interface))


def _arp_ignore(interface: str) -> int:
    try:
        return int(Path(f"/proc/sys/net/ipv4/conf/{interface}/arp_ignore").read_text())
    except (OSError, ValueError):
        return 0


def _places(links: Iterable[Link]) -> dict[str, tuple[tuple[str, str], ...]]:
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for link in links:
        for address in link.own:
            bare = address.partition("/")[0]
            found[bare] = (*found.get(bare, ()), (link.name, address))
    return found


def _differences(before: dict[int, Link], after: dict[int, Link]) -> list[LinkEvent]:
    """Return the events between two states, per interface in the order of indexes."""
    events: list[LinkEvent] = []
    for index in sorted(before.keys() | after.keys()):
        old, new = before.get(index), after.get(index)
        if old is not new:
            events += _difference(old, new)
    # A recreated interface has a new index: of two with one name, the old one is removed first.
    return sorted(events, key=lambda event: event.change is not LinkChange.DISAPPEARED)


def _difference(old: Link | None, new: Link | None) -> Iterable[LinkEvent]:
    if old is None or new is None or old.name != new.name:
        if old is not None:
            yield LinkEvent(change=LinkChange.DISAPPEARED, name=old.name)
        if new is not None:
            yield LinkEvent(change=LinkChange.APPEARED, name=new.name)
        return
    if old.mac != new.mac:
        yield LinkEvent(change=LinkChange.MAC, name=new.name)
    for address in sorted(set(old.addresses) - set(new.addresses)):
        yield LinkEvent(change=LinkChange.ADDRESS_REMOVED, name=new.name, address=address)
    # An address whose mark changed (to ours or back) counts as new.
    turned = (set(old.own) ^ set(new.own)) & set(new.addresses)
    for address in sorted(set(new.addresses) - set(old.addresses) | turned):
        yield LinkEvent(change=LinkChange.ADDRESS_ADDED, name=new.name, address=address)
    if old.up != new.up:
        yield LinkEvent(change=LinkChange.UP if new.up else LinkChange.DOWN, name=new.name)


def _fits(address: str, family: int) -> bool:
    interface = ip_interface(address)
    if family == 4:
        return interface.version == 4
    return interface.version == 6 and interface.ip in _LINK_LOCAL
