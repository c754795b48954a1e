"""Which connections other nodes learn (`sync: true`), and by which way they do."""

from collections.abc import Iterable
from ipaddress import ip_address, ip_interface

from appliance.model.snapshot.frontends import Frontend
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.snapshot.virtual_router import VirtualRouter


def synced(snapshot: Snapshot) -> tuple[Frontend, ...]:
    """Return the frontends whose connections other nodes learn."""
    return tuple(each for _, each in snapshot.forwarded if each.sync)


def synced_addresses(snapshot: Snapshot, frontends: Iterable[Frontend] | None = None) -> tuple[str, ...]:
    """Return the virtual IPs that lead to these frontends, literal and without their prefix lengths.

    `frontends` are all of `synced` if they are not given.
    """
    frontends = synced(snapshot) if frontends is None else tuple(frontends)
    return tuple(sorted(each for each in snapshot.virtual_addresses if _is_bound(each, frontends)))


def synced_routers(snapshot: Snapshot) -> tuple[VirtualRouter, ...]:
    """Return the virtual routers of these addresses, first the one by whose way nodes exchange them."""
    found = set(synced_addresses(snapshot))
    routers = (each for each in snapshot.virtual_routers if found.intersection(literal(each)))
    return tuple(sorted(routers, key=lambda each: (each.family, each.name)))


def are_proxied(snapshot: Snapshot, addresses: Iterable[str]) -> bool:
    """Return whether proxies listen at some of these addresses too."""
    proxied = [each for group in snapshot.proxied for each in group.frontends]
    return any(_is_bound(each, proxied) for each in addresses)


def literal(router: VirtualRouter) -> tuple[str, ...]:
    """Return the addresses of a virtual router without their prefix lengths."""
    return tuple(str(ip_interface(each).ip) for each in router.addresses)


def covers(host: str, address: str) -> bool:
    """Return whether clients reach a bind of this host at an address."""
    if host == "::" or (host == "0.0.0.0" and ":" not in address):  # noqa: S104  # recognised, not bound
        return True
    try:
        return ip_address(host) == ip_address(address)
    except ValueError:  # a name, which only a proxy binds: it may be this address
        return True


def _is_bound(address: str, frontends: Iterable[Frontend]) -> bool:
    return any(covers(bind.host, address) for each in frontends for bind in each.binds)
