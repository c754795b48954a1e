"""FRR's configuration for the accepted one, with `engine: table`: for Debian 12's FRR 8.4.

FRR before 10 reads tables of the kernel for IPv4 only, by `ip import-table`, which copies the routes into
the main table (they lead to `lo`, where the addresses are). Newer releases have `redistribute table-direct`,
which misses routes that exist when it is configured before 10.7. That form is there as a comment.

Routers have several paths to an address only if their attributes are equal on all nodes: origin IGP and MED
0, as our BIRD announces them. FRR sends nothing without a policy in both directions (RFC 8212).
"""

from collections.abc import Iterable, Iterator
from typing import Final, Literal

from appliance.model.snapshot.shared_ip import Bgp, Neighbor, SharedIp
from appliance.wire.bgp_examples.placeholder import PASSWORD, origin

_FIRST_DISTANCE: Final = 15
_STEP: Final = 10
_PORT: Final = 179
Family = Literal[4, 6]


def frr_example(bgp: Bgp, shared: tuple[SharedIp, ...], *, router_id: str) -> str:
    """Return the lines for frr.conf, or for `configure terminal` in vtysh; passwords are left out.

    FRR would choose an address of `lo` as its router id: that of all nodes.
    """
    return "\n".join((*_lines(bgp, shared, router_id), ""))


def _lines(bgp: Bgp, shared: tuple[SharedIp, ...], router_id: str) -> Iterator[str]:
    yield "! FRR of this host announces what the appliance writes to the kernel's tables."
    yield "! /etc/frr/daemons needs bgpd=yes, and bfdd=yes for BFD."
    yield "! Nothing is learnt from these neighbours, and nothing else is announced to them."
    yield "! FRR 10.7 and later: leave out `ip import-table`, and write `redistribute table-direct`"
    yield f"! instead of `redistribute table`: `redistribute table-direct {bgp.serve} route-map LB-SERVE`."
    for number, table in enumerate((bgp.serve, bgp.drain)):
        yield f"ip import-table {table} distance {_FIRST_DISTANCE + number}"
    yield from _bfd_profiles(bgp.neighbors)
    for each in shared:
        yield from _prefixes(each)
    yield f"router bgp {bgp.asn}"
    yield f" bgp router-id {router_id}"
    for neighbor in bgp.neighbors:
        yield from _session(neighbor, bgp)
    yield from _family(4, bgp)
    if any(_has(each, 6) for each in shared):
        yield "! IPv6 needs FRR 10.7 or later:"
        yield from (f"!{each}" for each in _family(6, bgp))
    yield "exit"
    for family in (4, 6):
        yield from _route_maps(family, shared)
    for neighbor in bgp.neighbors:
        yield from _out(neighbor, shared)
    yield "route-map LB-IN deny 10"
    yield "exit"


def _bfd_profiles(neighbors: Iterable[Neighbor]) -> Iterator[str]:
    with_bfd = [(each.name, each.bfd) for each in neighbors if each.bfd]
    if not with_bfd:
        return
    yield "bfd"
    for name, bfd in with_bfd:
        milliseconds = round(bfd.interval * 1000)
        yield f" profile {name}"
        yield f"  detect-multiplier {bfd.multiplier}"
        yield f"  receive-interval {milliseconds}"
        yield f"  transmit-interval {milliseconds}"
        yield " exit"
    yield "exit"


def _prefixes(shared: SharedIp) -> Iterator[str]:
    for number, address in enumerate(shared.addresses, start=1):
        word = "ipv6" if ":" in address else "ip"
        yield f"{word} prefix-list LB-{shared.name} seq {number * 5} permit {address}"


def _session(neighbor: Neighbor, bgp: Bgp) -> Iterator[str]:
    host, _, interface = neighbor.address.partition("%")
    start = f" neighbor {host}"
    yield f"{start} remote-as {neighbor.asn}"
    if interface:
        yield f"{start} interface {interface}"
        yield f"{start} capability extended-nexthop"
    if neighbor.port != _PORT:
        yield f"{start} port {neighbor.port}"
    yield f"{start} timers {max(1, neighbor.hold // 3)} {neighbor.hold}"
    yield f"{start} timers connect 5"
    if neighbor.password or neighbor.password_file:
        yield f"! the password{origin(neighbor)}:"
        yield f"{start} password {PASSWORD}"
    if neighbor.ttl_security:
        yield f"{start} ttl-security hops {neighbor.multihop or 1}"
    elif neighbor.multihop and neighbor.asn != bgp.asn:
        yield f"{start} ebgp-multihop {neighbor.multihop}"
    if neighbor.bfd:
        yield f"{start} bfd profile {neighbor.name}"


def _family(family: Family, bgp: Bgp) -> Iterator[str]:
    source = "table" if family == 4 else "table-direct"
    suffix = "" if family == 4 else "6"
    yield f" address-family ipv{family} unicast"
    yield f"  redistribute {source} {bgp.serve} route-map LB-SERVE{suffix}"
    yield f"  redistribute {source} {bgp.drain} route-map LB-DRAIN{suffix}"
    for neighbor in bgp.neighbors:
        host = neighbor.address.partition("%")[0]
        if family not in neighbor.families:
            yield f"  no neighbor {host} activate"
            continue
        yield f"  neighbor {host} activate"
        yield f"  neighbor {host} route-map LB-IN in"
        yield f"  neighbor {host} route-map LB-OUT-{neighbor.name} out"
    yield " exit-address-family"


def _route_maps(family: Family, shared: Iterable[SharedIp]) -> Iterator[str]:
    """Yield what the routes of both tables are announced with."""
    word, suffix = ("ip", "") if family == 4 else ("ipv6", "6")
    mine = [each for each in shared if _has(each, family)]
    for name, added in (("LB-SERVE", ()), ("LB-DRAIN", ("graceful-shutdown",))):
        for number, each in enumerate(mine, start=1):
            yield f"route-map {name}{suffix} permit {number * _STEP}"
            yield f" match {word} address prefix-list LB-{each.name}"
            yield " set origin igp"
            yield " set metric 0"
            if communities := " ".join((*each.communities, *added)):
                yield f" set community {communities} additive"
            yield "exit"


def _out(neighbor: Neighbor, shared: Iterable[SharedIp]) -> Iterator[str]:
    """Yield the policy of what a neighbour gets; another address meets its end, which denies."""
    number = 0
    for each in shared:
        if each.neighbors and neighbor.name not in each.neighbors:
            continue
        for family in neighbor.families:
            if _has(each, family):
                number += _STEP
                yield f"route-map LB-OUT-{neighbor.name} permit {number}"
                yield f" match {'ip' if family == 4 else 'ipv6'} address prefix-list LB-{each.name}"
                yield "exit"
    if not number:
        yield f"route-map LB-OUT-{neighbor.name} deny {_STEP}"
        yield "exit"


def _has(shared: SharedIp, family: Family) -> bool:
    return any((":" in each) == (family == 6) for each in shared.addresses)
