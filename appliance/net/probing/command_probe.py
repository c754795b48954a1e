"""The check of a server by the operator's command, as HAProxy's `external-check` (configuration.txt).

The command runs as the user of this program, without its capabilities, one at a time for each server. Its
last two words are the server's address and port; the environment has HAProxy's names for them.
"""

import time
from typing import Final

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.check_results import CheckResult
from appliance.model.snapshot.pools import Check, Server
from appliance.net.probing.probe import ProbeImpossible
from appliance.net.scripts.account import Account, UnknownUserError, account
from appliance.net.scripts.command import Command

_ENV: Final = "/usr/bin/env"


class CommandProbe:
    """The check of one server at one literal address; may run repeatedly, but not concurrently."""

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
