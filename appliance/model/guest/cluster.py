"""The cluster section of the guest properties, as the values for a configuration.

A wrong value is left out with everything that depends on it, and the rest is used. A virtual IP is left out
too if its connections would find no server.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_interface
from typing import Final

from appliance.model.config.values.addresses import dns_name
from appliance.model.config.values.names import stats_password
from appliance.model.guest import value_types, virtual_ips
from appliance.model.guest.machine_settings import GuestMachine
from appliance.model.guest.networks import Role
from appliance.model.guest.properties import BY_KEY
from appliance.model.guest.reader import PropertyReader
from appliance.model.guest.virtual_ips import SERVERS, GuestVip

KEYS: Final = (
    "cluster_name", "cluster_domain", "masters", "routers", "api_vip", "ingress_vip", "nodes", "vrrp_peers",
    "vrrp_priority",
)  # fmt: skip
_SERVES: Final = ("masters", "routers", "api_vip", "ingress_vip")
_TRAFFIC: Final = {"masters": "the API", "routers": "ingress"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestPage:
    """The page: its password, and the addresses that answer, without any all."""

    password: str
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestCluster:
    """The values of the section. `networks` are those in which clients and servers are.

    Without a name there are no virtual IPs. `interface` carries advertisements, and addresses too, unless
    `clients` is another one. `nodes` are name and address of each load balancer, the preferred one first.
    """

    name: str | None
    domain: str | None
    masters: tuple[str, ...]
    routers: tuple[str, ...]
    virtual_ips: tuple[GuestVip, ...]
    priority: int
    interface: str
    clients: str | None = None
    networks: tuple[str, ...]
    nodes: tuple[tuple[str, str], ...] = ()
    page: GuestPage | None = None


def is_given(given: Mapping[str, str]) -> bool:
    """Return whether any property of the section differs from its default, which a form always sends."""
    return any(given.get(key, BY_KEY[key].default) != BY_KEY[key].default for key in KEYS)


def cluster(
    reader: PropertyReader, *, of: GuestMachine, interfaces: Mapping[Role, str]
) -> GuestCluster | None:
    """Return the usable values of `of`, with its networks' `interfaces`; None if nothing would be served."""
    default = BY_KEY["vrrp_priority"].default
    own = tuple(each.partition("/")[0] for each in of.addresses)
    name = reader.one("cluster_name", dns_name)
    domain = reader.one("cluster_domain", dns_name, cost="it is left out")
    priority = reader.one("vrrp_priority", value_types.priority, cost=f"{default} is used")
    nodes = _nodes(reader)
    peers = tuple(address for name, address in nodes if address not in own) or _peers(reader, own)
    _judge_whole(reader)
    addresses = tuple(virtual_ips.addresses(reader, of=of, peers=peers))
    servers = {key: tuple(_servers(reader, key, addresses, own=own, peers=peers)) for key in SERVERS.values()}
    hindrances = dict(_hindrances(reader, name=name, peers=peers, of=of, interfaces=interfaces))
    wrong_nodes = _hindrances_of_nodes(reader, nodes, of)
    hindrances |= wrong_nodes
    usable = virtual_ips.usable(reader, addresses, servers=servers, hindrances=hindrances)
    if not (usable or any(servers.values())):
        return None
    return GuestCluster(
        name=name,
        domain=domain,
        masters=servers["masters"],
        routers=servers["routers"],
        virtual_ips=usable,
        priority=priority or int(default),
        interface=interfaces.get(Role.VRRP) or interfaces.get(Role.CLIENTS) or "",
        clients=interfaces.get(Role.CLIENTS) if Role.VRRP in interfaces else None,
        networks=tuple(
            dict.fromkeys(str(ip_interface(each).network) for each in of.of(Role.CLIENTS, Role.SERVERS))
        ),
        nodes=() if wrong_nodes else nodes,
        page=_page(reader, of),
    )


def _judge_whole(reader: PropertyReader) -> None:
    if "cluster_name" not in reader.given:
        reader.warn("cluster_name", "is missing")
    if not any(key in reader.given for key in _SERVES):
        labels = ", ".join(BY_KEY[key].label for key in _SERVES)
        reader.warn("masters", f"is missing, and so is all else that could be served: say one of {labels}")
    if "vrrp_peers" in reader.given and "api_vip" not in reader.given and "ingress_vip" not in reader.given:
        reader.warn("vrrp_peers", "mean nothing without a virtual IP: give that too, or leave them out")


def _page(reader: PropertyReader, of: GuestMachine) -> GuestPage | None:
    password = reader.one("page_password", stats_password, cost="there is no page")
    if password is None:
        return None
    managed = of.network(Role.MANAGEMENT)
    reachable = of.of(Role.MANAGEMENT) or (() if managed else of.of(Role.CLIENTS))
    return GuestPage(password=password, addresses=tuple(each.partition("/")[0] for each in reachable))


def _nodes(reader: PropertyReader) -> tuple[tuple[str, str], ...]:
    """Return the name and the address of each load balancer."""
    found: dict[str, str] = {}
    for name, address in reader.many("nodes", value_types.node):
        if name in found or address in found.values():
            reader.warn("nodes", f"has `{name if name in found else address}` twice")
            continue
        found[name] = address
    for key in ("vrrp_peers", "vrrp_priority"):
        if found and reader.given.get(key, BY_KEY[key].default) != BY_KEY[key].default:
            reader.warn(key, "means nothing beside `nodes`, which has all of them in their order")
    return tuple(found.items())


def _hindrances_of_nodes(
    reader: PropertyReader, nodes: tuple[tuple[str, str], ...], of: GuestMachine
) -> dict[str, str]:
    """Return why there can be no virtual IP by the list of load balancers, by its property; empty if none."""
    own = {each.partition("/")[0] for each in of.addresses}
    known = dict(nodes)
    if "nodes" not in reader.given:
        return {}
    if len(nodes) < 2 or any(each.key == "nodes" for each in reader.problems):
        return {"nodes": "two load balancers at least have to be right there: NAME=ADDRESS, NAME=ADDRESS"}
    if of.host_name not in known:
        return {"nodes": f"this machine's host name, `{of.host_name or ''}`, is none of {', '.join(known)}"}
    if own and known[of.host_name] not in own:
        return {"nodes": f"`{known[of.host_name]}`, for `{of.host_name}`, is no address of this machine"}
    return {}


def _peers(reader: PropertyReader, own: tuple[str, ...]) -> tuple[str, ...]:
    """Return the other routers. All machines may have the same list, so our own address is left out."""
    given = reader.many("vrrp_peers", value_types.host_address)
    others = tuple(each for each in given if each not in own)
    if given and not others:
        reader.warn("vrrp_peers", f"has only this machine's own address, `{given[0]}`: add the others'")
    return others


def _servers(
    reader: PropertyReader,
    key: str,
    addresses: Iterable[GuestVip],
    *,
    own: Iterable[str],
    peers: Iterable[str],
) -> Iterator[str]:
    """Yield the servers, without our own addresses; warn of each that is a VRRP peer: a load balancer."""
    ours = dict.fromkeys(own, "this machine's own address")
    ours |= {each.number: f"the {each.label}" for each in addresses}
    usable = False
    for member in reader.many(key, value_types.member):
        if member in ours:
            message = f"`{member}` is {ours[member]}: connections would go round in a loop; it is left out"
            reader.warn(key, message)
            continue
        if member in peers:
            reader.warn(key, f"`{member}` is one of the VRRP peers too: those are load balancers")
        usable = True
        yield member
    if key in reader.given and not usable:
        reader.warn(key, f"none of them can be used: {_TRAFFIC[key]} is not served")


def _hindrances(
    reader: PropertyReader,
    *,
    name: str | None,
    peers: tuple[str, ...],
    of: GuestMachine,
    interfaces: Mapping[Role, str],
) -> Iterator[tuple[str, str]]:
    """Yield the properties because of which there can be no virtual IP at all, each with the reason."""
    if name is None:
        yield "cluster_name", "their router ids come from it"
    if "vrrp_peers" in reader.given and not peers:
        yield "vrrp_peers", "without a peer that can be used this machine would claim them beside the others"
    for key in (Role.CLIENTS.key, Role.VRRP.key):
        if any(each.key == key for each in reader.problems):
            yield key, "the other machines know this one by its right address"
    if of.network(Role.VRRP) is not None and Role.VRRP not in interfaces:
        yield Role.VRRP.key, "the interface of the advertisements is not known"
    if Role.CLIENTS not in interfaces:
        yield "api_vip", "this machine has no network interface to carry them"
