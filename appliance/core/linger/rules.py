"""The rules of nftables that lead packets of another node's connections there, in the language of nft(8).

`dup` sends a packet as it is to the MAC of another node, and the original is dropped before it becomes a
connection in the kernel's table: so nothing is remembered of it here, no packet is forwarded in the sense of
the sysctls, and no route is touched. Elements have a time-out, which the program renews: without it the rules
lead nowhere after a while.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from appliance.core.linger.hops import Hops
from appliance.wire.nftables.nftables_transaction import Family

TABLE: Final = "lb_linger"
RENEWED: Final = 2.0
"""Seconds between two renewals."""

_TRIAL: Final = "lb_linger_trial"
_TIMEOUT: Final = 20
_BEFORE: Final = -160
"""After conntrack (-200), before `forward` resets what nobody knows (core.forwarding.ruleset)."""
_TYPES: Final = {Family.IPV4: "ipv4_addr", Family.IPV6: "ipv6_addr"}
_ICMP: Final = {
    Family.IPV4: "icmp type destination-unreachable",
    Family.IPV6: "icmpv6 type { destination-unreachable, packet-too-big }",
}
_FLAGS: Final = "tcp flags & (fin | syn | rst | ack)"
_ENDED: Final = "close: 1, time_wait: 5"
"""Seconds for which the kernel remembers connections that have ended; its own are 10 and 120.

By nf_conntrack_proto_tcp.c, reset ones and those that both have closed. A client may use the port again
at once, for a connection to the node that serves the address then. Once the address is back here, that one
would be taken for the former, as one of ours.
"""


def make(family: Family, entrances: Iterable[tuple[str, str]], *, longest: float, table: str = TABLE) -> str:
    """Return the script that makes the table, its rules those of these interfaces; elements stay.

    `entrances` are those by which packets come in, each with the one by which they are led to other nodes.

    A first packet with FIN or RST makes no connection (nf_conntrack_proto_tcp.c: sIV), so it is `invalid`.
    """
    kind, name = _TYPES[family], f"{family.value} {table}"
    ends = f"{kind} . inet_service . {kind} . inet_service"
    lines = [
        f"add table {name}",
        f"add map {name} direct {{ type {kind} : {kind}; flags timeout; }}",
        f"add map {name} onward {{ type ether_addr . {kind} : {kind}; flags timeout; }}",
        f"add set {name} nodes {{ type ether_addr; flags timeout; }}",
        f"add set {name} served {{ type {kind}; flags timeout; }}",
        f"add set {name} ours {{ type {ends}; flags timeout; timeout {max(round(longest), 1)}s; }}",
        f"add ct timeout {name} ended {{ protocol tcp; l3proto {family.value}; policy = {{ {_ENDED} }}; }}",
        f"add chain {name} strangers",
        f"add chain {name} prerouting {{ type filter hook prerouting priority {_BEFORE}; policy accept; }}",
        f"flush chain {name} prerouting",
        f"flush chain {name} strangers",
        *(f"add rule {name} strangers {each}" for each in _strangers(family, entrances)),
        *(f"add rule {name} prerouting {each}" for each in _prerouting(family, entrances)),
    ]
    return "\n".join(lines)


def trial(family: Family) -> str:
    """Return a script that the kernel takes if it can have such rules, for a trial only."""
    return make(family, [("lo", "lo")], longest=1.0, table=_TRIAL)


def refresh(family: Family, addresses: Iterable[str], hops: Hops, nodes: Iterable[bytes]) -> str:
    """Return the script that puts these elements in the place of those that were there."""
    name = f"{family.value} {TABLE}"
    macs = [each.hex(":") for each in sorted(nodes)]
    return "\n".join(
        (
            *_elements(name, "set", "served", sorted(addresses)),
            *_elements(name, "set", "nodes", macs),
            *_elements(name, "map", "direct", hops.direct),
            *_elements(
                name,
                "map",
                "onward",
                {f"{mac.hex(':')} . {address}": node for (mac, address), node in hops.led.items()},
            ),
        )
    )


def own(family: Family, connections: Iterable[tuple[str, int, str, int]]) -> str:
    """Return the script that names connections which were here before: client, port, our address, port."""
    listed = ", ".join(" . ".join(map(str, each)) for each in connections)
    return f"add element {family.value} {TABLE} ours {{ {listed} }}" if listed else ""


def _elements(name: str, what: str, group: str, elements: Iterable[str] | Mapping[str, str]) -> list[str]:
    targets = elements if isinstance(elements, Mapping) else {}
    listed = ", ".join(
        f"{each} timeout {_TIMEOUT}s" + (f" : {targets[each]}" if each in targets else "")
        for each in elements
    )
    return [
        f"flush {what} {name} {group}",
        *([f"add element {name} {group} {{ {listed} }}"] if listed else []),
    ]


def _prerouting(family: Family, entrances: Iterable[tuple[str, str]]) -> list[str]:
    word, late = family.value, f"ct state invalid {_ICMP[family]}"
    return [
        f"{word} daddr != @served return",
        f'ct state new {_FLAGS} == syn ct timeout set "ended" return',
        f"ct state new {_FLAGS} == ack goto strangers",
        "ct state { new, invalid } tcp flags & (fin | rst) != 0 goto strangers",
        *(
            f'iifname "{into}" {late} dup to {word} daddr map @direct device "{out}"'
            for into, out in entrances
        ),
    ]


def _strangers(family: Family, entrances: Iterable[tuple[str, str]]) -> list[str]:
    word = family.value
    found = [f"{word} saddr . tcp sport . {word} daddr . tcp dport @ours return"]
    for into, out in entrances:
        at, to = f'iifname "{into}"', f'device "{out}" drop'
        found += [
            f"{at} ether saddr @nodes dup to ether saddr . {word} daddr map @onward {to}",
            # Nobody has it: a reset would end a connection whose packet only looked late.
            f"{at} ether saddr @nodes tcp flags & (fin | rst) != 0 drop",
            f"{at} ether saddr != @nodes dup to {word} daddr map @direct {to}",
        ]
    return found
