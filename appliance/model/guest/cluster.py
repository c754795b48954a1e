"""The cluster section of the guest properties: judged, and as the values that a configuration is made of."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_interface
from typing import Final

from appliance.model.addresses import dns_name
from appliance.model.guest import fields
from appliance.model.guest.machine import Machine
from appliance.model.guest.properties import BY_KEY
from appliance.model.guest.reader import Reader

KEYS: Final = (
    "cluster_name", "cluster_domain", "masters", "routers", "api_vip", "ingress_vip", "vrrp_peers",
    "vrrp_priority",
)  # fmt: skip
_LABELS: Final = tuple(f"the {BY_KEY[key].label}" for key in ("api_vip", "ingress_vip"))
_SERVERS: Final = {"api": "masters", "ingress": "routers"}
_SERVES: Final = ("masters", "routers", "api_vip", "ingress_vip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """A virtual IP: its name in the configuration, its address with prefix length, and its peers.

    `group` is the sync group of two families that move together, None for a lone one; `serves` are the
    roles whose connections come to it, of those that have servers.
    """

    name: str
    role: str
    address: str
    peers: tuple[str, ...]
    group: str | None
    serves: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """All that the section says. `networks` are those of the machine's own addresses."""

    name: str
    domain: str | None
    masters: tuple[str, ...]
    routers: tuple[str, ...]
    shared: tuple[Shared, ...]
    priority: int
    interface: str
    networks: tuple[str, ...]


def is_given(said: Mapping[str, str]) -> bool:
    """Tell whether the section says anything: a form sends its defaults in any case."""
    return any(said.get(key, BY_KEY[key].default) != BY_KEY[key].default for key in KEYS)


def cluster(reader: Reader, *, of: Machine, interface: str | None) -> Cluster | None:
    """Return what the section says, None where anything about it is wrong.

    It is said of a machine, and `interface` is what carries virtual IPs.
    """
    before = reader.refusals
    own = tuple(each.partition("/")[0] for each in of.addresses)
    name = reader.one("cluster_name", dns_name)
    domain = reader.one("cluster_domain", dns_name)
    masters, routers = (reader.many(key, fields.member) for key in ("masters", "routers"))
    peers = _peers(reader, own)
    priority = reader.one("vrrp_priority", fields.priority)
    shared = [each for role in ("api", "ingress") for each in _shared(reader, role, of.addresses, peers)]
    _judge_whole(reader)
    _judge_shared(reader, shared, of=of, peers=peers)
    _judge_members(reader, shared, {"masters": masters, "routers": routers}, own=own, peers=peers)
    if shared and interface is None:
        reader.refuse(f"{shared[0].role}_vip", "this machine has no network interface to carry it")
    if name is None or reader.refusals > before:
        return None
    return Cluster(
        name=name,
        domain=domain,
        masters=masters,
        routers=routers,
        shared=tuple(shared),
        priority=priority or int(BY_KEY["vrrp_priority"].default),
        interface=interface or "",
        networks=tuple(dict.fromkeys(str(ip_interface(each).network) for each in of.addresses)),
    )


def _judge_whole(reader: Reader) -> None:
    if "cluster_name" not in reader.said:
        message = "is missing: what else is said about the cluster needs it, above all the virtual router ids"
        reader.refuse("cluster_name", message)
    if not any(key in reader.said for key in _SERVES):
        labels = ", ".join(BY_KEY[key].label for key in _SERVES)
        reader.refuse("masters", f"is missing, and so is all else that could be served: say one of {labels}")
    if "vrrp_peers" in reader.said and "api_vip" not in reader.said and "ingress_vip" not in reader.said:
        reader.refuse("vrrp_peers", "mean nothing without a virtual IP: give that too, or leave them out")


def _peers(reader: Reader, own: tuple[str, ...]) -> tuple[str, ...]:
    """Return the other routers: all machines may be given the same list, with themselves in it."""
    given = reader.many("vrrp_peers", fields.host_address)
    others = tuple(each for each in given if each not in own)
    if given and not others:
        reader.refuse("vrrp_peers", f"has only this machine's own address, `{given[0]}`: add the others'")
    return others


def _shared(
    reader: Reader, role: str, addresses: tuple[str, ...], peers: tuple[str, ...]
) -> Iterable[Shared]:
    key = f"{role}_vip"
    given = reader.many(key, fields.shared_address)
    families = [_family(each) for each in given]
    if len(set(families)) < len(families):
        reader.refuse(key, "has several addresses of one family: one of IPv4, one of IPv6, or both")
    for address, family in zip(given, families, strict=True):
        reached = tuple(each for each in peers if _family(each) == family)
        if peers and not reached:
            reader.refuse("vrrp_peers", f"none of them is of IPv{family}, as `{address}` is")
        yield Shared(
            name=role if len(given) == 1 else f"{role}-v{family}",
            role=role,
            address=_with_length(address, addresses),
            peers=reached,
            group=None if len(given) == 1 else role,
            serves=_served(reader, role),
        )


def _served(reader: Reader, role: str) -> tuple[str, ...]:
    """Return what comes to a virtual IP: its own role's, and the other's where that has no address."""
    alone = sum(f"{each}_vip" in reader.said for each in _SERVERS) == 1
    return tuple(each for each in _SERVERS if (alone or each == role) and _SERVERS[each] in reader.said)


def taken(of: Machine) -> dict[str, str]:
    """Return the addresses that no virtual IP can have, each with what it is already."""
    own = (each.partition("/")[0] for each in of.addresses)
    return {
        **dict.fromkeys(of.resolvers, "one of the DNS servers"),
        **dict.fromkeys(of.gateways, "the Gateway"),
        **dict.fromkeys(own, "this machine's own address"),
    }


def _judge_shared(reader: Reader, shared: Iterable[Shared], *, of: Machine, peers: Iterable[str]) -> None:
    """Refuse virtual IPs that are something else already, or cannot be a host's."""
    known = {**dict.fromkeys(peers, "one of the VRRP peers"), **taken(of)}
    networks = [ip_interface(each).network for each in of.addresses]
    for each in shared:
        key, address = f"{each.role}_vip", each.address.partition("/")[0]
        if address in known:
            hint = ": leave this one out, and it serves both" if known[address] in _LABELS else ""
            reader.refuse(key, f"`{address}` is {known[address]} already{hint}")
        found = ip_address(address)
        if any(fields.is_broadcast(found, each) or fields.is_network(found, each) for each in networks):
            reader.refuse(key, f"`{address}` is the address of the network itself, or of all in it")
        known[address] = f"the {BY_KEY[key].label}"


def _judge_members(
    reader: Reader, shared: Iterable[Shared], servers: Mapping[str, Iterable[str]], *,
    own: Iterable[str], peers: Iterable[str],
) -> None:  # fmt: skip
    """Refuse servers that are ourselves; one that is another load balancer is a slip, most of the time."""
    ours = dict.fromkeys(own, "this machine's own address")
    ours |= {each.address.partition("/")[0]: f"the {BY_KEY[f'{each.role}_vip'].label}" for each in shared}
    for key, members in servers.items():
        for member in members:
            if member in ours:
                reader.refuse(key, f"`{member}` is {ours[member]}: connections would go round in a loop")
            elif member in peers:
                reader.warn(key, f"`{member}` is one of the VRRP peers too: those are load balancers")


def _with_length(address: str, own: Iterable[str]) -> str:
    """Return an address with the prefix length of the machine's own network, else as the address alone."""
    if "/" in address:
        return address
    wanted = ip_address(address)
    networks = (ip_interface(each).network for each in own)
    lengths = (each.prefixlen for each in networks if each.version == wanted.version and wanted in each)
    return f"{address}/{next(lengths, wanted.max_prefixlen)}"


def _family(address: str) -> int:
    return 6 if ":" in address else 4
