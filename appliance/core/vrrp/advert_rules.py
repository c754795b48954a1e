"""Which advertisements one virtual router accepts: section 7.1 of RFC 9568 and RFC 3768, and the operator.

One that shares an address with us is the same virtual router, though its list is another one: the lists are
being changed node after node. RFC 9568 section 7.1 asks only for a line in the log, and such an advertisement
is obeyed and named as a deviation; else both nodes would be active until the change is done. A list that
shares nothing is a foreign router's, and is dropped. keepalived drops both.
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
    """How a packet came: literal addresses, and the TTL or hop limit it had left."""

    source: str
    destination: str
    ttl: int


@dataclass(frozen=True, slots=True)
class AdvertRules:
    """What a virtual router asks of an advertisement. Every check raises VrrpError with the one reason."""

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
        """Check how it came, before a byte of it is looked at."""
        if self._peers:
            self._check_unicast(arrival)
        elif arrival.destination != self._group:
            raise VrrpError(DropReason.DESTINATION)
        elif arrival.ttl != _WHOLE_TTL:
            raise VrrpError(DropReason.HOP_LIMIT)

    def check(self, advertisement: Advertisement) -> DropReason | None:
        """Check what it says; that the router id is ours is known already.

        Return why a stricter router would have dropped it, None where it is just as it should be.
        """
        if advertisement.version != self.router.version:
            raise VrrpError(DropReason.VERSION)
        if advertisement.version == 2:
            self._check_authentication(advertisement)
        # Of unicast peers as well, as in keepalived; the order says nothing.
        if self._addresses.isdisjoint(advertisement.addresses):
            raise VrrpError(DropReason.ADDRESS_LIST)
        # RFC 3768 section 7.1: another interval is a misconfiguration; in version 3 a backup learns it.
        if advertisement.version == 2 and advertisement.interval != self.router.advert:
            raise VrrpError(DropReason.INTERVAL)
        return None if self._addresses == set(advertisement.addresses) else DropReason.ADDRESS_LIST

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
    """Return addresses without their prefix lengths, as a decoded packet has them."""
    return tuple(str(ip_interface(each).ip) for each in addresses)


def advertisement(router: VirtualRouter, priority: int) -> Advertisement:
    """Return what the router says of itself, with this priority."""
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
