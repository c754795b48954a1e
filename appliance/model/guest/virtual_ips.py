"""The virtual IPs of the guest properties: which addresses are usable, and which are left out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address, ip_interface
from typing import Final

from appliance.model.guest import value_types
from appliance.model.guest.machine_settings import GuestMachine
from appliance.model.guest.networks import Role
from appliance.model.guest.properties import BY_KEY
from appliance.model.guest.reader import PropertyReader

SERVERS: Final = {"api": "masters", "ingress": "routers"}
"""The roles of virtual IPs, each with the property that has its servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestVip:
    """A virtual IP: its name in the configuration, its address with prefix length, and its peers.

    `group` is the sync group of two families that move together, None for a single one; `serves` are the
    roles whose connections come to it, of those that have servers.
    """

    name: str
    role: str
    address: str
    peers: tuple[str, ...]
    group: str | None
    serves: tuple[str, ...]

    @property
    def key(self) -> str:
        """The property that it comes from."""
        return f"{self.role}_vip"

    @property
    def label(self) -> str:
        """What the form calls it."""
        return BY_KEY[self.key].label

    @property
    def number(self) -> str:
        """The address alone."""
        return self.address.partition("/")[0]


_LABELS: Final = tuple(f"the {BY_KEY[f'{role}_vip'].label}" for role in SERVERS)


def addresses(reader: PropertyReader, *, of: GuestMachine, peers: tuple[str, ...]) -> Iterator[GuestVip]:
    """Yield the addresses that can be a virtual IP; the others become problems."""
    known = {**dict.fromkeys(peers, "one of the VRRP peers"), **taken(of)}
    for role in SERVERS:
        for each in _of_role(reader, role, of.of(Role.CLIENTS), peers):
            objection = _objection(each, known, of.addresses)
            if objection is not None:
                reader.warn(each.key, objection)
                continue
            known[each.number] = f"the {each.label}"
            yield each


def usable(
    reader: PropertyReader,
    wanted: Iterable[GuestVip],
    *,
    servers: Mapping[str, tuple[str, ...]],
    hindrances: Mapping[str, str],
) -> tuple[GuestVip, ...]:
    """Return the virtual IPs that this machine can serve; the others become problems.

    `hindrances` are the properties because of which there can be none at all, each with the reason.
    """
    wanted = tuple(wanted)
    if wanted and hindrances:
        for key, reason in hindrances.items():
            reader.warn(key, f"the virtual IPs are left out: {reason}")
        return ()
    kept = [each for each in wanted if _is_usable(reader, each, servers)]
    families = Counter(each.role for each in kept)
    return tuple(each if families[each.role] > 1 else replace(each, group=None) for each in kept)


def taken(of: GuestMachine) -> dict[str, str]:
    """Return the addresses that cannot be a virtual IP, each with its present use."""
    own = (each.partition("/")[0] for each in of.addresses)
    return {
        **dict.fromkeys(of.resolvers, "one of the DNS servers"),
        **dict.fromkeys(of.gateways, "the Gateway"),
        **dict.fromkeys(own, "this machine's own address"),
    }


def _of_role(
    reader: PropertyReader, role: str, own: tuple[str, ...], peers: tuple[str, ...]
) -> Iterator[GuestVip]:
    given = reader.many(f"{role}_vip", value_types.virtual_ip)
    families = [_family(each) for each in given]
    if len(set(families)) < len(families):
        message = "has several addresses of one family: one of IPv4, one of IPv6, or both; all are left out"
        reader.warn(f"{role}_vip", message)
        return
    for address, family in zip(given, families, strict=True):
        yield GuestVip(
            name=role if len(given) == 1 else f"{role}-v{family}",
            role=role,
            address=_with_length(address, own),
            peers=tuple(each for each in peers if _family(each) == family),
            group=None if len(given) == 1 else role,
            serves=_served(reader, role),
        )


def _served(reader: PropertyReader, role: str) -> tuple[str, ...]:
    """Return the roles whose connections use a virtual IP: its own, and the other's if that has none."""
    alone = sum(f"{each}_vip" in reader.given for each in SERVERS) == 1
    return tuple(each for each in SERVERS if (alone or each == role) and SERVERS[each] in reader.given)


def _objection(each: GuestVip, known: Mapping[str, str], own: Iterable[str]) -> str | None:
    """Return why an address cannot be a virtual IP, None if it can."""
    if each.number in known:
        of_both = known[each.number] in _LABELS
        hint = ": leave this one out, and it serves both" if of_both else ""
        return f"`{each.number}` is {known[each.number]} already{hint}; it is left out"
    found = ip_address(each.number)
    networks = [ip_interface(address).network for address in own]
    if any(
        value_types.is_broadcast(found, network) or value_types.is_network(found, network)
        for network in networks
    ):
        return f"`{each.number}` is the address of the network itself, or of all in it; it is left out"
    return None


def _is_usable(reader: PropertyReader, each: GuestVip, servers: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether it has a peer of its family, if peers were given, and servers for its connections."""
    if "vrrp_peers" in reader.given and not each.peers:
        family = _family(each.number)
        message = f"none of them is of IPv{family}, as `{each.number}` is: that virtual IP is left out"
        reader.warn("vrrp_peers", message)
        return False
    if not all(servers[SERVERS[role]] for role in each.serves):
        reader.warn(each.key, f"`{each.number}` is left out: no frontend here serves its connections")
        return False
    return True


def _with_length(address: str, own: Iterable[str]) -> str:
    """Return an address with the prefix length of the machine's own network, otherwise as a single host."""
    if "/" in address:
        return address
    wanted = ip_address(address)
    networks = (ip_interface(each).network for each in own)
    lengths = (each.prefixlen for each in networks if each.version == wanted.version and wanted in each)
    return f"{address}/{next(lengths, wanted.max_prefixlen)}"


def _family(address: str) -> int:
    return 6 if ":" in address else 4
