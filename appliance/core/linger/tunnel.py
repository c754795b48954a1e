"""The rules about the VXLAN through which strays of shared addresses get to nodes behind routers.

A packet from outside that claims to come from a node is led nowhere further, and gets to its owner: so only
packets of the configured nodes may come in. What clients send must fit into the VXLAN, for which the nodes
ask clients to send smaller segments (the MSS of their SYN-ACK, RFC 9293 section 3.7.1). The kernel answers
packets that are larger nevertheless with an ICMP error, as every router does (RFC 1191, RFC 8201).
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from appliance.wire.nftables.nftables_commands import Family

_HEADERS: Final = {Family.IPV4: 40, Family.IPV6: 60}  # of IP and TCP, without options


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunnel:
    """The UDP `port` of the VXLAN, the nodes that use it by their addresses outside, its packets' size."""

    port: int
    nodes: Collection[str]
    mtu: int


def only_nodes(family: Family, tunnel: Tunnel) -> str:
    """Return the rule that drops the packets of all others."""
    listed = ", ".join(sorted(tunnel.nodes))
    return f"udp dport {tunnel.port} {family.value} saddr != {{ {listed} }} drop"


def smaller_segments(family: Family, tunnel: Tunnel) -> str:
    """Return the rule that lowers the MSS of SYN-ACKs of shared addresses; the kernel never raises one."""
    size = tunnel.mtu - _HEADERS[family]
    accepted = "tcp flags & (syn | ack) == (syn | ack)"
    return f"{family.value} saddr @shared {accepted} tcp option maxseg size set {size}"
