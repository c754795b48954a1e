"""Which advertisements a virtual router accepts: section 7.1 of RFC 9568 and RFC 3768, and its settings.

An advertisement that lists other addresses than ours, but at least one of ours, is accepted and reported as a
deviation: operators change the list of addresses on one node after the other, and if the nodes dropped each
other's advertisements, both would be active until the change is complete. RFC 9568 section 7.1 only asks for
a log entry. A list with none of our addresses belongs to another virtual router, and is dropped. keepalived
drops both.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import ip_interface

from appliance.model.drop_reasons import DropReason
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.wire.vrrp.advertisement import (
    MULTICAST_4,
    MULTICAST_6,
    PASSWORD_BYTES,
    Advertisement,
    AuthType,
    VrrpError,
)

_WHOLE_TTL = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """How a packet arrived: literal addresses, and its remaining TTL or hop limit."""

    source: str
    destination: str
    ttl: int


@dataclass(frozen=True, slots=True)
class AdvertRules:
    """What a virtual router requires of an advertisement. Checks raise VrrpError with the drop reason."""

    router: VirtualRouter
    _peers: frozenset[str] = field(init=False)
    _addresses: frozenset[str] = field(init=False)
    _password: bytes = field(init=False)
    _group: str = field(init=False)

    def __post_init__(self) -> None:
        router = self.router
        password = (router.password or "").encode()[:PASSWORD_BYTES].rstrip(b"\0")
        object.__setattr__(self, "_peers", frozenset(router.peers))
        object.__setattr__(self, "_addresses", frozenset(bare(router.advertised)))
        object.__setattr__(self, "_password", password)
        object.__setattr__(self, "_group", MULTICAST_4 if router.family == 4 else MULTICAST_6)

    def check_arrival(self, arrival: Arrival) -> None:
        """Check how a packet arrived, before it is decoded."""
        if self._peers:
            self._check_unicast(arrival)
        elif arrival.destination != self._group:
            raise VrrpError(DropReason.DESTINATION)
        # RFC 9568 section 7.1: no router has forwarded it, so the sender is on this link.
        elif arrival.ttl != _WHOLE_TTL:
            raise VrrpError(DropReason.HOP_LIMIT)

    def check(self, advertisement: Advertisement) -> DropReason | None:
        """Return why a stricter router drops an advertisement of our router id, None if nothing is wrong."""
        if advertisement.version != self.router.version:
            raise VrrpError(DropReason.VERSION)
        if advertisement.version == 2:
            self._check_authentication(advertisement)
        # keepalived checks the list of unicast peers, too. The order of the addresses has no meaning.
        theirs = frozenset(advertisement.addresses)
        # RFC 9568 section 5.2.5: at least one; a router without addresses is keepalived's own extension.
        if self._addresses and not theirs:
            raise VrrpError(DropReason.ADDRESS_COUNT)
        if self._addresses != theirs and self._addresses.isdisjoint(theirs):
            raise VrrpError(DropReason.ADDRESS_LIST)
        # RFC 3768 section 7.1: another interval is a misconfiguration. In version 3 a Backup learns it.
        if advertisement.version == 2 and advertisement.interval != self.router.advert:
            raise VrrpError(DropReason.INTERVAL)
        return None if self._addresses == theirs else DropReason.ADDRESS_LIST

    def _check_unicast(self, arrival: Arrival) -> None:
        if arrival.source not in self._peers:
            raise VrrpError(DropReason.NOT_A_PEER)
        if arrival.destination == self._group:
            raise VrrpError(DropReason.DESTINATION)
        if arrival.ttl < self.router.min_ttl:
            raise VrrpError(DropReason.HOP_LIMIT)

    def _check_authentication(self, advertisement: Advertisement) -> None:
        wanted = AuthType.PASSWORD if self._password else AuthType.NONE
        if advertisement.auth_type is not wanted:
            raise VrrpError(DropReason.AUTH_TYPE)
        if advertisement.password != self._password and wanted is AuthType.PASSWORD:
            raise VrrpError(DropReason.PASSWORD)


def bare(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return addresses without their prefix lengths, as in a decoded packet."""
    return tuple(str(ip_interface(each).ip) for each in addresses)


def advertisement(router: VirtualRouter, priority: int) -> Advertisement:
    """Return the advertisement that the router sends, with this priority."""
    password = (router.password or "").encode()[:PASSWORD_BYTES]
    return Advertisement(
        version=router.version,
        router_id=router.router_id,
        priority=priority,
        interval=router.advert,
        addresses=bare(router.advertised),
        auth_type=AuthType.PASSWORD if password and router.version == 2 else AuthType.NONE,
        password=password if router.version == 2 else b"",
    )
