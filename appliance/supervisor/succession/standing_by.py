"""Supervisord's programs while another one takes over: left alone until it must resume.

Its children are reaped and their output is passed on, as always; but none is started, and no client can
request that. The other supervisord decides how they end.
"""

import contextlib
import os
import time
from collections.abc import Mapping
from typing import Final

from structlog.typing import FilteringBoundLogger
from supervisor.states import ProcessStates, SupervisorStates
from supervisor.supervisord import Supervisor

from appliance.model.paths import Paths
from appliance.model.program_names import VRRP
from appliance.model.snapshot.snapshot import SnapshotError
from appliance.net.files import snapshots, state_files
from appliance.net.files.atomic_write import write_whole
from appliance.net.files.state_files import FileUnusable
from appliance.net.process import leftovers
from appliance.net.process.leftovers import Leftovers
from appliance.supervisor.running_programs import Programs
from appliance.supervisor.supervisord_options import Options
from appliance.wire.lines.succession import FORMER_INSTANCE

_TRIES: Final = 6  # starts of a program within its first second, with pauses: about ten seconds
_STRAGGLERS: Final = 5.0  # seconds in which a program that a dead supervisord forked is found
_DEFAULT_DRAIN: Final = 120.0  # seconds, if no configuration sets them


class StandingBy:
    """The programs of a supervisord, left alone and supervised again. `active` while they are left alone."""

    def __init__(
        self,
        paths: Paths,
        log: FilteringBoundLogger,
        *,
        options: Options,
        supervisor: Supervisor,
        programs: Programs,
        left: Leftovers,
    ) -> None:
        self.active = False
        self._paths, self._log = paths, log
        self._options, self._supervisor = options, supervisor
        self._programs, self._leftovers = programs, left
        self._accepted: bytes | None = None
        self._end_others_until = 0.0

    def refusal(self) -> str:
        """Return why the programs cannot be left to another supervisord now, "" if they can."""
        if self._options.mood < SupervisorStates.RUNNING:
            return "it is stopping"
        stops = [
            each.config.name for each in self._programs.all() if each.get_state() == ProcessStates.STOPPING
        ]
        return f"{', '.join(stops)}: is being stopped" if stops else ""

    def programs(self) -> Mapping[str, int]:
        """Return the programs that should run, with the process id of each, 0 while it does not run."""
        return {
            each.config.name: each.pid if each.get_state() == ProcessStates.RUNNING else 0
            for each in self._programs.all()
            if each.config.autostart
        }

    def given_up(self) -> str:
        """Return why a program does not come up after many attempts, "" if there is none.

        The first attempts may meet the lock of a process that is still exiting.
        """
        return "; ".join(
            f"{each.config.name}: {each.spawnerr}" for each in self._programs.all() if each.backoff >= _TRIES
        )

    def drain(self) -> float:
        """Return the seconds that sessions have to end."""
        accepted = None
        with contextlib.suppress(SnapshotError):
            accepted = snapshots.read(self._paths.accepted)
        return accepted.drain if accepted else _DEFAULT_DRAIN

    def stand_by(self) -> None:
        """Start nothing, accept no commands, and remove no name that is the other supervisord's by now."""
        self.active = True
        self._accepted = None
        with contextlib.suppress(FileUnusable):
            self._accepted = state_files.read(self._paths.accepted)
        for group in self._programs.groups():
            group.transition = _nothing
        options = self._options
        options.close_httpservers()
        options.httpservers = []
        options.unlink_pidfile = False

    def resume(self, *, former: str) -> None:
        """Supervise again: end the other one's programs, and start missing ones at the next turn.

        The configuration that it had accepted is not used: its file may contain keys unknown to this release.
        Its workers are replaced, as they may end with it.
        """
        self.active = False
        os.environ[FORMER_INSTANCE] = former
        if self._accepted is not None:
            try:
                write_whole(self._paths.accepted, self._accepted)
            except OSError as error:
                self._log.error("snapshot-not-restored", reason=error.strerror)  # disk full
        self._paths.supervisor_socket.unlink(missing_ok=True)
        self._options.httpservers = self._options.make_http_servers(self._supervisor)
        self._options.write_pidfile()
        for group in self._programs.groups():
            del group.transition
        ours = self._programs.processes()
        if VRRP in ours:
            self._leftovers.kill_vrrps(but=ours[VRRP])
        self._end_others_until = time.monotonic() + _STRAGGLERS
        self.end_others()

    def end_others(self) -> None:
        """End the other one's programs, repeatedly for a while: one just forked may not be visible yet.

        Its vrrp continues until ours has taken over.
        """
        if self._end_others_until and not self.active:
            self._leftovers.end_programs(spared=leftovers.OF_VRRP, but=self._programs.processes().values())
            if time.monotonic() > self._end_others_until:
                self._end_others_until = 0.0


def _nothing() -> None:
    """Replace the transitions of a group."""
