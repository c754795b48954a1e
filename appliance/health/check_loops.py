"""One greenlet per server with checks: it sleeps, makes the check, and sleeps again."""

import time
from typing import Final

import gevent

from appliance.core.checks.checked_servers import CheckedServer, CheckedServers, Key
from appliance.core.checks.server_health import ServerHealth
from appliance.health.reports import HealthReports
from appliance.net.boards.health_publisher import HealthPublisher
from appliance.net.probing.probe import ProbeImpossible
from appliance.net.probing.resolver import Resolver
from appliance.net.probing.server_probe import ServerProbe
from appliance.net.probing.tls_contexts import TlsContexts

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
