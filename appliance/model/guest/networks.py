"""The networks of a virtual machine: what each is for, its addresses, and the ways that lead out of it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address, ip_interface, ip_network
from typing import Final

from appliance.model.config.values.addresses import Address, network
from appliance.model.guest import value_types
from appliance.model.guest.reader import PropertyReader
from appliance.model.messages.quoting import shown


class Role(StrEnum):
    """What a network is for. The machine's adapters have them in this order."""

    CLIENTS = "clients"
    SERVERS = "servers"
    MANAGEMENT = "management"
    VRRP = "vrrp"

    @property
    def key(self) -> str:
        """The property that has the addresses."""
        return "address" if self is Role.CLIENTS else f"{self}_address"

    @property
    def adapter(self) -> int:
        """Which of the machine's adapters is in it, from 0."""
        return list(Role).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A network behind a router, which is in a network of the machine."""

    to: str
    via: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestNetwork:
    """One network. Without addresses DHCP is asked for one.

    `addresses` have their prefix lengths; `gateways` has at most one of each family in all networks together.
    """

    role: Role = Role.CLIENTS
    addresses: tuple[str, ...] = ()
    gateways: tuple[str, ...] = ()
    resolvers: tuple[str, ...] = ()
    routes: tuple[Route, ...] = ()

    def has(self, address: Address) -> bool:
        """Return whether an address is in the network."""
        return any(address in ip_interface(each).network for each in self.addresses)


DHCP: Final = "dhcp"
NO_GATEWAY: Final = "none"
_BEFORE_NETMASK: Final = re.compile(r"\s+(?=255\.)")
_VIA: Final = re.compile(r"\s+via\s+", re.IGNORECASE)
_ARROW: Final = ">"


def networks(reader: PropertyReader) -> tuple[GuestNetwork, ...]:
    """Return the machine's networks, that of the clients first; the reader collects the problems."""
    seen: dict[str, Role] = {}
    found = {role: tuple(_addresses(reader, role, seen)) for role in Role}
    used = [each for each in Role if each is Role.CLIENTS or found[each] or _is_dhcp(reader, each)]
    own = [GuestNetwork(role=each, addresses=found[each]) for each in used]
    _warn_of_overlaps(reader, own)
    gateways = tuple(_gateways(reader, own))
    routes = tuple(_routes(reader, own))
    resolvers = reader.many("dns", value_types.host_address)
    return tuple(
        GuestNetwork(
            role=each.role,
            addresses=each.addresses,
            gateways=tuple(gateway for gateway in gateways if _toward(own, (), gateway) is each),
            resolvers=tuple(address for address in resolvers if _toward(own, routes, address) is each),
            routes=tuple(route for route in routes if _toward(own, (), route.via) is each),
        )
        for each in own
    )


def _is_dhcp(reader: PropertyReader, role: Role) -> bool:
    """Return whether a further network asks DHCP; the one of VRRP cannot, as others have to know it."""
    return reader.given.get(role.key, "").lower() == DHCP and role is not Role.VRRP


def _addresses(reader: PropertyReader, role: Role, seen: dict[str, Role]) -> Iterator[str]:
    """Yield the addresses in a network, each once in all; a netmask may follow after a space."""
    if reader.given.get(role.key, "").lower() == DHCP and role is not Role.VRRP:
        return
    text = _BEFORE_NETMASK.sub("/", reader.given.get(role.key, ""))
    for each in reader.many(role.key, value_types.own_address, text=text):
        address = each.partition("/")[0]
        if address in seen:
            where = (
                "with different prefix lengths" if seen[address] is role else f"as {seen[address].key} too"
            )
            reader.warn(role.key, f"has `{address}` twice, {where}")
            continue
        seen[address] = role
        yield each


def _warn_of_overlaps(reader: PropertyReader, own: Iterable[GuestNetwork]) -> None:
    """Warn of two adapters in one network: the kernel would answer for both on either."""
    known: dict[str, Role] = {}
    for each in own:
        for around in dict.fromkeys(str(ip_interface(address).network) for address in each.addresses):
            if known.setdefault(around, each.role) is not each.role:
                message = f"{around} is the network of {known[around].key} too: one adapter for each network"
                reader.warn(each.role.key, message)


def _toward(own: Iterable[GuestNetwork], routes: Iterable[Route], address: str) -> GuestNetwork:
    """Return the network by which an address is reached, that of the clients where none is known."""
    own, wanted = tuple(own), ip_address(address)
    for route in routes:
        if wanted in ip_network(route.to):
            wanted = ip_address(route.via)
            break
    return next((each for each in own if each.has(wanted)), own[0])


def _gateways(reader: PropertyReader, own: list[GuestNetwork]) -> Iterator[str]:
    if reader.given.get("gateway", "").lower() == NO_GATEWAY:
        return
    addresses = [address for each in own for address in each.addresses]
    given = reader.many("gateway", value_types.gateway)
    if given and not addresses:
        if "address" not in reader.given:
            reader.warn("gateway", "means nothing without `address`: DHCP brings its own")
        return
    if own[0].addresses and "gateway" not in reader.given:
        message = (
            "is missing: only the networks of the machine's own addresses are reached. Where that is meant: "
            f"`{NO_GATEWAY}`"
        )
        reader.warn("gateway", message)
    families: set[int] = set()
    for gateway in given:
        objection = _objection(gateway, addresses)
        version = ip_address(gateway).version
        if objection is None and version in families:
            objection = f"`{gateway}` is the second of IPv{version}: one of each family"
        if objection is not None:
            reader.warn("gateway", objection)
            continue
        families.add(version)
        yield gateway


def _routes(reader: PropertyReader, own: list[GuestNetwork]) -> Iterator[Route]:
    addresses = [address for each in own for address in each.addresses]
    text = _VIA.sub(_ARROW, reader.given.get("routes", ""))
    for each in reader.many("routes", _route, text=text):
        objection = _objection(each.via, addresses)
        if objection is not None:
            reader.warn("routes", f"{objection}; it is left out")
            continue
        yield each


def _route(text: str) -> Route:
    written, arrow, router = text.partition(_ARROW)
    if not arrow:
        raise ValueError(f"{shown(text)} has no router: for example `10.20.0.0/16 via 10.0.1.1`")
    to = network(written)
    via = value_types.gateway(router)
    if ip_address(via).version != ip_network(to).version:
        raise ValueError(f"`{to}` and `{via}` are not of one version of IP")
    return Route(to=to, via=via)


def _objection(router: str, addresses: Iterable[str]) -> str | None:
    """Return why a router cannot be reached from these addresses, None if it can."""
    wanted = ip_address(router)
    own = [ip_interface(each) for each in addresses]
    if any(wanted == each.ip for each in own):
        return f"`{router}` is this machine's own address"
    if wanted.version == 6 and wanted.is_link_local:
        return None
    around = [each.network for each in own if each.version == wanted.version and wanted in each.network]
    if any(value_types.is_broadcast(wanted, each) or value_types.is_network(wanted, each) for each in around):
        return f"`{router}` is the address of the network itself, or of all in it: no router has that"
    if around:
        return None
    of_all = ", ".join(str(each.network) for each in own)
    return f"`{router}` is not in the network of the machine's address, {of_all}"
