"""Another release, started as a child of this supervisord and a part of its service."""

import os
from collections.abc import Callable, Sequence

from appliance.net.privileges import capabilities
from appliance.supervisor import release_start
from appliance.supervisor.service_manager import ServiceManager
from appliance.supervisor.supervisord import Options


class ReleaseStarter:
    """Starts releases with our environment, and hands the service over to one of them."""

    def __init__(self, options: Options, manager: ServiceManager) -> None:
        self._options, self._manager = options, manager

    def start(self, command: Sequence[str], *, refusals: int, ended: Callable[[str], None]) -> int:
        """Start one, and return its process id; `ended` is called with how it ended. Raises OSError."""
        environment = {**os.environ, **self._manager.environment()}
        pid = release_start.start(command, environment=environment, refusals=refusals)
        self._options.others[pid] = ended
        return pid

    def main_process(self, pid: int) -> None:
        """Tell systemd that this process is the service's now."""
        self._manager.main_process(pid)

    def is_privileged(self) -> bool:
        """Return whether what we start has capabilities."""
        return capabilities.any_held()
