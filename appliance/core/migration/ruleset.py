"""The nftables rules that hold back packets of connections under way to another node, as nft(8) has them.

They come before conntrack (-200), which sees nothing of it, and drop packets in both directions: both ends
send them again. The table belongs to our process and goes with it.
"""

from collections.abc import Iterable
from typing import Final

from appliance.wire.nftables.nftables_commands import Family

TABLE: Final = "lb_migrate"

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
    listed = ", ".join(_listed(connections))
    element = f"element {family.value} {TABLE} held {{ {listed} }}"
    return f"add {element}\ndelete {element}"


def _listed(connections: Iterable[Ends]) -> Iterable[str]:
    return (" . ".join(map(str, each)) for each in connections)
