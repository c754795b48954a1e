"""The nftables rules that forward packets of another node's connections there, in the language of nft(8).

`dup` sends a packet unchanged to the MAC of another node. The original is dropped before it becomes a
connection in the kernel's table, so no state is kept here, no packet is forwarded in the sense of the
sysctls, and no route is touched. Elements have a time-out, which the program renews: without the program, the
rules soon forward nothing.

The guard is a second table with the same elements. It belongs to our process, so that no flush by another
program affects it. It comes after the first table, and does not see what that one has forwarded.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from appliance.core.forwarding.mark_numbers import MARK
from appliance.core.linger import shared_address_rules
from appliance.core.linger import tunnel as vxlan
from appliance.core.linger.hops import Hops
from appliance.core.linger.shared_address_rules import SharedElements
from appliance.core.linger.tunnel import Tunnel
from appliance.wire.nftables import ended_connections
from appliance.wire.nftables.nftables_commands import Family

TABLE: Final = "lb_linger"
GUARD: Final = "lb_linger_guard"
"""The table that forwards packets while another program has flushed the first one."""
RENEWED: Final = 5.0
"""Seconds between two renewals."""
RENEWED_SETTLED: Final = 0.5
"""The same while there are connections of other nodes: without us, `settled` may soon be out of date."""

_TRIAL: Final = "lb_linger_trial"
_TIMEOUT: Final = 24
_SETTLED: Final = 1
_BEFORE: Final = -160
"""After conntrack (-200), before `forward` resets unknown packets (core.forwarding.ruleset)."""
_BEHIND: Final = _BEFORE + 1
_LAST: Final = 150
"""After source translation (100): what the kernel forwards has the address that clients know."""
_TYPES: Final = {Family.IPV4: "ipv4_addr", Family.IPV6: "ipv6_addr"}
_ICMP: Final = {
    Family.IPV4: "icmp type destination-unreachable",
    Family.IPV6: "icmpv6 type { destination-unreachable, packet-too-big }",
}
_FLAGS: Final = "tcp flags & (fin | syn | rst | ack)"
_UNTRACKED: Final = -300
"""Before conntrack (NF_IP_PRI_RAW of linux/netfilter_ipv4.h)."""
_VRRP: Final = 112  # RFC 9568, section 5.1.1.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """The data of the rules: our virtual addresses, where packets go, the MACs of the other nodes.

    An unknown packet of an address that is `settled` may be reset, though another node has forwarded it here.
    `shared` is the same for shared addresses, None without any.
    """

    addresses: tuple[str, ...]
    hops: Hops
    nodes: frozenset[bytes]
    settled: frozenset[str]
    shared: SharedElements | None = None

    @property
    def all_addresses(self) -> tuple[str, ...]:
        """Return the virtual and the shared addresses."""
        return (*self.addresses, *(self.shared.others if self.shared else ()))

    @property
    def pressing(self) -> bool:
        """Whether some elements are soon out of date without us."""
        return bool(self.settled or (self.shared and self.shared.alone))


def make(  # noqa: PLR0913  # each is a fact of its own
    family: Family,
    entrances: Iterable[tuple[str, str]],
    *,
    port: int,
    longest: float,
    times: Mapping[str, int],
    shared: bool = False,
    tunnel: Tunnel | None = None,
    table: str = TABLE,
) -> str:
    """Return the script that makes the table with the rules of these interfaces; elements stay.

    `entrances` are the interfaces where packets arrive, each with the one from which they are forwarded to
    other nodes. `port` is that of the nodes' reports, `times` are the seconds of
    `ended_connections.time_outs`, `shared` is whether there are shared addresses, which may have a `tunnel`.

    A first packet with FIN or RST makes no connection (nf_conntrack_proto_tcp.c: sIV), so it is `invalid`.
    """
    name = f"{family.value} {table}"
    # In a full conntrack table there is no room for packets that keep virtual IPs here.
    ports = (port, *((tunnel.port,) if tunnel else ()))
    untracked = [f"meta l4proto {_VRRP} notrack", *(f"udp dport {each} notrack" for each in ports)]
    provoking = [f"meta mark {MARK:#x} notrack"] if shared else []
    lines = [
        f"add table {name}",
        ended_connections.time_outs(family, table, times),
        *_leading(family, entrances, table=table, longest=longest, shared=shared, tunnel=tunnel),
        *_chain(name, "output", "output", _BEFORE, [ended_connections.OF_A_FIRST_PACKET]),
        *(
            _chain(name, "accepted", "postrouting", _LAST, [vxlan.smaller_segments(family, tunnel)])
            if tunnel
            else ()
        ),
        *_chain(name, "untracked_in", "prerouting", _UNTRACKED, untracked),
        *_chain(name, "untracked_out", "output", _UNTRACKED, [*provoking, *untracked]),
    ]
    return "\n".join(lines)


def guard(
    family: Family,
    entrances: Iterable[tuple[str, str]],
    *,
    longest: float,
    shared: bool = False,
    tunnel: Tunnel | None = None,
) -> str:
    """Return the script that replaces the guard, without elements: the process that makes it owns it."""
    name = f"{family.value} {GUARD}"
    owned = f"add table {name} {{ flags owner; }}"
    lines = _leading(family, entrances, table=GUARD, longest=longest, shared=shared, tunnel=tunnel)
    return "\n".join((owned, f"delete table {name}", owned, *lines))


def trial(family: Family, *, shared: bool = False) -> str:
    """Return a script that the kernel accepts if it supports such rules; only for a trial."""
    return make(family, [("lo", "lo")], port=1, longest=1.0, times={}, shared=shared, table=_TRIAL)


def refresh(family: Family, elements: Elements, *, table: str = TABLE) -> str:
    """Return the script that replaces the present elements by these."""
    name, hops = f"{family.value} {table}", elements.hops
    macs = [each.hex(":") for each in sorted(elements.nodes)]
    return "\n".join(
        (
            *_elements(name, "set", "served", sorted(elements.addresses)),
            *_elements(name, "set", "nodes", macs),
            *_elements(name, "set", "settled", sorted(elements.settled), seconds=_SETTLED),
            *_elements(name, "map", "direct", hops.direct),
            *_elements(
                name,
                "map",
                "onward",
                {f"{mac.hex(':')} . {address}": node for (mac, address), node in hops.led.items()},
            ),
            *(shared_address_rules.refresh(name, elements.shared) if elements.shared is not None else []),
        )
    )


def own(family: Family, connections: Iterable[tuple[str, int, str, int]], *, table: str = TABLE) -> str:
    """Return the script that lists connections which were here before: client, port, our address, port."""
    listed = ", ".join(" . ".join(map(str, each)) for each in connections)
    return f"add element {family.value} {table} ours {{ {listed} }}" if listed else ""


def change_owner(
    family: Family,
    *,
    ours: Iterable[tuple[str, int, str, int]],
    others: Iterable[tuple[str, int, str, int]],
    table: str = TABLE,
) -> str:
    """Return the script that lists connections as in `own`, and unlists `others`, listed or not."""
    left = own(family, others, table=table)
    added = own(family, ours, table=table)
    return "\n".join(filter(None, (added, left, left.replace("add", "delete", 1))))


def _elements(
    name: str,
    what: str,
    group: str,
    elements: Iterable[str] | Mapping[str, str],
    *,
    seconds: int = _TIMEOUT,
) -> list[str]:
    targets = elements if isinstance(elements, Mapping) else {}
    listed = ", ".join(
        f"{each} timeout {seconds}s" + (f" : {targets[each]}" if each in targets else "") for each in elements
    )
    return [
        f"flush {what} {name} {group}",
        *([f"add element {name} {group} {{ {listed} }}"] if listed else []),
    ]


def _leading(
    family: Family,
    entrances: Iterable[tuple[str, str]],
    *,
    table: str,
    longest: float,
    shared: bool,
    tunnel: Tunnel | None,
) -> list[str]:
    """Return the rules of a table that forward packets; time-outs of connections are not the guard's."""
    priority, begun, ended = (
        _BEFORE,
        f"{ended_connections.OF_A_FIRST_PACKET} return",
        ended_connections.OF_ANY_PACKET,
    )
    if table == GUARD:
        priority, begun, ended = _BEHIND, f"ct state new {_FLAGS} == syn return", ""
    kind, name, places = _TYPES[family], f"{family.value} {table}", tuple(entrances)
    ends = f"{kind} . inet_service . {kind} . inet_service"
    return [
        f"add map {name} direct {{ type {kind} : {kind}; flags timeout; }}",
        f"add map {name} onward {{ type ether_addr . {kind} : {kind}; flags timeout; }}",
        f"add set {name} nodes {{ type ether_addr; flags timeout; }}",
        f"add set {name} settled {{ type {kind}; flags timeout; }}",
        f"add set {name} served {{ type {kind}; flags timeout; }}",
        f"add set {name} ours {{ type {ends}; flags timeout; timeout {max(round(longest), 1)}s; }}",
        *(shared_address_rules.rules(family, table, ended=ended, notes=bool(ended)) if shared else []),
        f"add chain {name} strangers",
        f"flush chain {name} strangers",
        *(f"add rule {name} strangers {each}" for each in _strangers(family, places)),
        *_chain(
            name,
            "prerouting",
            "prerouting",
            priority,
            [
                *([vxlan.only_nodes(family, tunnel)] if tunnel else []),
                *_prerouting(family, places, begun, shared=shared),
            ],
        ),
    ]


def _prerouting(
    family: Family, entrances: Iterable[tuple[str, str]], begun: str, *, shared: bool
) -> list[str]:
    word, late = family.value, f"ct state invalid {_ICMP[family]}"
    return [
        # Of any address: because of these rules the kernel tracks them all.
        begun,
        *([shared_address_rules.enter(family)] if shared else []),
        f"{word} daddr != @served return",
        f"ct state new {_FLAGS} == ack goto strangers",
        # A server's answer to a connect from a virtual IP that has moved since (`source: virtual-ip`).
        f"ct state invalid {_FLAGS} == (syn | ack) goto strangers",
        "ct state { new, invalid } tcp flags & (fin | rst) != 0 goto strangers",
        *(
            f'iifname "{into}" {late} dup to {word} daddr map @direct device "{out}"'
            for into, out in entrances
        ),
    ]


def _chain(name: str, chain: str, hook: str, priority: int, rules: Iterable[str]) -> list[str]:
    return [
        f"add chain {name} {chain} {{ type filter hook {hook} priority {priority}; policy accept; }}",
        f"flush chain {name} {chain}",
        *(f"add rule {name} {chain} {each}" for each in rules),
    ]


def _strangers(family: Family, entrances: Iterable[tuple[str, str]]) -> list[str]:
    word = family.value
    found = [f"{word} saddr . tcp sport . {word} daddr . tcp dport @ours return"]
    for into, out in entrances:
        at, to = f'iifname "{into}"', f'device "{out}" drop'
        found += [
            f"{at} ether saddr @nodes dup to ether saddr . {word} daddr map @onward {to}",
            # Another node may have it, as far as this node knows: the sender sends it again.
            f"{at} ether saddr @nodes {word} daddr != @settled drop",
            # No node has it: a reset would end a connection whose packet was only late.
            f"{at} ether saddr @nodes tcp flags & (fin | rst) != 0 drop",
            f"{at} ether saddr != @nodes dup to {word} daddr map @direct {to}",
        ]
    return found
