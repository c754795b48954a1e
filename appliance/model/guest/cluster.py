"""The cluster section of the guest properties, as the values that a configuration is made of.

What is wrong costs itself and what depends on it, and nothing else: a server or a peer of several, a
priority, a name. A virtual IP is left out rather than claimed where its connections would end.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_interface
from typing import Final

from appliance.model.config.values.addresses import dns_name
from appliance.model.guest import fields, shared
from appliance.model.guest.machine import GuestMachine
from appliance.model.guest.properties import BY_KEY
from appliance.model.guest.reader import PropertyReader
from appliance.model.guest.shared import SERVERS, Shared

KEYS: Final = (
    "cluster_name", "cluster_domain", "masters", "routers", "api_vip", "ingress_vip", "vrrp_peers",
    "vrrp_priority",
)  # fmt: skip
_SERVES: Final = ("masters", "routers", "api_vip", "ingress_vip")
_TRAFFIC: Final = {"masters": "the API", "routers": "ingress"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestCluster:
    """All that the section says. `networks` are those of the machine's own addresses.

    Without a name there are no virtual IPs.
    """

    name: str | None
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


def cluster(reader: PropertyReader, *, of: GuestMachine, interface: str | None) -> GuestCluster | None:
    """Return what the section says, as far as it can be used; None where that serves nothing.

    It is said of a machine, and `interface` is what carries virtual IPs.
    """
    default = BY_KEY["vrrp_priority"].default
    own = tuple(each.partition("/")[0] for each in of.addresses)
    name = reader.one("cluster_name", dns_name)
    domain = reader.one("cluster_domain", dns_name, cost="it is left out")
    priority = reader.one("vrrp_priority", fields.priority, cost=f"{default} is used")
    peers = _peers(reader, own)
    _judge_whole(reader)
    addresses = tuple(shared.addresses(reader, of=of, peers=peers))
    servers = {key: tuple(_servers(reader, key, addresses, own=own, peers=peers)) for key in SERVERS.values()}
    hindrances = dict(_hindrances(reader, name=name, peers=peers, interface=interface))
    carried = shared.carried(reader, addresses, servers=servers, hindrances=hindrances)
    if not (carried or any(servers.values())):
        return None
    return GuestCluster(
        name=name,
        domain=domain,
        masters=servers["masters"],
        routers=servers["routers"],
        shared=carried,
        priority=priority or int(default),
        interface=interface or "",
        networks=tuple(dict.fromkeys(str(ip_interface(each).network) for each in of.addresses)),
    )


def _judge_whole(reader: PropertyReader) -> None:
    if "cluster_name" not in reader.said:
        reader.warn("cluster_name", "is missing")
    if not any(key in reader.said for key in _SERVES):
        labels = ", ".join(BY_KEY[key].label for key in _SERVES)
        reader.warn("masters", f"is missing, and so is all else that could be served: say one of {labels}")
    if "vrrp_peers" in reader.said and "api_vip" not in reader.said and "ingress_vip" not in reader.said:
        reader.warn("vrrp_peers", "mean nothing without a virtual IP: give that too, or leave them out")


def _peers(reader: PropertyReader, own: tuple[str, ...]) -> tuple[str, ...]:
    """Return the other routers: all machines may be given the same list, with themselves in it."""
    given = reader.many("vrrp_peers", fields.host_address)
    others = tuple(each for each in given if each not in own)
    if given and not others:
        reader.warn("vrrp_peers", f"has only this machine's own address, `{given[0]}`: add the others'")
    return others


def _servers(
    reader: PropertyReader, key: str, addresses: Iterable[Shared], *, own: Iterable[str], peers: Iterable[str]
) -> Iterator[str]:
    """Yield servers that are not ourselves; one that is another load balancer is a slip, most of the time."""
    ours = dict.fromkeys(own, "this machine's own address")
    ours |= {each.number: f"the {each.label}" for each in addresses}
    usable = False
    for member in reader.many(key, fields.member):
        if member in ours:
            message = f"`{member}` is {ours[member]}: connections would go round in a loop; it is left out"
            reader.warn(key, message)
            continue
        if member in peers:
            reader.warn(key, f"`{member}` is one of the VRRP peers too: those are load balancers")
        usable = True
        yield member
    if key in reader.said and not usable:
        reader.warn(key, f"none of them can be used: {_TRAFFIC[key]} is not served")


def _hindrances(
    reader: PropertyReader, *, name: str | None, peers: tuple[str, ...], interface: str | None
) -> Iterator[tuple[str, str]]:
    """Yield the properties for which no virtual IP can be had at all, each with the reason."""
    if name is None:
        yield "cluster_name", "their router ids come from it"
    if "vrrp_peers" in reader.said and not peers:
        yield "vrrp_peers", "without a peer that can be used this machine would claim them beside the others"
    if any(each.key == "address" for each in reader.problems):
        yield "address", "the other machines know this one by its right address"
    if interface is None:
        yield "api_vip", "this machine has no network interface to carry them"
