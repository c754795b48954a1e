"""Checks of one server at the current address of its name."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.check_results import CheckResult
from appliance.model.snapshot.pools import Check, CheckType, Server
from appliance.net.probing.command_probe import CommandProbe
from appliance.net.probing.probe import Probe
from appliance.net.probing.resolver import Resolver
from appliance.net.probing.tls_contexts import TlsContexts


class ServerProbe:
    """The check of one server and its further checks, which are made one after the other.

    `host` returns the server's present address, "" if it has none: of a name that several servers share each
    has another one.
    """

    def __init__(
        self,
        server: Server,
        check: Check,
        *,
        host: Callable[[], str],
        contexts: TlsContexts,
        resolver: Resolver,
    ) -> None:
        placed = partial(_PlacedProbe, server, host=host, contexts=contexts, resolver=resolver)
        self._first = placed(check)
        self._further = [(name, placed(each)) for name, each in check.also]

    def run(self) -> CheckOutcome:
        """Make the checks up to the first that fails, and return the outcome; raises ProbeImpossible."""
        outcome = self._first.run()
        whole = outcome.duration
        for name, each in self._further:
            if not outcome.passed:
                break
            further = each.run()
            whole += further.duration
            if not further.passed:
                outcome = replace(further, detail=f"{name}: {further.detail}")
        return replace(outcome, duration=whole) if self._further else outcome

    def close(self) -> None:
        """Close the connections kept between checks."""
        for each in (self._first, *(each for _, each in self._further)):
            each.close()


class _PlacedProbe:
    """One check, at its own address and port if it has any (HAProxy's `addr`)."""

    def __init__(
        self,
        server: Server,
        check: Check,
        *,
        host: Callable[[], str],
        contexts: TlsContexts,
        resolver: Resolver,
    ) -> None:
        self._server = server
        self._check = check
        self._present = None if check.address else host
        self._name = check.address or server.host
        self._port = check.port or server.port
        self._contexts = contexts
        self._resolver = resolver
        self._host = ""
        self._probe: Probe | CommandProbe | None = None

    def run(self) -> CheckOutcome:
        """Make one check and return its outcome; raises ProbeImpossible.

        The check's time-out includes the wait for a name's first address.
        """
        until = time.monotonic() + self._check.timeout
        host = self._resolver.address(self._name, timeout=self._check.timeout)
        if not host:
            reason = self._resolver.problem(self._name) or "no answer yet"
            return CheckOutcome(result=CheckResult.L4CON, detail=f"name not resolved: {reason}")
        host = self._present() if self._present else host
        if not host:
            reason = f"{self._name} has fewer addresses than servers"
            return CheckOutcome(result=CheckResult.L4CON, detail=f"no address: {reason}")
        outcome = self._at(host).run(until=until)
        if not outcome.passed:
            self._resolver.ask_soon(self._name)
        return outcome

    def close(self) -> None:
        """Close the connection kept between checks, if there is one."""
        if self._probe is not None:
            self._probe.close()

    def _at(self, host: str) -> Probe | CommandProbe:
        if self._probe is None or host != self._host:
            self.close()
            self._host = host
            if self._check.type is CheckType.COMMAND:
                self._probe = CommandProbe(self._server, self._check, host, self._port)
            else:
                self._probe = Probe(self._check, host, self._port, self._contexts)
        return self._probe
