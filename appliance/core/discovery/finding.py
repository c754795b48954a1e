"""From objects of the cluster to servers of a source, API servers, and the end of a bootstrap."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_address, ip_interface
from typing import Final, Literal

from appliance.model.snapshot.discovery import ApiAddress
from appliance.model.snapshot.found_servers import FoundServer
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.kubernetes.objects import (
    ConfigMap,
    Endpoint,
    EndpointSlice,
    HostNetwork,
    IngressController,
    Node,
)

_INTERNAL: Final = "InternalIP"

Address = IPv4Address | IPv6Address

_COMPLETE: Final = "complete"
_PROXY: Final = "PROXY"
_HOST_NETWORK: Final = "HostNetwork"
_API_PORT: Final = 6443


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressChoice:
    """What decides: the family, None for each Node's first, and the virtual IPs with their networks."""

    family: Literal[4, 6] | None
    virtual: tuple[IPv4Interface | IPv6Interface, ...]

    def choose(self, addresses: Sequence[tuple[str, str]]) -> str | None:
        """Return the address of a Node with these (type, address); None if it has none to use.

        An InternalIP, as OpenShift's own load balancer has it (runtimecfg): of the wanted family the last one
        in the network of a virtual IP, otherwise the first. A Node with only the other family is used by
        that. A virtual IP is none of a Node's addresses, though its holder may show it.
        """
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


def nodes(found: Iterable[Node], choice: AddressChoice) -> tuple[FoundServer, ...]:
    """Return the servers of Nodes, sorted by name; a Node without an address is left out."""
    return tuple(
        FoundServer(name=node.metadata.name, host=host)
        for node in sorted(found, key=lambda each: each.metadata.name)
        if (host := choice.choose(_addresses(node)))
    )


def routers(
    slices: Iterable[EndpointSlice], controllers: Iterable[IngressController], choice: AddressChoice
) -> tuple[FoundServer, ...]:
    """Return the servers of routers that are ready, sorted by name.

    Ports are those of the endpoints; the IngressController's ports of its Nodes win.
    """
    said = _host_network(controllers)
    places: dict[str, dict[str, FoundServer]] = {}
    for each in slices:
        ports = {port.name: port.port for port in each.ports or () if port.port}
        http = (said and said.http_port) or ports.get("http") or 80
        https = (said and said.https_port) or ports.get("https") or 443
        for name, host in _ready(each):
            places.setdefault(name, {})[host] = FoundServer(name=name, host=host, http=http, https=https)
    return tuple(server for name in sorted(places) if (server := _of_node(places[name], choice)))


def expects_proxy(controllers: Iterable[IngressController]) -> bool | None:
    """Return whether routers expect the PROXY header, None if that is unknown."""
    known = [each for each in controllers if each.status is not None]
    said = _host_network(known)
    return (said is not None and said.protocol == _PROXY) if known else None


def api_servers(slices: Iterable[EndpointSlice]) -> tuple[ApiAddress, ...]:
    """Return the API servers that report themselves as serving."""
    return tuple(
        ApiAddress(host=host, port=next((port.port for port in each.ports or () if port.port), _API_PORT))
        for each in slices
        for _, host in _ready(each)
    )


def is_installed(found: Iterable[ConfigMap]) -> bool:
    """Return whether the cluster's bootstrap is complete (installer, waitForBootstrapConfigMap)."""
    return any((each.data or {}).get("status") == _COMPLETE for each in found)


def _addresses(node: Node) -> list[tuple[str, str]]:
    known = (node.status.addresses if node.status else None) or ()
    return [(each.type, each.address) for each in known]


def _ready(found: EndpointSlice) -> Iterator[tuple[str, str]]:
    """Yield name and address of the endpoints that are ready."""
    for each in found.endpoints or ():
        host = usable_address(each.addresses[0]) if each.addresses else None
        if host and _is_ready(each):
            yield each.node_name or host, host


def _is_ready(endpoint: Endpoint) -> bool:
    """Return whether an endpoint takes connections: null is true (API reference, EndpointConditions)."""
    return endpoint.conditions is None or endpoint.conditions.ready is not False


def _of_node(places: dict[str, FoundServer], choice: AddressChoice) -> FoundServer | None:
    """Return the one server of a Node, which has several addresses if both families are served."""
    host = choice.choose([("InternalIP", each) for each in sorted(places)])
    return places[host] if host else None


def _host_network(controllers: Iterable[IngressController]) -> HostNetwork | None:
    for each in controllers:
        strategy = each.status.endpoint_publishing_strategy if each.status else None
        if strategy is not None and strategy.type == _HOST_NETWORK:
            return strategy.host_network
    return None
