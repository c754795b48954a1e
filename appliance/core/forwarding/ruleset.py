"""The rules by which the kernel forwards, in nft's own language (nft(8)): one transaction from any state.

    prerouting, nat:  SYN to an address and port of a frontend -> its chain
      its chain:      deny, allow, connection limit; mark := slot (numgen or jhash, mod SLOTS) -> server;
                      address and port := what the servers' map has for the mark
    postrouting, nat: masqueraded connections get an address of this node; with `sync` the virtual IP that the
                      client has connected to, as the next node to have it has to receive the replies

A server that drains has no slots (the first map), but stays in the servers' map (the second). A connection
keeps the decision for its first packet (conntrack), whatever becomes of the rules later.

This is nft's language and not its JSON: libnftables 1.0.6 ends the process on a concatenation of address and
port in JSON. A frontend's chain is written only when it changes: `ct count` keeps the connections that it has
counted, and a new rule begins with none. So the first rule has a fingerprint in its comment.

The rules have no owner: without us they remain, with the last verdicts, until the next process takes them
over. So a flush by another program removes them, and the guard (core.forwarding.guard_table) stands in until
they are back.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from appliance.core.forwarding.forwarded import (
    Exchange,
    ForwardedFrontend,
    ForwardedServer,
    binds_in,
    family_of,
    networks_in,
)
from appliance.core.forwarding.mark_numbers import MARK, MARK_MASK, comment
from appliance.core.forwarding.plan import HASHED, SLOTS
from appliance.model.snapshot.frontends import Masquerade
from appliance.model.snapshot.pools import Balance
from appliance.wire.conntrackd.conntrackd_config import PORT
from appliance.wire.nftables import ended_connections
from appliance.wire.nftables.nftables_commands import Family

TABLE: Final = "lb_forward"
"""The table of the rules, one of this name in each family."""

PREROUTING: Final = "prerouting"
"""A chain that exists as long as the rules do."""

FRONTEND_COUNTERS: Final = ("asked", "denied", "full", "unserved")
"""Counters of a frontend: connections that came, were not allowed, were too many, or had no server."""

SERVER_COUNTERS: Final = ("connections", "in", "out")
"""Counters of a server: connections; packets and bytes from clients and to them."""

_SEED: Final = 0x6C62  # fixed, so that two nodes, and the next process, hash alike
WORDS: Final = {Family.IPV4: "ipv4_addr", Family.IPV6: "ipv6_addr"}
"""Types of addresses."""
_LOOPBACK: Final = {Family.IPV4: "127.0.0.0/8", Family.IPV6: "::1"}
_EVERY: Final = frozenset({"::", "0.0.0.0"})  # noqa: S104  # recognised, not bound
FLAGS: Final = "tcp flags & (fin | syn | rst | ack)"
"""What distinguishes the first packet of a connection from others."""
_HASH_FIELDS: Final = {
    "source": "{family} saddr",
    "source-port": "tcp sport",
    "destination": "{family} daddr",
    "destination-port": "tcp dport",
}


def mark(number: int) -> str:
    """Return the connection mark of a server."""
    return f"{MARK | number:#x}"


def table(
    family: Family,
    frontends: Sequence[ForwardedFrontend],
    *,
    present: Mapping[int, str],
    times: Mapping[str, int],
) -> str:
    """Return all rules but the slots: from any state to these frontends.

    `present` are the frontends in the kernel, with the fingerprints of their chains. `times` are the seconds
    for which connections are remembered that have not ended (wire.nftables.ended_connections).
    """
    lines = [*_objects(family, frontends, times), *_sets(family, frontends), *_base_chains(family)]
    lines += _strangers(family, {each.exchange for each in frontends if each.exchange})
    for each in frontends:
        lines += _frontend_chain(family, each, present.get(each.number))
    return "\n".join(lines) + "\n"


def forget(family: Family, frontends: Iterable[int], counters: Iterable[str]) -> str:
    """Return the commands that remove unused frontends and counters, once no rule leads to them."""
    at = f"{family} {TABLE}"
    lines = []
    for number in frontends:
        lines += [f"flush chain {at} f{number}", f"delete chain {at} f{number}"]
        lines += [f"delete chain {at} f{number}_none"]
        lines += [f"delete map {at} f{number}_slots"]
        lines += [f"delete set {at} f{number}_{each}" for each in ("allow", "deny")]
    lines += [f"delete counter {at} {each}" for each in counters]
    return "".join(f"{line}\n" for line in lines)


def slot_changes(family: Family, number: int, slots: Sequence[int], *, before: Sequence[int] | None) -> str:
    """Return the commands from the slots `before` to these; `before` is None if they are unknown."""
    name = f"{family} {TABLE} f{number}_slots"
    if before is None or len(before) != len(slots):
        return f"flush map {name}\n" + adding(name, _slots(enumerate(slots)))
    moved = [slot for slot, (old, new) in enumerate(zip(before, slots, strict=True)) if old != new]
    if not moved:
        return ""
    gone = ", ".join(map(str, moved))
    added = adding(name, _slots((slot, slots[slot]) for slot in moved))
    return f"delete element {name} {{ {gone} }}\n{added}"


def without_server(family: Family, frontend: ForwardedFrontend) -> str:
    """Return the rule for connections that no server takes: they wait for first checks, or are refused."""
    chain = f"{family} {TABLE} f{frontend.number}_none"
    verdict = "drop" if frontend.waits else "reject with tcp reset"
    return f"flush chain {chain}\nadd rule {chain} counter name f{frontend.number}_unserved {verdict}\n"


def fingerprint(family: Family, frontend: ForwardedFrontend) -> str:
    """Return a fingerprint of a frontend's chain; it begins with the number of its rules."""
    rules = _rules(family, frontend)
    digest = hashlib.blake2b("\n".join(rules).encode(), digest_size=8).hexdigest()
    return f"{len(rules)} {digest}"


def _objects(
    family: Family, frontends: Sequence[ForwardedFrontend], times: Mapping[str, int]
) -> Iterator[str]:
    at, address = f"{family} {TABLE}", WORDS[family]
    yield f"add table {at}"
    for each in frontends:
        for name in FRONTEND_COUNTERS:
            yield f'add counter {at} f{each.number}_{name} {{ comment "{comment(each.name)}"; }}'
        yield f"add map {at} f{each.number}_slots {{ typeof numgen inc mod {SLOTS} : ct mark; }}"
        for kind in ("allow", "deny"):
            yield f"add set {at} f{each.number}_{kind} {{ type {address}; flags interval; auto-merge; }}"
        yield f"add chain {at} f{each.number}"
        yield f"add chain {at} f{each.number}_none"
        for server in each.servers:
            for name in SERVER_COUNTERS:
                yield f'add counter {at} s{server.number}_{name} {{ comment "{comment(server.name)}"; }}'
    yield f"add map {at} servers {{ type mark : {address} . inet_service; }}"
    for name in SERVER_COUNTERS:
        yield f"add map {at} {name} {{ type mark : counter; }}"
    yield f"add map {at} entries {{ type {address} . inet_service : verdict; }}"
    yield f"add map {at} ports {{ type inet_service : verdict; }}"
    for kind in ("bound", "leaving"):
        yield f"add set {at} {kind} {{ type {address} . inet_service; }}"
        yield f"add set {at} {kind}_ports {{ type inet_service; }}"
    yield ended_connections.time_outs(family, TABLE, times)
    yield f"add set {at} masked {{ type mark; }}"
    yield f"add set {at} moving {{ type {address}; }}"
    yield f"add set {at} virtual {{ typeof ct mark . ct original {family} daddr; }}"
    yield f"add set {at} shared {{ typeof ct mark . {family} saddr; flags interval; }}"


def _sets(family: Family, frontends: Sequence[ForwardedFrontend]) -> Iterator[str]:
    at = f"{family} {TABLE}"
    servers = [(each, server) for each in frontends for server in each.servers]
    staying = [each for each in frontends if not each.leaving]
    leaving = [each for each in frontends if each.leaving]
    contents: dict[tuple[str, str], Iterable[str]] = {
        ("map", "servers"): (f"{mark(each.number)} : {each.host} . {each.port}" for _, each in servers),
        ("map", "entries"): (f"{place} : goto f{each.number}" for each, place in places(family, frontends)),
        ("map", "ports"): (f"{port} : goto f{each.number}" for each, port in ports(family, frontends)),
        ("set", "bound"): (place for _, place in places(family, staying)),
        ("set", "bound_ports"): (port for _, port in ports(family, staying)),
        ("set", "leaving"): (place for _, place in places(family, leaving)),
        ("set", "leaving_ports"): (port for _, port in ports(family, leaving)),
        ("set", "masked"): _masked(servers),
        ("set", "shared"): _shared(servers),
        ("set", "moving"): dict.fromkeys(each for frontend in frontends for each in frontend.virtual),
        ("set", "virtual"): _virtual(servers),
    }
    for name in SERVER_COUNTERS:
        contents["map", name] = [f'{mark(each.number)} : "s{each.number}_{name}"' for _, each in servers]
    for each in frontends:
        config, number = each.config, each.number
        contents["set", f"f{number}_allow"] = networks_in(config.allow, family)
        contents["set", f"f{number}_deny"] = networks_in(config.deny, family)
    for (kind, name), elements in contents.items():
        yield f"flush {kind} {at} {name}"
        yield adding(f"{at} {name}", elements).rstrip("\n")


def _masked(servers: Iterable[tuple[ForwardedFrontend, ForwardedServer]]) -> Iterator[str]:
    return (
        mark(each.number) for frontend, each in servers if frontend.config.masquerade is Masquerade.ALWAYS
    )


def _shared(servers: Iterable[tuple[ForwardedFrontend, ForwardedServer]]) -> Iterator[str]:
    return (f"{mark(each.number)} . {network}" for _, each in servers for network in each.networks)


def _virtual(servers: Iterable[tuple[ForwardedFrontend, ForwardedServer]]) -> Iterator[str]:
    return (f"{mark(each.number)} . {address}" for frontend, each in servers for address in frontend.virtual)


def places(family: Family, frontends: Iterable[ForwardedFrontend]) -> Iterator[tuple[ForwardedFrontend, str]]:
    """Yield each address and port that frontends bind."""
    for each in frontends:
        for bind in binds_in(each.config, family):
            if bind.host not in _EVERY:
                yield each, f"{bind.host} . {bind.port}"


def ports(family: Family, frontends: Iterable[ForwardedFrontend]) -> Iterator[tuple[ForwardedFrontend, str]]:
    """Yield each port that frontends bind at every address."""
    for each in frontends:
        ports = dict.fromkeys(bind.port for bind in binds_in(each.config, family) if bind.host in _EVERY)
        yield from ((each, str(port)) for port in ports)


def _base_chains(family: Family) -> Iterator[str]:
    """Yield the chains that lead to those of frontends, and those that translated connections pass."""
    here = f"{family} daddr . tcp dport"
    to_frontends = [f"{here} vmap @entries", "meta l4proto tcp tcp dport vmap @ports"]
    to_us = ["meta l4proto != tcp return", f"{FLAGS} != syn return", "fib daddr type != local return"]
    listened = "socket transparent 0"
    ours = f"ct mark & {MARK_MASK:#x} == {MARK:#x}"
    yield from _chain(
        family, "nat", PREROUTING, -100,
        [*to_us, f"{listened} {here} @leaving return", f"{listened} tcp dport @leaving_ports return",
         *to_frontends],
    )  # fmt: skip
    yield from _chain(
        family, "nat", "output", -100, [*to_us, f"{family} daddr {_LOOPBACK[family]} return", *to_frontends]
    )
    # A connection that was another node's for a while is ahead of what this kernel has seen: its packets
    # wait until that node has reported all (`sync`), instead of being answered by a reset.
    # A packet of a connection that neither conntrack nor a socket knows: it was another node's, or was ended
    # by us. Its sender receives a reset at once, instead of a timeout.
    # A first packet, whoever it is for, sets the time-out: because of these rules the kernel tracks them all.
    yield from _chain(
        family, "filter", PREROUTING, -150,
        [f"ct state invalid meta l4proto tcp {family} daddr @moving drop",
         "ct state != new return", "meta l4proto != tcp return",
         f"{FLAGS} == syn {ended_connections.OF_ANY_PACKET} return",
         "fib daddr type != local return", f"{listened} return",
         f"{here} @bound reject with tcp reset", "tcp dport @bound_ports reject with tcp reset"],
        name="stray",
    )  # fmt: skip
    count = [
        f"{ours} ct direction original counter name ct mark map @in",
        f"{ours} ct direction reply counter name ct mark map @out",
    ]
    yield from _chain(family, "filter", PREROUTING, 0, count, name="count")
    begun = ended_connections.OF_A_FIRST_PACKET
    yield from _chain(family, "filter", "output", 0, [begun, *count], name="count_own")
    virtual = f"ct mark . ct original {family} daddr @virtual snat to ct original {family} daddr"
    masked = ("ct mark @masked", f"ct mark . {family} saddr @shared")
    yield from _chain(
        family, "nat", "postrouting", 100,
        [f"ct mark & {MARK_MASK:#x} != {MARK:#x} return", "fib saddr type local masquerade",
         *(f"{each} {virtual}" for each in masked), *(f"{each} masquerade" for each in masked)],
    )  # fmt: skip
    # The packets that provoke an answer from both ends (net.packets.challenge_acks) are no connection.
    yield from _chain(family, "filter", "output", -300, [f"meta mark {MARK:#x} notrack"], name="untracked")


def _strangers(family: Family, exchanges: Iterable[Exchange]) -> Iterator[str]:
    """Yield the chain that drops reports of connections from others than the nodes' conntrackd."""
    rules = []
    for each in exchanges:
        rules.append(f'udp dport {PORT} iifname != "{each.interface}" drop')
        if peers := ", ".join(peer.partition("%")[0] for peer in each.peers if family_of(peer) is family):
            rules.append(f"udp dport {PORT} {family} saddr != {{ {peers} }} drop")
    yield from _chain(family, "filter", "input", -10, rules, name="strangers")


def _chain(
    family: Family, kind: str, hook: str, priority: int, rules: Iterable[str], *, name: str | None = None
) -> Iterator[str]:
    chain = f"{family} {TABLE} {name or hook}"
    yield f"add chain {chain} {{ type {kind} hook {hook} priority {priority}; policy accept; }}"
    yield f"flush chain {chain}"
    yield from (f"add rule {chain} {rule}" for rule in rules)


def _frontend_chain(family: Family, frontend: ForwardedFrontend, there: str | None) -> Iterator[str]:
    wanted = fingerprint(family, frontend)
    if there == wanted:
        return
    chain = f"{family} {TABLE} f{frontend.number}"
    yield f"flush chain {chain}"
    first, *others = _rules(family, frontend)
    yield f'add rule {chain} {first} comment "{wanted}"'
    yield from (f"add rule {chain} {rule}" for rule in others)


def _rules(family: Family, frontend: ForwardedFrontend) -> list[str]:
    """Return the rules of a frontend's chain."""
    own, config = f"f{frontend.number}", frontend.config
    refused = f"counter name {own}_denied reject with tcp reset"
    rules = [f"counter name {own}_asked"]
    if config.deny:
        rules.append(f"{family} saddr @{own}_deny {refused}")
    if config.allow:
        rules.append(f"{family} saddr != @{own}_allow {refused}")
    # Dropped and not refused: the client's kernel tries again, as with a full queue of a socket.
    rules.append(f"ct count over {config.max_connections} counter name {own}_full drop")
    return [
        *rules,
        f"ct mark set {_choice(family, frontend)} map @{own}_slots",
        "counter name ct mark map @connections",
        f"meta l4proto tcp dnat {family} to ct mark map @servers",
        f"goto {own}_none",
    ]


def _choice(family: Family, frontend: ForwardedFrontend) -> str:
    """Return the expression whose value is a slot."""
    pool = frontend.pool
    if pool.balance not in HASHED:
        return f"numgen {'random' if pool.balance is Balance.RANDOM else 'inc'} mod {SLOTS}"
    parts = pool.hash_on if pool.balance is Balance.HASH else ("source",)
    fields = " . ".join(_HASH_FIELDS[each].format(family=family) for each in parts)
    return f"jhash {fields} mod {SLOTS} seed {_SEED}"


def _slots(slots: Iterable[tuple[int, int]]) -> Iterator[str]:
    return (f"{slot} : {mark(number)}" for slot, number in slots)


def adding(name: str, elements: Iterable[str]) -> str:
    """Return the command that adds elements to a map or set, nothing for none."""
    listed = ", ".join(elements)
    return f"add element {name} {{ {listed} }}\n" if listed else ""
