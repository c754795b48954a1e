"""The names by which others find this supervisord, its socket and its lock: restored if they are gone."""

import contextlib

from structlog.typing import FilteringBoundLogger
from supervisor.states import SupervisorStates
from supervisor.supervisord import Supervisor

from appliance.model.paths import Paths
from appliance.net.files.lock_files import KeptLock
from appliance.supervisor.supervisord import Options


class KeptNames:
    """The socket and the lock in the runtime directory, which a clean-up may remove."""

    def __init__(
        self,
        paths: Paths,
        log: FilteringBoundLogger,
        *,
        options: Options,
        supervisor: Supervisor,
        lock: KeptLock,
    ) -> None:
        self._paths, self._log = paths, log
        self._options, self._supervisor = options, supervisor
        self._lock, self._locked = lock, True

    def keep(self) -> None:
        """Restore what is gone; called at each turn of the loop."""
        self._listen_again()
        self._keep_lock()

    def _listen_again(self) -> None:
        """Listen again if our socket was removed: a client that restarts a program must find us."""
        if self._options.mood >= SupervisorStates.RUNNING and not self._paths.supervisor_socket.exists():
            with contextlib.suppress(OSError):  # the directory cannot be created yet
                self._log.warning("socket-gone", path=str(self._paths.supervisor_socket))
                self._paths.runtime.mkdir(mode=0o700, exist_ok=True)
                self._options.close_httpservers()
                self._options.httpservers = self._options.make_http_servers(self._supervisor)

    def _keep_lock(self) -> None:
        """Lock the directory again if the lock was removed: otherwise a second `run` would start."""
        locked = self._lock.keep()
        if self._locked and not locked:
            self._log.error("runtime-directory-taken", path=str(self._paths.runtime))
        self._locked = locked
