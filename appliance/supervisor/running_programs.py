"""The programs of one supervisord, as its groups hold them at this moment."""

from collections.abc import Iterable
from typing import Final

from supervisor.process import ProcessGroup, Subprocess
from supervisor.states import ProcessStates
from supervisor.supervisord import Supervisor

from appliance.core.program_table import BY_NAME

OURS: Final = frozenset(BY_NAME)
"""The names of programs that have a heartbeat and whose starts are counted."""

_UNSETTLED: Final = (ProcessStates.STARTING, ProcessStates.BACKOFF, ProcessStates.STOPPING)
_WATCHED: Final = (ProcessStates.STARTING, ProcessStates.RUNNING)


class Programs:
    """The programs of supervisord; it recreates its groups when it begins, so look them up each time."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    def groups(self) -> Iterable[ProcessGroup]:
        """Return supervisord's groups, which hold one program each."""
        groups: Iterable[ProcessGroup] = self._supervisor.process_groups.values()
        return groups

    def all(self) -> list[Subprocess]:
        """Return every program, whether it runs or not."""
        return [each for group in self.groups() for each in group.processes.values()]

    def processes(self) -> dict[str, int]:
        """Return the process id of every program that has a process."""
        return {each.config.name: each.pid for each in self.all() if each.pid}

    def watched(self) -> dict[str, int]:
        """Return the process ids of our programs that run; a stopping one has its own deadline."""
        return {
            each.config.name: each.pid
            for each in self.all()
            if each.config.name in OURS and each.get_state() in _WATCHED and each.pid
        }

    def coming_up(self) -> bool:
        """Return whether a program that should run does not run permanently yet."""
        return any(each.config.autostart and each.get_state() != ProcessStates.RUNNING for each in self.all())

    def unsettled(self) -> bool:
        """Return whether a program is starting or stopping, so that supervisord must check often."""
        return any(
            each.get_state() in _UNSETTLED or (each.config.autostart and not each.laststart)
            for each in self.all()
        )

    def will_start(self, program: str) -> bool:
        """Return whether supervisord starts that program automatically."""
        return any(each.config.name == program and each.config.autostart for each in self.all())
