"""The kernel's counters in the operator's terms: by frontend and by server of a pool."""

import contextlib
import time
from collections.abc import Mapping
from typing import Final

import msgspec

from appliance.core.forwarding.mark_numbers import MARK, MARK_MASK
from appliance.core.forwarding.plan import KernelFrontend, server_name
from appliance.core.forwarding.ruleset import FRONTEND_COUNTERS
from appliance.forward.forwarder import Forwarder
from appliance.forward.kernel_tables import KernelCount
from appliance.net.netlink.conntrack import Conntrack
from appliance.net.nftables.nftables import NftablesError
from appliance.wire.boards.worker_board import FrontendCounters, ServerCounters
from appliance.wire.lines.forward_status import ForwardedGroup

_PAUSE: Final = 0.25  # seconds for which counters of rules count as new: a reader each second sees rates
_OPEN_PAUSE: Final = 1.0  # the same for open connections, at least
_OPEN_PAUSE_AT_MOST: Final = 10.0
_OPEN_COST: Final = 0.02
"""Maximum share of a processor for counting open connections. The kernel also lists those that ended up to
two minutes ago: tens of thousands take a fifth of a second.
"""
_NOTHING: Final = KernelCount(packets=0, bytes=0)

Counts = tuple[tuple[ForwardedGroup, ...], tuple[ServerCounters, ...]]


class Counting:
    """The figures, read on request and kept for a moment; 0 if they cannot be read."""

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        self._read_again = self._look_again = 0.0
        self._latest: Counts = ((), ())
        self._counted: Mapping[str, KernelCount] = {}
        self._open: Mapping[int, int] = {}

    def counts(self) -> Counts:
        """Return the figures of every frontend, by groups, and of every server."""
        if time.monotonic() >= self._read_again:
            self._read()
            self._latest = self._summed()
            self._read_again = time.monotonic() + _PAUSE
        return self._latest

    def _read(self) -> None:
        self._counted = {}
        with contextlib.suppress(NftablesError):  # `trouble` reports it
            self._counted = self._forwarder.tables.counts()
        if time.monotonic() >= self._look_again:
            self._open, begun = {}, time.thread_time()
            with contextlib.suppress(OSError), contextlib.closing(Conntrack()) as conntrack:
                others = self._forwarder.syncing.elsewhere
                self._open = conntrack.open_by_mark(MARK, MARK_MASK, but=others)
            pause = (time.thread_time() - begun) / _OPEN_COST
            self._look_again = time.monotonic() + min(max(pause, _OPEN_PAUSE), _OPEN_PAUSE_AT_MOST)

    def _summed(self) -> Counts:
        servers: dict[tuple[str, str], ServerCounters] = {}
        groups: dict[str, list[FrontendCounters]] = {}
        for frontend in self._forwarder.frontends:
            mine = list(map(self._server, self._members(frontend)))
            program = f"proxy-{frontend.name.partition('/')[0]}"
            groups.setdefault(program, []).append(self._frontend(frontend, mine))
            for each in mine:
                before = servers.get((each.pool, each.server))
                servers[each.pool, each.server] = _sum(before, each) if before else each
        found = (ForwardedGroup(program=name, frontends=tuple(each)) for name, each in groups.items())
        return tuple(found), tuple(servers.values())

    def _members(self, frontend: KernelFrontend) -> list[tuple[str, str, int]]:
        """Return pool, server and number of each server of a frontend."""
        number, pool = self._forwarder.numbers.number, self._forwarder.pools[frontend.config.pool or ""]
        return [
            (each.pool, each.name, number(server_name(frontend.name, each.pool, each.name)))
            for each in pool.members
            if each.address
        ]

    def _server(self, member: tuple[str, str, int]) -> ServerCounters:
        pool, name, number = member
        total = self._count(f"s{number}_connections").packets
        return ServerCounters(
            pool=pool,
            server=name,
            current=self._open.get(MARK | number, 0),
            total=total,
            failed=0,
            queued=0,
            bytes_in=self._count(f"s{number}_in").bytes,
            bytes_out=self._count(f"s{number}_out").bytes,
            connected=total,
        )

    def _frontend(self, frontend: KernelFrontend, servers: list[ServerCounters]) -> FrontendCounters:
        number = self._forwarder.numbers.number(frontend.name)
        found = {each: self._count(f"f{number}_{each}").packets for each in FRONTEND_COUNTERS}
        return FrontendCounters(
            name=frontend.config.name,
            current=sum(each.current for each in servers),
            total=found["asked"] - found["full"] - found["denied"],
            denied=found["denied"],
            failed=found["unserved"],
            bytes_in=sum(each.bytes_in for each in servers),
            bytes_out=sum(each.bytes_out for each in servers),
        )

    def _count(self, name: str) -> KernelCount:
        return self._counted.get(name, _NOTHING)


def _sum(before: ServerCounters, more: ServerCounters) -> ServerCounters:
    """Return the figures of a server that several frontends use."""
    return msgspec.structs.replace(
        more,
        current=before.current + more.current,
        total=before.total + more.total,
        connected=before.connected + more.connected,
        bytes_in=before.bytes_in + more.bytes_in,
        bytes_out=before.bytes_out + more.bytes_out,
    )
