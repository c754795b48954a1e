"""All checks of the program: the configured servers, their greenlets, and the board with their health.

All causes of changes are handled here: a new configuration, an operator, a name with a new address, and
workers whose clients cannot connect.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import gevent

from appliance.core.checks.check_history import PoolHistories
from appliance.core.checks.checked_servers import CheckedServer, CheckedServers, Key
from appliance.core.checks.health_record import record
from appliance.core.checks.server_health import HealthEvent, ServerHealth
from appliance.health.reports import HealthReports
from appliance.model.paths import Paths
from appliance.model.server_states import AdminState, ServerState
from appliance.model.server_weights import OperatorWeight
from appliance.model.snapshot.pools import Pool
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.boards.health_publisher import HealthPublisher
from appliance.net.probing.probe import ProbeImpossible
from appliance.net.probing.resolver import Resolver
from appliance.net.probing.server_probe import ServerProbe
from appliance.net.probing.tls_contexts import TlsContexts
from appliance.net.process.collection import no_collection
from appliance.wire.boards.health_board import PoolHealthRecord, ServerHealthRecord
from appliance.wire.lines.connect_failure import ConnectFailure
from appliance.wire.literal import is_literal

_CRASH_PAUSE: Final = 5.0
"""Seconds after a bug in a check until the next one, so that it does not fill the log."""


class CheckLoops:
    """The greenlets by server; each uses the health object that the server had at the greenlet's start.

    If a server's health is replaced, or its next check becomes earlier, its greenlet must be restarted.
    """

    def __init__(
        self,
        servers: CheckedServers,
        *,
        contexts: TlsContexts,
        resolver: Resolver,
        publisher: HealthPublisher,
        reports: HealthReports,
    ) -> None:
        self._servers = servers
        self._contexts = contexts
        self._resolver = resolver
        self._publisher = publisher
        self._reports = reports
        self._loops: dict[Key, gevent.Greenlet] = {}

    def start(self, key: Key) -> None:
        """Start to check a server, unless nothing is ever due for it."""
        checked = self._servers.servers[key]
        if checked.health.deadline is not None:
            self._loops[key] = gevent.spawn(self._follow, checked, checked.health)

    def stop(self, key: Key) -> None:
        """End the checks of a server; a running one is aborted."""
        self._reports.checks_end(key)
        loop = self._loops.pop(key, None)
        if loop is not None:
            loop.kill(block=False)

    def restart(self, key: Key) -> None:
        """End the greenlet of a server and start another, which sleeps until the present deadline."""
        self.stop(key)
        self.start(key)

    def close(self) -> None:
        """End all checks."""
        gevent.killall(list(self._loops.values()))

    def _follow(self, checked: CheckedServer, health: ServerHealth) -> None:
        """Do the work due for one server, as long as there will be any."""
        check = checked.server.check
        probe = (
            ServerProbe(
                checked.server,
                check,
                host=lambda: checked.host,
                contexts=self._contexts,
                resolver=self._resolver,
            )
            if check
            else None
        )
        try:
            self._check_always(checked, health, probe)
        finally:
            if probe is not None:
                probe.close()

    def _check_always(self, checked: CheckedServer, health: ServerHealth, probe: ServerProbe | None) -> None:
        while (deadline := health.deadline) is not None:
            gevent.sleep(max(deadline - time.monotonic(), 0))
            # libev's timers may fire a moment early: treat the deadline as reached.
            now = max(time.monotonic(), deadline)
            if health.tick(now):
                self._publisher.touch(checked.key, changed=True)
            if probe is None or health.next_check is None or health.next_check > now:
                continue
            try:
                self._check(checked, health, probe)
            except Exception:  # noqa: BLE001  # a bug must not leave a server unchecked for ever; it is logged
                self._reports.check_crashed(checked)
                gevent.sleep(_CRASH_PAUSE)

    def _check(self, checked: CheckedServer, health: ServerHealth, probe: ServerProbe) -> None:
        started = time.monotonic()
        health.check_started(started)
        try:
            outcome = probe.run()
        except ProbeImpossible as error:
            health.check_not_made(started=started, now=time.monotonic())
            self._reports.check_impossible(checked, str(error))
            return
        # The server may have moved, or gone from the configuration, while the check ran: then its result is
        # stale.
        if checked.health is not health or self._servers.servers.get(checked.key) is not checked:
            self._reports.checks_end(checked.key)
            return
        event = health.check_ended(outcome, started=started, now=time.monotonic())
        self._publisher.touch(checked.key, changed=event is not None)
        self._reports.check_ended(checked, event, among=self._servers)


class HealthChecks:
    """The checks, from the snapshot applied last.

    `admins` and `weights` are operator settings from before the start, `pools` the pools published by an
    earlier process. `on_fault` is called if a bug has ended publishing.
    """

    def __init__(
        self,
        paths: Paths,
        reports: HealthReports,
        *,
        admins: Mapping[Key, AdminState],
        weights: Mapping[Key, OperatorWeight],
        pools: Iterable[PoolHealthRecord] = (),
        on_fault: Callable[[BaseException | None], None],
    ) -> None:
        self._reports = reports
        self.servers = CheckedServers(admins=admins, weights=weights)
        self._pools = PoolHistories(pools, now=time.monotonic(), wall=time.time())
        self.contexts = TlsContexts(reports.ca_file_trouble)
        self.resolver = Resolver(self._addresses_changed)
        self._publisher = HealthPublisher(
            BoardWriter(paths.health_board),
            self._record,
            self._pool_records,
            on_trouble=lambda reason: reports.board_trouble(str(paths.health_board), reason),
            on_fault=on_fault,
        )
        self._loops = CheckLoops(
            self.servers,
            contexts=self.contexts,
            resolver=self.resolver,
            publisher=self._publisher,
            reports=reports,
        )

    def close(self) -> None:
        """Stop checking; the published state stays readable."""
        self.resolver.close()
        self._loops.close()
        self._publisher.close()

    @no_collection()
    def apply(self, snapshot: Snapshot, records: tuple[ServerHealthRecord, ...] = ()) -> None:
        """Check the servers of a snapshot from now on.

        `records` are what an earlier process published last: at the start, servers continue from them.
        """
        now = time.monotonic()
        changes = self.servers.apply(snapshot, now=now)
        self.servers.restore(records, now=now, wall=time.time())
        self._reports.obey(snapshot.log)
        for key in changes.stopped:
            self._loops.stop(key)
        servers = self.servers.servers
        self._publisher.replace(servers, kept=changes.kept, snapshot=snapshot.number)
        self.resolver.want(_hosts(servers.values()), known=_resolved(servers.values()))
        for key in changes.started:
            self._loops.start(key)
            self._reports.operator_state_kept(servers[key])
        for key, event in changes.events:
            self._reports.event(servers[key], event, among=self.servers)
        # The resolver calls back only when an address changes: a new server of a known name would wait for
        # that.
        for name, addresses in self.resolver.addresses().items():
            self._addresses_changed(name, addresses)

    def set_admin(self, key: Key, admin: AdminState) -> HealthEvent | None:
        """Put a server into an operator's state; return the change, None if nothing changed."""
        event = self.servers.set_admin(*key, admin, now=time.monotonic())
        if event is not None:
            self._loops.restart(key)
            self._publisher.touch(key, changed=True)
            self._reports.event(self.servers.servers[key], event, among=self.servers)
        return event

    def set_weight(self, key: Key, weight: OperatorWeight | None) -> bool:
        """Give a server the operator's weight, None for the configured one; return whether it changed."""
        changed = self.servers.set_weight(key, weight, now=time.monotonic())
        if changed:
            self._publisher.touch(key, changed=True)
            self._reports.weight_given(self.servers.servers[key])
        return changed

    def connect_failed(self, failure: ConnectFailure) -> None:
        """Check a server to which clients could not connect, unless it was just checked."""
        checked = self.servers.servers.get((failure.pool, failure.server))
        if checked is None or not checked.health.connect_failed(now=time.monotonic()):
            return
        # Its greenlet sleeps until a later deadline; while a check runs, none is later than now.
        self._loops.restart(checked.key)
        self._reports.log.debug("server-doubted", pool=failure.pool, server=failure.server)

    def _addresses_changed(self, name: str, addresses: Sequence[str]) -> None:
        """Send checks and sessions of all servers of a name to its new addresses."""
        now = time.monotonic()
        for key, address in self.servers.hosts(name, addresses).items():
            checked = self.servers.servers[key]
            before, health = checked.host, checked.health
            if self.servers.set_host(key, address, now=now):
                self._publisher.touch(key, changed=True)
                self._reports.host_changed(checked, before=before)
            if checked.health is not health:
                self._loops.restart(key)

    def _record(self, key: Key, now: float, wall: float) -> ServerHealthRecord:
        return record(self.servers.servers[key], now=now, wall=wall)

    def _pool_records(self, now: float, wall: float) -> Sequence[PoolHealthRecord]:
        pools = self.servers.snapshot.pools if self.servers.snapshot else ()
        self._pools.look({each.name: self._members(each) for each in pools}, now=now)
        return self._pools.records(now=now, wall=wall)

    def _members(self, pool: Pool) -> Iterator[tuple[ServerState, float]]:
        for server in pool.servers:
            health = self.servers.servers[pool.name, server.name].health
            yield health.state, health.weight


def _hosts(servers: Iterable[CheckedServer]) -> set[str]:
    """Return the hosts of servers, and other hosts of their checks."""
    of_servers, of_checks = set(), set()
    for checked in servers:
        of_servers.add(checked.server.host)
        for check in checked.server.check.whole if checked.server.check else ():
            of_checks.add(check.address or checked.server.host)
    return of_servers | of_checks


def _resolved(servers: Iterable[CheckedServer]) -> dict[str, tuple[str, ...]]:
    """Return the last addresses of servers' names."""
    found: dict[str, tuple[str, ...]] = {}
    for checked in servers:
        if checked.host and not is_literal(checked.server.host):
            found[checked.server.host] = (*found.get(checked.server.host, ()), checked.host)
    return {name: tuple(dict.fromkeys(addresses)) for name, addresses in found.items()}
