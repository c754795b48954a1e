"""Writes the configuration from the cluster properties, as YAML for a person to edit further."""

import json
from collections.abc import Iterable, Iterator
from typing import Final

from appliance.model.config.values.addresses import Endpoint
from appliance.model.guest.cluster import GuestCluster
from appliance.model.guest.virtual_ips import GuestVip

_HEAD: Final = """\
# Made from the properties of this virtual machine by `appliance guest apply`, at its start.
#
# To change something, shut the machine down, change its properties (vApp options) and power it on. To go
# further than they do, edit this file, then `sudo appliance check && sudo appliance reload`: a file that was
# edited is not written again until `sudo appliance guest apply --overwrite` says so. `appliance schema` has
# every key.
"""
_CHECKS: Final = {
    "masters": ["check: { type: https, path: /readyz, interval: 5s, fast_interval: 2s, fall: 2, rise: 3 }",
                "slow_start: 60s"],
    "machine-config": ["check: { type: https, path: /healthz }"],
    "routers-http": ["balance: source", "check: { type: http, port: 1936, path: /healthz/ready }"],
    "routers-https": ["balance: source", "check: { type: http, port: 1936, path: /healthz/ready }"],
}  # fmt: skip

_FIRST, _STEP, _PAGE = 150, 10, 29445


def render(given: GuestCluster) -> str:
    """Return the text of the file."""
    sections = (_cluster, _nodes, _frontends, _pools, _virtual_ips, _page)
    lines = [_HEAD, *(line for each in sections for line in each(given))]
    return "\n".join(lines).rstrip("\n") + "\n"


def _cluster(given: GuestCluster) -> Iterator[str]:
    domain = f", domain: {_text(given.domain)}" if given.domain else ""
    if given.name:
        yield f"cluster: {{ name: {_text(given.name)}{domain} }}"
        yield ""


def _nodes(given: GuestCluster) -> Iterator[str]:
    if given.nodes:
        yield "# The load balancers, the same on all of them; the first one is preferred."
        yield "nodes:"
        for name, address in given.nodes:
            family = "ipv6" if ":" in address else "address"
            yield f"  {_text(name)}: {{ {family}: {_text(address)} }}"
        yield ""


def _frontends(given: GuestCluster) -> Iterator[str]:
    if given.masters:
        yield "api:"
        yield "  frontends:"
        yield '    kube-api: { bind: ["[::]:9445", "[::]:6443"], pool: masters }'
        yield from _machine_config(given)
        yield '    ready: { bind: ["[::]:9444"], respond: /haproxy_ready }'
        yield '    monitor: { bind: ["[::]:9454"], respond: /haproxy_monitor, needs: masters }'
    if given.routers:
        yield "ingress:"
        yield "  frontends:"
        yield '    http: { bind: ["[::]:80"], pool: routers-http }'
        yield '    https: { bind: ["[::]:443"], pool: routers-https }'
    yield ""


def _machine_config(given: GuestCluster) -> Iterator[str]:
    if given.networks:
        yield "    # It serves secrets: add the networks that other nodes start in to the machine's own."
        allowed = _list(given.networks)
        yield f'    machine-config: {{ bind: ["[::]:22623"], pool: machine-config, allow: {allowed} }}'
        return
    yield "    # Left out, because with DHCP it is unknown which networks nodes start in; it serves secrets:"
    yield '    # machine-config: { bind: ["[::]:22623"], pool: machine-config, allow: [10.0.0.0/24] }'


def _pools(given: GuestCluster) -> Iterator[str]:
    pools = [
        *_pool("masters", "master", given.masters, 6443),
        *_pool("machine-config", "master", given.masters if given.networks else (), 22623),
        *_pool("routers-http", "router", given.routers, 80),
        *_pool("routers-https", "router", given.routers, 443),
    ]
    if pools:
        yield from ("pools:", *pools, "")


def _pool(name: str, kind: str, members: Iterable[str], port: int) -> Iterator[str]:
    servers = [
        f"      {kind}-{number}: {{ address: {_text(str(Endpoint(host=host, port=port)))} }}"
        for number, host in enumerate(members)
    ]
    if servers:
        yield f"  {name}:"
        yield from (f"    {line}" for line in _CHECKS[name])
        yield "    servers:"
        yield from servers


def _virtual_ips(given: GuestCluster) -> Iterator[str]:
    if given.virtual_ips:
        yield "virtual_ips:"
    for each in given.virtual_ips:
        yield f"  {each.name}:"
        yield f"    addresses: {_list([_placed(each.address, given)])}"
        yield f"    interface: {_text(given.interface)}"
        yield "    router_id: auto"
        yield f"    priority: {_priority(given)}"
        if each.peers and not given.nodes:
            yield f"    peers: {_list(each.peers)}"
        if each.group:
            yield f"    sync_group: {each.group}"
        yield from _track(each, given.clients)


def _placed(address: str, given: GuestCluster) -> str:
    """Return an address with the clients' interface, where advertisements have another one."""
    return f"{address} dev {given.clients}" if given.clients else address


def _priority(given: GuestCluster) -> str:
    """Return the priority, or that of each load balancer by their order."""
    if not given.nodes:
        return str(given.priority)
    steps = ((name, _FIRST - _STEP * place) for place, (name, _) in enumerate(given.nodes))
    return "{ " + ", ".join(f"{_text(name)}: {max(number, 1)}" for name, number in steps) + " }"


def _page(given: GuestCluster) -> Iterator[str]:
    if given.page is None:
        return
    addresses = given.page.addresses or ("::",)
    first, *others = (str(Endpoint(host=each, port=_PAGE)) for each in addresses)
    local = [f"localhost:{_PAGE}"] if given.page.addresses else []
    yield ""
    yield "stats:"
    yield f"  bind: {_text(first)}"
    if others or local:
        yield f"  also_bind: {_list([*others, *local])}"
    yield f"  auth: {{ user: admin, password: {_text(given.page.password)} }}"


def _track(each: GuestVip, clients: str | None) -> Iterator[str]:
    """Yield the tracks by which another router takes the address while a proxy or its clients are away."""
    tracks = [f"{role}: {{ program: proxy-{role} }}" for role in each.serves]
    tracks += [f"clients: {{ interface: {_text(clients)} }}"] if clients else []
    if tracks:
        yield f"    track: {{ {', '.join(tracks)} }}"


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _text(text: str) -> str:
    """Return a text in quotes, so that YAML reads text: a cluster may be called `on` or `1e3`."""
    return json.dumps(text)
