"""The process BIRD, which announces what is in the kernel's tables: started, changed without a lost session.

BIRD outlives this program, and the next run of it continues with it: a restart here is no event at a router.
If no program tends it, supervisord's watchdog kills it by the heartbeat that we beat for it, so a
machine whose programs are all dead does not attract clients for ever. After a killed
one, BIRD starts with -R: routers that support graceful restart keep the routes until it has sent them again.
It starts when their BFD has noticed the end: what BFD notices later ends the new session, and the routes.
"""

import contextlib
import shutil
import subprocess
import time
from collections.abc import Mapping
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.announce.bird_control import BirdUnavailable, ask
from appliance.model.capability import Capability
from appliance.model.paths import Paths
from appliance.net.files import state_files
from appliance.net.files.atomic_write import write_whole
from appliance.net.supervision.tended_process import PATHS, TendedProcess
from appliance.wire.bird.bird_answers import BfdSession, BgpSession, bfd_sessions, sessions
from appliance.wire.lines.announce_status import ESTABLISHED

HEARTBEAT: Final = "bird"
"""Name of the heartbeat of BIRD."""

_CONFIRMED_WITHIN: Final = 30
"""Seconds in which sessions must be back after a change; else BIRD returns to the configuration before."""

_TESTED: Final = 10.0  # seconds for the test of a configuration

_BFD_MARGIN: Final = 0.5  # seconds in which a router acts on what BFD has noticed


MISSING: Final = "BIRD is not installed: `apt install bird2`, or `engine: table`"


class BirdRefused(Exception):  # noqa: N818  # a state, not a mistake
    """BIRD refuses a configuration, or cannot be started; the text is BIRD's."""


def executable() -> str | None:
    """Return the path of BIRD, None if it is not installed."""
    return shutil.which("bird", path=PATHS)


def objection(text: str, paths: Paths) -> str:
    """Return why BIRD would refuse a configuration, "" if it would not; nothing changes."""
    program = executable()
    if program is None:
        return MISSING
    trial = paths.bird_config.with_suffix(".trial")
    try:
        write_whole(trial, text.encode())
        words = [program, "-p", "-c", str(trial)]
        done = subprocess.run(words, capture_output=True, timeout=_TESTED, check=False, text=True)  # noqa: S603  # our own file
    except (OSError, subprocess.SubprocessError) as error:
        return f"BIRD cannot test the configuration: {error}"
    finally:
        with contextlib.suppress(OSError):
            trial.unlink(missing_ok=True)
    return "" if done.returncode == 0 else f"BIRD refuses the configuration: {done.stderr.strip()}"


class Bird:
    """One BIRD. `trouble` is why it does not run as configured, "" if it does.

    `sessions` are BGP's by the names of their protocols, `bfd` BFD's by neighbour, both as last asked.
    """

    def __init__(self, paths: Paths, log: FilteringBoundLogger) -> None:
        self.log = log
        self.trouble = ""
        self.sessions: Mapping[str, BgpSession] = {}
        self.bfd: Mapping[str, BfdSession] = {}
        self._paths = paths
        self._process = TendedProcess(heartbeat=paths.heartbeat(HEARTBEAT), control=paths.bird_control)
        self._refused = ""  # a configuration that BIRD has refused, or returned from
        self._before = self._why = ""
        self._unconfirmed: frozenset[str] = frozenset()
        self._confirm_until = 0.0
        self._gone_since: float | None = None

    def tend(self, wanted: str, *, detection: float) -> None:
        """Have BIRD run with this configuration, and ask for its sessions; called once a second.

        `detection` is after how many seconds the neighbours' BFD notices that BIRD was killed.
        """
        try:
            self._run(wanted, detection)
            self._ask()
        except (BirdUnavailable, BirdRefused) as error:
            self.trouble = str(error)
            self.sessions, self.bfd = {}, {}
        else:
            self.trouble = self._refused and f"BIRD runs with the configuration before: {self._why}"

    def stop(self) -> None:
        """End BIRD, which withdraws everything."""
        if self._process.end():
            self.sessions, self.bfd, self.trouble = {}, {}, ""

    def close(self) -> None:
        """Leave BIRD as it is, to the next run."""
        self._process.leave()

    def _run(self, wanted: str, detection: float) -> None:
        if not self._process.found():
            self._wait_for_bfd(detection)
            self._start(wanted)
            return
        if wanted not in (self._present(), self._refused):
            self._change(wanted)

    def _present(self) -> str:
        """Return the configuration that BIRD was given last."""
        try:
            return self._paths.bird_config.read_text()
        except (OSError, UnicodeDecodeError):
            return ""

    def _write(self, text: str) -> None:
        try:
            state_files.clear_way(self._paths.bird_config)
            write_whole(self._paths.bird_config, text.encode())
        except OSError as error:
            raise BirdRefused(f"{self._paths.bird_config}: {error.strerror}") from error

    def _wait_for_bfd(self, detection: float) -> None:
        """Raise BirdRefused while neighbours take a killed BIRD for one that lives."""
        now = time.monotonic()
        self._gone_since = self._gone_since or now
        was_killed = self._paths.bird_control.exists()  # else it would have removed its socket
        if detection and was_killed and now < self._gone_since + detection + _BFD_MARGIN:
            raise BirdRefused("BIRD was killed: it starts again when its neighbours' BFD has noticed")

    def _start(self, wanted: str) -> None:
        program = executable()
        if program is None:
            raise BirdRefused(MISSING)
        self._refused = ""
        self._write(wanted)
        control = self._paths.bird_control
        words = [program, "-f", "-c", str(self._paths.bird_config), "-s", str(control)]
        with contextlib.suppress(FileNotFoundError):
            control.unlink()
            words.append("-R")  # an earlier one was killed
        try:
            started = self._process.start(words, {Capability.CAP_NET_BIND_SERVICE, Capability.CAP_NET_ADMIN})
        except OSError as error:
            raise BirdRefused(f"BIRD cannot be started: {error.strerror}") from error
        self._gone_since = None
        self.log.info("bird-started", pid=started)

    def _change(self, wanted: str) -> None:
        """Give BIRD another configuration; it returns to the present one unless that is confirmed."""
        self._before = self._present()
        established = frozenset(name for name, each in self.sessions.items() if each.state == ESTABLISHED)
        self._write(wanted)
        answer = ask(self._paths.bird_control, f"configure timeout {_CONFIRMED_WITHIN}")
        if answer.error:
            self._return(wanted, answer.error)
            return
        kept = {each for each in established if f"protocol bgp {each} " in wanted}
        self._unconfirmed, self._confirm_until = frozenset(kept), time.monotonic() + _CONFIRMED_WITHIN
        self.log.info("bird-configured", sessions=sorted(kept))

    def _return(self, refused: str, why: str) -> None:
        self._refused, self._why = refused, why
        self._write(self._before)
        self.log.error("bird-refused", reason=why)

    def _ask(self) -> None:
        shown = ask(self._paths.bird_control, "show protocols all")
        self.sessions = {each.protocol: each for each in sessions(shown)}
        self.bfd = bfd_sessions(ask(self._paths.bird_control, "show bfd sessions"))
        self._process.beat()
        self._confirm()

    def _confirm(self) -> None:
        if not self._confirm_until:
            return
        back = {name for name, each in self.sessions.items() if each.state == ESTABLISHED}
        if self._unconfirmed <= back:
            self._confirm_until = 0.0
            ask(self._paths.bird_control, "configure confirm")
        elif time.monotonic() >= self._confirm_until:
            self._confirm_until = 0.0
            missing = ", ".join(sorted(self._unconfirmed - back))
            self._return(self._present(), f"sessions did not come back: {missing}")
