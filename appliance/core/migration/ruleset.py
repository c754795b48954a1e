"""The nftables rules about connections that are, or are about to be, another node's, as nft(8) has them.

Those of `lb_migrate` hold back packets of connections under way. They come before conntrack (-200), which
sees nothing of it, and drop packets in both directions: both ends send them again.

Those of `lb_given` refuse connects whose addresses and ports are those of a connection that this node has
given away. Its server would answer the SYN with an acknowledgement (RFC 9293, 3.10.7.4), and our kernel that
with a RST, which ends the other node's connection. The kernel chooses ports without knowing of it; the
refused program connects from another port.

The tables belong to our process and go with it.
"""

import math
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Final

from appliance.wire.nftables.nftables_commands import Family

TABLE: Final = "lb_migrate"
TABLE_OF_GIVEN: Final = "lb_given"

GIVEN_FOR: Final = 86_400
"""Seconds for which a connection that was given away is assumed to exist, unless it comes back."""

MOST_GIVEN: Final = 1 << 17
"""More of them are not remembered over a restart."""

_REFUSED: Final = {Family.IPV4: "icmp type prot-unreachable", Family.IPV6: "icmpv6 type admin-prohibited"}
"""The connect fails with ENOPROTOOPT or EACCES: a server that refuses it causes neither."""

_PORTS: Final = range(1, 1 << 16)
_FIRST: Final = -310
_TYPES: Final = {Family.IPV4: "ipv4_addr", Family.IPV6: "ipv6_addr"}

Ends = tuple[str, int, str, int]
"""A connection: the peer's address and port, and ours."""


def make(family: Family) -> str:
    """Return the script that replaces the table."""
    word, kind = family.value, _TYPES[family]
    name = f"{word} {TABLE}"
    arriving = f"{word} saddr . tcp sport . {word} daddr . tcp dport @held drop"
    leaving = f"{word} daddr . tcp dport . {word} saddr . tcp sport @held drop"
    return "\n".join(
        (
            f"add table {name} {{ flags owner; }}",
            f"add set {name} held {{ type {kind} . inet_service . {kind} . inet_service; flags timeout; }}",
            f"add chain {name} in {{ type filter hook prerouting priority {_FIRST}; policy accept; }}",
            f"add chain {name} out {{ type filter hook output priority {_FIRST}; policy accept; }}",
            f"flush chain {name} in",
            f"flush chain {name} out",
            f"add rule {name} in {arriving}",
            f"add rule {name} out {leaving}",
        )
    )


def hold(family: Family, connections: Iterable[Ends], *, seconds: int) -> str:
    """Return the script that holds back their packets for so long; no connection twice."""
    listed = ", ".join(f"{each} timeout {seconds}s" for each in _listed(connections))
    return f"add element {family.value} {TABLE} held {{ {listed} }}"


def let_go(family: Family, connections: Iterable[Ends]) -> str:
    """Return the script that lets their packets through; what has expired meanwhile is no error."""
    return _remove(f"{family.value} {TABLE} held", connections)


def make_given(family: Family) -> str:
    """Return the script that replaces the table of connections given away."""
    word, kind = family.value, _TYPES[family]
    name = f"{word} {TABLE_OF_GIVEN}"
    syn = "tcp flags & (syn|ack) == syn"
    ends = f"{word} daddr . tcp dport . {word} saddr . tcp sport"
    return "\n".join(
        (
            f"add table {name} {{ flags owner; }}",
            f"add set {name} given {{ type {kind} . inet_service . {kind} . inet_service; flags timeout; }}",
            f"add chain {name} out {{ type filter hook output priority {_FIRST}; policy accept; }}",
            f"flush chain {name} out",
            f"add rule {name} out {syn} {ends} @given reject with {_REFUSED[family]}",
        )
    )


def give(family: Family, connections: Mapping[Ends, float]) -> str:
    """Return the script that refuses connects like each of these for its seconds; no connection twice."""
    listed = ", ".join(
        f"{each} timeout {math.ceil(seconds)}s"
        for each, seconds in zip(_listed(connections), connections.values(), strict=True)
    )
    return f"add element {family.value} {TABLE_OF_GIVEN} given {{ {listed} }}"


def take_back(family: Family, connections: Iterable[Ends]) -> str:
    """Return the script that removes connections; what has expired meanwhile is no error."""
    return _remove(f"{family.value} {TABLE_OF_GIVEN} given", connections)


def still_given(kept: Iterable[tuple[Ends, float]], *, now: float) -> dict[Ends, float]:
    """Return which connections of a file are given away, and until when (Unix seconds)."""
    found = dict[Ends, float]()
    for ends, until in kept:
        if len(found) < MOST_GIVEN and now < until <= now + GIVEN_FOR and _are_ends(ends):
            found[ends] = until
    return found


def by_family(connections: Iterable[Ends]) -> dict[Family, list[Ends]]:
    """Return the connections of each family, none twice."""
    found: dict[Family, list[Ends]] = {}
    for each in dict.fromkeys(connections):
        found.setdefault(Family.IPV6 if ":" in each[0] else Family.IPV4, []).append(each)
    return found


def _remove(of: str, connections: Iterable[Ends]) -> str:
    """Return the script; each is added before it is deleted, as it may have expired meanwhile."""
    element = f"element {of} {{ {', '.join(_listed(connections))} }}"
    return f"add {element}\ndelete {element}"


def _are_ends(ends: Ends) -> bool:
    try:
        same = ip_address(ends[0]).version == ip_address(ends[2]).version
    except ValueError:
        return False
    return same and "%" not in ends[0] + ends[2] and ends[1] in _PORTS and ends[3] in _PORTS


def _listed(connections: Iterable[Ends]) -> Iterable[str]:
    return (" . ".join(map(str, each)) for each in connections)
