"""Which address of a Node is used: an InternalIP, as OpenShift's own load balancer has it (runtimecfg).

Of the wanted family it is the last one in the network of a virtual IP, otherwise the first. A Node with only
the other family is used by that. A virtual IP is none of a Node's addresses, though its holder may show it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_address, ip_interface
from typing import Final, Literal

from appliance.model.snapshot.snapshot import Snapshot

_INTERNAL: Final = "InternalIP"

Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressChoice:
    """What decides: the family, None for each Node's first, and the virtual IPs with their networks."""

    family: Literal[4, 6] | None
    virtual: tuple[IPv4Interface | IPv6Interface, ...]

    def choose(self, addresses: Sequence[tuple[str, str]]) -> str | None:
        """Return the address of a Node with these (type, address); None if it has none to use."""
        usable = [each for kind, text in addresses if kind == _INTERNAL and (each := _usable(text))]
        held = {each.ip for each in self.virtual}
        own = [each for each in usable if each not in held]
        if not own:
            return None
        family = self.family or own[0].version
        wanted = [each for each in own if each.version == family] or own
        near = [each for each in wanted if any(each in virtual.network for virtual in self.virtual)]
        return str(near[-1] if near else wanted[0])


def address_choice(snapshot: Snapshot) -> AddressChoice:
    """Return the setting of an accepted configuration: its family, otherwise that of the first virtual IP."""
    texts: Iterable[str] = (text for router in snapshot.virtual_routers for text in router.addresses)
    virtual = tuple(ip_interface(each) for each in texts)
    given = snapshot.kubernetes.family if snapshot.kubernetes else None
    return AddressChoice(family=given or (virtual[0].version if virtual else None), virtual=virtual)


def usable_address(text: str) -> str | None:
    """Return an address in its usual form, None if no connection can be made to it."""
    found = _usable(text)
    return str(found) if found else None


def _usable(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    address = getattr(address, "ipv4_mapped", None) or address
    scoped = isinstance(address, IPv6Address) and address.scope_id is not None
    bad = address.is_unspecified or address.is_multicast or address.is_link_local
    return None if bad or scoped else address
