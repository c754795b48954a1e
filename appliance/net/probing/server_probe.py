"""Checks of one server at the current address of its name."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.check_results import CheckResult
from appliance.model.snapshot.pools import Check, CheckType, Server
from appliance.net.probing.probe import Probe, ProbeImpossible
from appliance.net.probing.resolver import Resolver
from appliance.net.probing.tls_contexts import TlsContexts
from appliance.net.scripts.account import Account, UnknownUserError, account
from appliance.net.scripts.command import Command

_ENV: Final = "/usr/bin/env"


class CommandProbe:
    """The check of one server by the operator's command, as HAProxy's `external-check` (configuration.txt).

    The command runs as the user of this program, without its capabilities, one at a time for each server. Its
    last two words are the server's address and port; the environment has HAProxy's names for them.
    """

    def __init__(self, server: Server, check: Check, host: str, port: int) -> None:
        self._timeout = check.timeout
        names = {"ADDR": host, "PORT": port, "NAME": server.name, "SSL": 0, "PROTO": "tcp"}
        variables = (f"HAPROXY_SERVER_{name}={value}" for name, value in names.items())
        self._words = (_ENV, *variables, *check.command, host, str(port))
        self._account: Account | None = None
        self._running: Command | None = None

    def run(self, *, until: float) -> CheckOutcome:
        """Run the command and return the outcome; raises ProbeImpossible. `until` is in monotonic seconds."""
        started = time.monotonic()
        if self._running is not None and not self._running.ended.wait(self._timeout):
            raise ProbeImpossible(f"process {self._running.pid} of an earlier check cannot be killed")
        try:
            who = self._account = self._account or account(None, timeout=self._timeout)
            self._running = Command(self._words, who, sweep=True)
        except UnknownUserError as error:
            raise ProbeImpossible(str(error)) from error
        except OSError as error:
            raise ProbeImpossible(f"no process can be started: {error.strerror}") from error
        ending = self._running.wait(round(max(until - time.monotonic(), 0.0), 2))
        late = CheckResult.L7TOUT if ending.late else CheckResult.L7RSP
        return CheckOutcome(
            result=CheckResult.L7OK if ending.passed else late,
            duration=time.monotonic() - started,
            detail="" if ending.passed else ending.detail,
        )

    def close(self) -> None:
        """Kill what runs."""
        if self._running is not None:
            self._running.kill()


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
        """Make one check, with its name's look-up inside its time-out; raises ProbeImpossible."""
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
