"""The rules for shared addresses, which all nodes serve at a time, in the language of nft(8).

Routers choose the node for each packet, and any change of nodes makes them choose again. A packet of no local
connection is sent to all nodes that may have it, or to the one known to have it, and dropped. What a node got
from another one it never sends on, and never resets; it notes whether it has the connection (`found`) or not
(`denied`; `closing` where that is unknown). They are part of the tables of `core.linger.ruleset`, and read
nothing of its other rules.

`dup` has no device: the kernel's route to the node decides.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from appliance.core.linger.shared_address_nodes import MOST_OTHERS
from appliance.core.linger.strays import MOST_OWNED, OWNED, TOLD, StrayChanges
from appliance.wire.linger_strays import Ends
from appliance.wire.nftables.nftables_commands import Family

RATE: Final = 10_000
"""Packets a second that go to all nodes; the guard forwards as many. Others are dropped, and sent again."""

ERRORS: Final = 1_000
"""ICMP errors a second that go to all nodes."""

NOTED: Final = 2048
"""Connections of other nodes' packets that are noted until they are read, of each kind."""

SETS: Final = ("found", "denied", "closing")
"""Where they are noted: connections of this node, those of no node here, and those that it may have."""

COUNTERS: Final = ("led", "asked", "limited", "nobody")
"""What becomes of strays: they go to the node known to have them, go to all, are too many, are reset."""

ASKED: Final = "asked"
"""The set of connections about which all nodes were asked a moment ago."""

NOTED_PACKETS: Final = "strays_noted"
"""The counter of packets that may have left a note: without more of them there is nothing to read."""

_NOTE: Final = f'counter name "{NOTED_PACKETS}" add'
_TYPES: Final = {Family.IPV4: "ipv4_addr", Family.IPV6: "ipv6_addr"}
_ICMP: Final = {
    Family.IPV4: "icmp type destination-unreachable",
    Family.IPV6: "icmpv6 type { destination-unreachable, packet-too-big }",
}
_FLAGS: Final = "tcp flags & (fin | syn | rst | ack)"
_TIMEOUT: Final = 24
_ALONE: Final = 1
GIVEN: Final = 2
"""Seconds for which a node does not deny what it has given to another one: that one may have denied it just
before, and what all deny is reset (longer than `strays.DENIED`)."""

_NOTED_FOR: Final = 2
_ASKED_FOR: Final = 10  # until a dead node is found, by a node that was held up itself too
_MOST_NOBODYS: Final = 1 << 17  # more than `Strays` adds, ten times a second, before the first ones have gone
_MOST_TOLD: Final = 1 << 18  # the same for what the kernel notes


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedElements:
    """The other nodes of each shared address, and the addresses whose strays belong to none at all.

    `macs` are those of the nodes that may forward packets here.
    """

    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    macs: frozenset[bytes] = frozenset()
    alone: frozenset[str] = frozenset()


def counter(kind: str) -> str:
    """Return the name of a counter in the table."""
    return f"strays_{kind}"


def rules(family: Family, table: str, *, ended: str, notes: bool) -> list[str]:
    """Return the lines that make sets and chains of a table; elements stay.

    First packets of connections do not come here. `ended` is the statement for a packet that will be reset.
    Only one of the tables `notes` the connections of other nodes' packets.
    """
    kind, name = _TYPES[family], f"{family.value} {table}"
    ends = f"{kind} . inet_service . {kind} . inet_service"
    noted = f"type {ends} . ether_addr; flags dynamic,timeout; size {NOTED};"
    chains = {
        "shared": _shared(family),
        "strays": _strays(family, ended, notes=notes),
        "shared_ours": _ours(family, notes=notes),
        "shared_errors": _errors(family),
    }
    return [
        *(f"add counter {name} {each}" for each in (*map(counter, COUNTERS), NOTED_PACKETS)),
        f"add set {name} shared {{ type {kind}; flags timeout; }}",
        f"add set {name} sharing {{ type ether_addr; flags timeout; }}",
        f"add set {name} alone {{ type {kind}; flags timeout; }}",
        *(f"add map {name} {each} {{ type {kind} : {kind}; flags timeout; }}" for each in _places()),
        f"add map {name} owner {{ type {ends} : {kind}; flags timeout; size {2 * MOST_OWNED}; }}",
        f"add set {name} nobody {{ type {ends}; flags dynamic,timeout; size {_MOST_NOBODYS}; }}",
        f"add set {name} told {{ type {ends} . ether_addr; flags timeout; size {_MOST_TOLD}; }}",
        f"add set {name} given {{ type {ends}; flags timeout; timeout {GIVEN}s; }}",
        *(f"add set {name} {each} {{ {noted} timeout {_NOTED_FOR}s; }}" for each in SETS),
        f"add set {name} {ASKED} {{ {noted} timeout {_ASKED_FOR}s; }}",
        *(f"add chain {name} {each}" for each in chains),
        *(f"flush chain {name} {each}" for each in chains),
        *(f"add rule {name} {chain} {each}" for chain, found in chains.items() for each in found),
    ]


def enter(family: Family) -> str:
    """Return the rule of the chain `prerouting` that leads here."""
    return f"{family.value} daddr @shared goto shared"


def refresh(name: str, elements: SharedElements) -> list[str]:
    """Return the lines that replace the present elements by these; `name` is that of family and table."""
    lines = [
        *_set(name, "shared", elements.others, _TIMEOUT),
        *_set(name, "sharing", (each.hex(":") for each in elements.macs), _TIMEOUT),
        *_set(name, "alone", elements.alone, _ALONE),
    ]
    for at, place in enumerate(_places()):
        nodes = {address: found[at] for address, found in elements.others.items() if at < len(found)}
        listed = ", ".join(f"{each} timeout {_TIMEOUT}s : {node}" for each, node in sorted(nodes.items()))
        lines.append(f"flush map {name} {place}")
        lines += [f"add element {name} {place} {{ {listed} }}"] if listed else []
    return lines


def learned(family: Family, changes: StrayChanges, *, table: str) -> str:
    """Return the script that makes changes of owners and of connections without one, "" for none."""
    name = f"{family.value} {table}"
    owned = ", ".join(f"{_text(each)} timeout {OWNED:.0f}s : {node}" for each, node in changes.owned)
    nobodys = ", ".join(f"{_text(each)} timeout {changes.seconds}s" for each in changes.nobodys)
    removed = ", ".join(map(_text, changes.removed))
    return "\n".join(
        (
            *([f"flush map {name} owner"] if changes.flushed else []),
            *([f"delete element {name} owner {{ {removed} }}"] if removed else []),
            *([f"add element {name} owner {{ {owned} }}"] if owned else []),
            *([f"flush set {name} nobody"] if changes.revoked else []),
            *([f"add element {name} nobody {{ {nobodys} }}"] if nobodys else []),
        )
    )


def told(family: Family, found: Iterable[tuple[Ends, bytes]], *, table: str) -> str:
    """Return the script that notes which nodes know of connections here, "" for none."""
    listed = ", ".join(f"{_text(ends)} . {mac.hex(':')} timeout {TOLD}s" for ends, mac in found)
    return f"add element {family.value} {table} told {{ {listed} }}" if listed else ""


def given(family: Family, connections: Iterable[Ends], *, table: str) -> str:
    """Return the script that notes which connections were given to other nodes, "" for none."""
    listed = ", ".join(map(_text, connections))
    return f"add element {family.value} {table} given {{ {listed} }}" if listed else ""


def _places() -> list[str]:
    return [f"other{number}" for number in range(1, MOST_OTHERS + 1)]


def _text(ends: Ends) -> str:
    return " . ".join(map(str, ends))


def _set(name: str, group: str, elements: Iterable[str], seconds: int) -> list[str]:
    listed = ", ".join(f"{each} timeout {seconds}s" for each in sorted(elements))
    return [
        f"flush set {name} {group}",
        *([f"add element {name} {group} {{ {listed} }}"] if listed else []),
    ]


def _key(family: Family) -> str:
    return f"{family.value} saddr . tcp sport . {family.value} daddr . tcp dport"


def _ours(family: Family, *, notes: bool) -> list[str]:
    """Return the rules for packets of our own connections."""
    key = f"{_key(family)} . ether saddr"
    noted = [f"{key} @told return", f"{_NOTE} @found {{ {key} }}"]
    return ["ether saddr != @sharing return", *noted] if notes else []


def _shared(family: Family) -> list[str]:
    return [
        'iifname "lo" return',
        f"ct state invalid {_ICMP[family]} goto shared_errors",
        "meta l4proto != tcp return",
        "ct state { established, related } goto shared_ours",
        f"{_key(family)} @ours goto shared_ours",
        # An `invalid` packet with ACK alone is out of the window of a connection of ours, and stays here.
        f"ct state new {_FLAGS} == ack goto strays",
        # A server's answer to a connect of another node (`source: virtual-ip`).
        f"ct state invalid {_FLAGS} == (syn | ack) goto strays",
        "ct state { new, invalid } tcp flags & (fin | rst) != 0 goto strays",
    ]


def _strays(family: Family, ended: str, *, notes: bool) -> list[str]:
    key, word = _key(family), family.value
    noted = f"{{ {key} . ether saddr }} drop"
    denied = (
        f"{key} @given ether saddr @sharing drop",
        f"ct state new {_FLAGS} == ack ether saddr @sharing {_NOTE} @denied {noted}",
        # It may be out of the window of a connection of ours: whether there is one has to be looked up.
        f"tcp flags & fin != 0 ether saddr @sharing {_NOTE} @closing {noted}",
    )
    reset = (f"{key} @nobody", f"{word} daddr @alone")
    return [
        *(denied if notes else ()),
        "ether saddr @sharing drop",
        *(f"ct state new {which} {ended}" for which in reset if ended),
        f'{key} @nobody delete @nobody {{ {key} }} counter name "{counter("nobody")}" return',
        f'dup to {key} map @owner counter name "{counter("led")}" drop',
        f'{word} daddr @alone counter name "{counter("nobody")}" return',
        f'limit rate over {RATE}/second burst {RATE} packets counter name "{counter("limited")}" drop',
        f'counter name "{counter("asked")}"',
        *([f"add @{ASKED} {{ {key} . ether saddr }}"] if notes else []),
        *(f"dup to {word} daddr map @{each}" for each in _places()),
        "drop",
    ]


def _errors(family: Family) -> list[str]:
    """Return the rules for ICMP errors, which routers send to any node: one of them has the connection."""
    return [
        "ether saddr @sharing return",
        f"limit rate over {ERRORS}/second return",
        *(f"dup to {family.value} daddr map @{each}" for each in _places()),
    ]
