"""The nftables rules that redirect: from the wanted redirects to one transaction.

They are those of OpenShift's monitor (baremetal-runtimecfg, pkg/monitor/nftables_linux.go), with two more
conditions:

    prerouting, priority -100:
    ip daddr VIP tcp dport 6443 fib daddr type local tcp dport set 9445 socket transparent 0 dnat to VIP:9445
    ip daddr VIP tcp dport 9445 ct original proto-dst 6443 tcp dport set 6443
    output, priority -100:
    ip daddr VIP tcp dport 6443 oifname "lo" redirect to :9445

Packets from outside go to the virtual IP itself: Cilium drops them after a `redirect`. `fib` skips packets
that this node, as a router of its pods, only forwards to the node that holds the virtual IP: that node knows
better whether its own frontend serves. `socket` asks the kernel for a listener at the packet's present
address, so the packet gets our port first. Without a listener, the second rule restores the old port, and the
API server takes the connection: however fast our processes die, no client is refused. In the output hook a
packet carries the socket of the client that sends it, so this condition is not possible there.

A NAT chain sees only the first packet of a connection, and connections keep its decision as long as the
kernel tracks them. It does so only while some rule requires it, and on a machine without other NAT these are
the only ones. So a second table, which outlives this process, holds a rule that only requires tracking. The
comments of its other rules show the next run which redirects were on.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from appliance.core.redirect.switch import RedirectSwitch
from appliance.model.snapshot.frontends import Bind, is_every_address, target
from appliance.wire.nftables.nftables_answer import NftablesObject
from appliance.wire.nftables.nftables_commands import Family

TABLE: Final = "lb_redirect"
"""The table of the rules, one of this name in each family."""

FLOWS_TABLE: Final = "lb_redirect_flows"
"""The table that keeps the kernel tracking redirected connections once TABLE is gone."""

PREROUTING: Final = "prerouting"
"""The chain of TABLE for connections from outside, and the only one of FLOWS_TABLE."""

OUTPUT: Final = "output"
"""The chain of TABLE for connections of the node's own programs."""

MONITORS_CHAIN: Final = ("ocp_nat", "ocp_prerouting")
"""The table of OpenShift's monitor, and the first of its two chains."""

_MONITOR_COMMENT: Final = "OCP_API_LB_REDIRECT"
_DSTNAT: Final = -100  # NF_IP_PRI_NAT_DST of linux/netfilter_ipv4.h
_VERSIONS: Final = {Family.IPV4: 4, Family.IPV6: 6}
_ON: Final = "on "
_NAT_CHAIN: Final = f"{{ type nat hook %s priority {_DSTNAT}; policy accept; }}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirection:
    """One address whose connections are redirected; `port_only`: the target is any address of ours."""

    name: str
    family: Family
    source: Bind
    target: Bind
    port_only: bool


def redirections(switch: RedirectSwitch) -> Iterator[Redirection]:
    """Yield the redirections of a frontend, address by address."""
    for source in switch.redirect.sources:
        family = Family.IPV6 if ":" in source.host else Family.IPV4
        version = _VERSIONS[family]
        bind = target(switch.frontend.binds, version)
        if bind is None:  # the rules refuse it; a file that another version accepted may have it
            continue
        every = is_every_address(bind, version)
        place = Bind(host=source.host, port=bind.port) if every else bind
        yield Redirection(
            name=switch.name, family=family, source=source, target=place, port_only=every
        )  # fmt: skip


def script(families: Iterable[Family], wanted: Iterable[Redirection], *, guarded: bool) -> str:
    """Return the script (nft(8)) from any state to the wanted one in these families; TABLE must exist.

    Without `guarded` the condition on a listener is omitted, for kernels that do not support it.
    """
    all_wanted = tuple(wanted)
    lines: list[str] = []
    for family in families:
        ours = [each for each in all_wanted if each.family is family]
        lines += _flows(family, ours)
        for chain in (PREROUTING, OUTPUT):
            lines += _empty_chain(family, TABLE, chain)
        for each in ours:
            lines += _from_outside(each) if guarded else _from_outside_unguarded(each)
            lines.append(_from_here(each))
    return "\n".join(lines)


def _empty_chain(family: Family, table: str, chain: str) -> Iterator[str]:
    """Make a chain that sees the first packet of each connection; an existing one loses its rules."""
    yield f"add chain {family.value} {table} {chain} {_NAT_CHAIN % chain}"
    yield f"flush chain {family.value} {table} {chain}"


def _flows(family: Family, wanted: Iterable[Redirection]) -> Iterator[str]:
    yield f"add table {family.value} {FLOWS_TABLE}"
    yield from _empty_chain(family, FLOWS_TABLE, PREROUTING)
    for comment in ("keeps what was redirected", *dict.fromkeys(f"{_ON}{each.name}" for each in wanted)):
        yield f'add rule {family.value} {FLOWS_TABLE} {PREROUTING} ct state new comment "{comment}"'


def _from_outside(each: Redirection) -> Iterator[str]:
    """Give the packet our port, and our address if that differs, before the lookup of a socket."""
    family, here, there = each.family.value, each.source, each.target
    moves = there.host != here.host
    to_us = f"tcp dport set {there.port}" + f" {family} daddr set {there.host}" * moves
    back = f"{family} daddr set {here.host} " * moves + f"tcp dport set {here.port}"
    yield _rule(each, PREROUTING, here, f"fib daddr type local {to_us} socket transparent 0 dnat to {there}")
    yield _rule(each, PREROUTING, there, f"ct original proto-dst {here.port} {back}")


def _from_outside_unguarded(each: Redirection) -> Iterator[str]:
    yield _rule(each, PREROUTING, each.source, f"dnat to {each.target}")


def _from_here(each: Redirection) -> str:
    """Return the rule for the node's own programs: what they send to an address of the node leaves by lo."""
    to_us = f"redirect to :{each.target.port}" if each.port_only else f"dnat to {each.target}"
    return _rule(each, OUTPUT, each.source, f'oifname "lo" {to_us}')


def _rule(each: Redirection, chain: str, to: Bind, statements: str) -> str:
    family = each.family.value
    addressed = f"{family} daddr {to.host} tcp dport {to.port}"
    return f'add rule {family} {TABLE} {chain} {addressed} {statements} comment "{each.name}"'


def is_monitors(objects: Iterable[NftablesObject]) -> bool:
    """Return whether OpenShift's monitor has rules among these objects of its table."""
    return any(each.kind == "rule" and each.comment == _MONITOR_COMMENT for each in objects)


def names_on(objects: Iterable[NftablesObject]) -> frozenset[str]:
    """Return the names of the redirects that were on, by the objects of FLOWS_TABLE's chain."""
    return frozenset(each.comment.removeprefix(_ON) for each in objects if each.comment.startswith(_ON))
