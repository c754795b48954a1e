"""From a snapshot and verdicts to what the kernel forwards: frontends with their slots, by version of IP."""

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address, ip_interface
from typing import Final

from appliance.core.balancing.algorithms import highest
from appliance.core.balancing.pool_member import PoolMember
from appliance.core.balancing.pool_state import PoolState
from appliance.core.forwarding.forwarded import (
    Exchange,
    ForwardedFrontend,
    ForwardedServer,
    binds_in,
    family_of,
)
from appliance.model.server_states import ServerState
from appliance.model.snapshot.frontends import Bind, Frontend, Masquerade
from appliance.model.snapshot.pools import Balance
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.snapshot.sync import synced_addresses, synced_routers
from appliance.wire.literal import is_literal
from appliance.wire.nftables.nftables_commands import Family

SLOTS: Final = 1021
"""Slots of a frontend, the servers of the numbers that a connection draws or hashes to: a prime, as Maglev's.

It never changes, so a client keeps its slot whichever servers there are. A server has slots in proportion to
its weight, so slow start is a matter of slots too.
"""

HASHED: Final = frozenset({Balance.SOURCE, Balance.HASH})
"""The algorithms in which a connection's addresses determine its slot."""

_EVERY: Final = frozenset({"::", "0.0.0.0"})  # noqa: S104  # recognised, not bound


def slots(members: Sequence[PoolMember], balance: Balance) -> tuple[str, ...]:
    """Return the name of the server of each slot; empty if no member takes connections."""
    if not members:
        return ()
    return _hashed(members) if balance in HASHED else _interleaved(members)


def _hashed(members: Sequence[PoolMember]) -> tuple[str, ...]:
    """Give each slot to the member with the highest score for it: a member that leaves moves only its own."""
    return tuple(highest(members, slot.to_bytes(2, "big")).name for slot in range(SLOTS))


def _interleaved(members: Sequence[PoolMember]) -> tuple[str, ...]:
    """Give the slots in turn, by stride scheduling, so that they are a weighted round robin."""
    turns = [(0.5 / member.weight, position) for position, member in enumerate(members)]
    heapq.heapify(turns)
    found = []
    for _ in range(SLOTS):
        turn, position = turns[0]
        found.append(members[position].name)
        heapq.heapreplace(turns, (turn + 1.0 / members[position].weight, position))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFrontend:
    """A frontend that the kernel forwards, `api/kube-api`; `leaving`: a proxy is about to take it over.

    `virtual` are the virtual IPs that move with its connections, `exchange` is how nodes report them.
    """

    name: str
    config: Frontend
    leaving: bool = False
    virtual: tuple[str, ...] = ()
    exchange: Exchange | None = None


def forwarded(snapshot: Snapshot | None) -> tuple[KernelFrontend, ...]:
    """Return the frontends of a snapshot that the kernel forwards."""
    found = snapshot.forwarded if snapshot else ()
    return tuple(
        KernelFrontend(
            name=f"{group.name}/{each.name}",
            config=each,
            virtual=synced_addresses(snapshot, [each]) if snapshot and each.sync else (),
            exchange=_exchange(snapshot) if snapshot and each.sync else None,
        )
        for group, each in found
    )


def _exchange(snapshot: Snapshot) -> Exchange | None:
    routers = synced_routers(snapshot)
    return Exchange(interface=routers[0].interface, peers=routers[0].peers) if routers else None


def families(snapshot: Snapshot, frontend: Frontend) -> tuple[Family, ...]:
    """Return the versions of IP in which a frontend has addresses, and its pool may have servers."""
    pool = snapshot.pool(frontend.pool or "")
    hosts = [each.host for each in pool.servers] if pool else []
    known = {family_of(each) for each in hosts} if hosts and all(map(is_literal, hosts)) else set(Family)
    return tuple(each for each in Family if each in known and binds_in(frontend, each))


def taken_by_proxies(before: Iterable[KernelFrontend], snapshot: Snapshot) -> tuple[KernelFrontend, ...]:
    """Return the forwarded frontends that move to a proxy in this snapshot, with the binds concerned.

    They are forwarded until the proxy's workers listen. Binds that are simply gone are not included.
    """
    now = forwarded(snapshot)
    names, kept = {each.name for each in now}, {_key(bind) for each in now for bind in each.config.binds}
    proxied = {bind for group in snapshot.proxied for each in group.frontends for bind in each.binds}
    found = []
    for each in before:
        mine = (bind for bind in each.config.binds if _key(bind) not in kept)
        binds = tuple(bind for bind in mine if any(_meets(bind, other) for other in proxied))
        if binds:
            found.append(_leaving(each, binds, names))
    return tuple(found)


def _leaving(frontend: KernelFrontend, binds: tuple[Bind, ...], names: Collection[str]) -> KernelFrontend:
    """Return a frontend that leaves these binds; if its name stays in use, under another name."""
    suffix = "".join(f" leaving {each}" for each in binds) if frontend.name in names else ""
    config = replace(frontend.config, name=frontend.config.name + suffix, binds=binds)
    return replace(frontend, name=frontend.name + suffix, config=config, leaving=True)


def _key(bind: Bind) -> tuple[str, int]:
    """Return the key of a bind in a map of the kernel: all wildcard addresses are one."""
    return ("" if bind.host in _EVERY else bind.host), bind.port


def _meets(one: Bind, other: Bind) -> bool:
    return one.port == other.port and (one.host == other.host or bool(_EVERY & {one.host, other.host}))


def server_name(frontend: str, pool: str, server: str) -> str:
    """Return the unique name of a server in a frontend: one server has a number in each frontend."""
    return f"{frontend} {pool}/{server}"


def plan(
    family: Family,
    frontends: Iterable[KernelFrontend],
    pools: Mapping[str, PoolState],
    *,
    number: Callable[[str], int],
    networks: Iterable[str],
) -> tuple[ForwardedFrontend, ...]:
    """Return what the kernel does in a family. `networks` are this node's, `192.0.2.1/24`."""
    shared = tuple(each for each in networks if family_of(each) is family)
    return tuple(
        _frontend(family, each, pools[each.config.pool or ""], number, shared)
        for each in frontends
        if binds_in(each.config, family)
    )


def _frontend(
    family: Family,
    frontend: KernelFrontend,
    pool: PoolState,
    number: Callable[[str], int],
    networks: tuple[str, ...],
) -> ForwardedFrontend:
    mine = number(frontend.name)
    own = frontend.config.masquerade is Masquerade.AUTO
    members = [each for each in pool.members if each.address and _is_in(family, each.address[0])]
    servers = {
        each.name: ForwardedServer(
            number=number(server_name(frontend.name, each.pool, each.name)),
            name=server_name(frontend.name, each.pool, each.name),
            host=host,
            port=port,
            networks=_containing(host, networks) if own else (),
        )
        for each, (host, port) in ((each, each.address) for each in members if each.address)
    }
    eligible = [each for each in pool.eligible if each.name in servers]
    return ForwardedFrontend(
        number=mine,
        name=frontend.name,
        config=frontend.config,
        pool=pool.config,
        servers=tuple(servers.values()),
        slots=tuple(servers[each].number for each in slots(eligible, pool.config.balance)),
        waits=not eligible and any(each.state is ServerState.CHECKING for each in pool.members),
        leaving=frontend.leaving,
        virtual=tuple(each for each in frontend.virtual if family_of(each) is family),
        exchange=frontend.exchange,
    )


def _is_in(family: Family, host: str) -> bool:
    """Return whether a host is of a family; one with a scope (`fe80::1%eth0`) is of none in rules."""
    return "%" not in host and family_of(host) is family


def _containing(host: str, networks: Iterable[str]) -> tuple[str, ...]:
    """Return the widest network that contains an address: others are within it, and sets have no overlaps."""
    address = ip_address(host)
    found = [each for each in (ip_interface(every).network for every in networks) if address in each]
    return (str(min(found, key=lambda each: each.prefixlen)),) if found else ()
