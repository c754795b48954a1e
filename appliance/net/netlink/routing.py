"""Routes and rules of ours in the kernel's routing: added, removed, and recognised after a crash.

The protocol that the kernel keeps with each (rtm_protocol, FRA_PROTOCOL) marks them as ours. Those of other
programs are never changed. Every function is idempotent.
"""

import errno
import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from appliance.model.snapshot.virtual_router import VirtualRoute, VirtualRule
from appliance.net.netlink.address_messages import OURS
from appliance.net.netlink.netlink import Message, Requests
from appliance.net.netlink.route_messages import (
    add_route,
    add_rule,
    all_routes,
    all_rules,
    decode_route,
    decode_rule,
    remove_route,
    remove_rule,
)
from appliance.net.netlink.rtnetlink import readable

_GONE: Final = frozenset({errno.ESRCH, errno.ENOENT, errno.ENODEV, errno.EAFNOSUPPORT})
_NOT_HERE: Final = frozenset({errno.EAFNOSUPPORT, errno.EOPNOTSUPP})
"""A kernel without IPv6, or without rules, has none of ours."""

_FAMILIES: Final = (socket.AF_INET, socket.AF_INET6)

Routed = VirtualRoute | VirtualRule
RouteKey = tuple[str, int, int] | VirtualRule
"""What the kernel can have only once: network, table and metric of a route, or a whole rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The outcome of `add`: `restored` were gone, `foreign` are another program's, `failed` has reasons."""

    restored: tuple[Routed, ...] = ()
    foreign: tuple[Routed, ...] = ()
    failed: Mapping[Routed, str] = field(default_factory=dict)


class Routing:
    """Adds and removes routes and rules, ours by `protocol`; raises OSError if the kernel does not answer."""

    def __init__(self, requests: Requests, *, protocol: int = OURS) -> None:
        self._requests = requests
        self._protocol = protocol
        self._held: dict[RouteKey, Routed] = {}
        self._foreign: set[Routed] = set()

    def present(self) -> Mapping[RouteKey, Routed]:
        """Return our routes and rules in the kernel; of a route only its key."""
        found: list[Routed] = []
        for family in _FAMILIES:
            found += readable(
                partial(decode_route, protocol=self._protocol),
                self._dump(all_routes(family, protocol=self._protocol)),
            )
            found += readable(decode_rule, self._dump(all_rules(family)))
        return {place(each): each for each in found}

    def leftovers(self) -> tuple[Routed, ...]:
        """Return our routes and rules that this process did not add: an earlier `vrrp` left them."""
        return tuple(each for at, each in self.present().items() if at not in self._held)

    def add(self, wanted: Iterable[Routed]) -> Added:
        """Add these to the kernel, in order; a route of ours in the same place is replaced atomically."""
        restored, foreign, unsure = list[Routed](), list[Routed](), list[Routed]()
        failed = dict[Routed, str]()
        for each, outcome in self._ask(wanted, replace=False):
            known = self._held.get(place(each)) == each
            if outcome not in {0, errno.EEXIST}:
                failed[each] = os.strerror(outcome)
            elif not outcome:
                self._hold(each)
                if known:
                    restored.append(each)
            elif each in self._foreign:
                foreign.append(each)
            elif not known:
                unsure.append(each)
        ours = self.present() if unsure else {}
        foreign += [each for each in unsure if place(each) not in ours]
        self._foreign.update(foreign)
        for each, outcome in self._ask((each for each in unsure if place(each) in ours), replace=True):
            if outcome in {0, errno.EEXIST}:  # the same rule exists
                self._hold(each)
            else:
                failed[each] = os.strerror(outcome)
        return Added(restored=tuple(restored), foreign=tuple(foreign), failed=failed)

    def remove(self, unwanted: Iterable[Routed]) -> None:
        """Remove all of ours that can be removed, the last one first; raises OSError if one was refused."""
        unwanted = tuple(unwanted)
        # Without a metric, IPv4 removes a route of any metric: do not remove those of other programs.
        gone = [each for each in reversed(unwanted) if each not in self._foreign]
        self._foreign.difference_update(unwanted)
        requests = [
            remove_route(each, protocol=self._protocol)
            if isinstance(each, VirtualRoute)
            else remove_rule(each)
            for each in gone
        ]
        refused = dict[Routed, int]()
        for each, outcome in zip(gone, self._requests.ask(requests), strict=True):
            if outcome not in {0, *_GONE}:
                refused[each] = outcome
            else:
                self._held.pop(place(each), None)
        for each, outcome in refused.items():
            raise OSError(outcome, f"{each}: {os.strerror(outcome)}")

    def keep_only(self, wanted: Iterable[Routed]) -> None:
        """Remove those that were added and are no longer wanted; raises OSError as `remove` does."""
        places = set(map(place, wanted))
        surplus = [each for at, each in self._held.items() if at not in places]
        if surplus:
            self.remove(surplus)

    def _dump(self, request: bytes) -> list[Message]:
        try:
            return self._requests.dump(request)
        except OSError as error:
            if error.errno in _NOT_HERE:
                return []
            raise

    def _hold(self, routed: Routed) -> None:
        self._held[place(routed)] = routed
        self._foreign.discard(routed)

    def _ask(self, wanted: Iterable[Routed], *, replace: bool) -> list[tuple[Routed, int]]:
        """Return the outcome of adding each: 0 or an errno."""
        outcomes, asked, requests = dict[Routed, int](), list[Routed](), list[bytes]()
        for each in wanted:
            try:
                requests.append(self._adding(each, replace=replace))
            except OSError as error:  # no such interface
                outcomes[each] = error.errno or errno.ENODEV
            else:
                asked.append(each)
        outcomes |= zip(asked, self._requests.ask(requests), strict=True)
        return list(outcomes.items())

    def _adding(self, routed: Routed, *, replace: bool) -> bytes:
        if isinstance(routed, VirtualRule):
            return add_rule(routed)
        index = socket.if_nametoindex(routed.interface) if routed.interface else 0
        return add_route(routed, index, replace=replace, protocol=self._protocol)


def place(routed: Routed) -> RouteKey:
    """Return the key of a route or rule."""
    return routed.place if isinstance(routed, VirtualRoute) else routed
