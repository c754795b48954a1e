"""Starts another release, as a child of this supervisord and a part of its service."""

import os
import pwd
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from appliance.net.privileges import capabilities
from appliance.net.privileges.drop_privileges import USER_VARIABLE
from appliance.net.process.python import NO_USER_SITE
from appliance.supervisor.service_manager import ServiceManager
from appliance.supervisor.supervisord_options import EXIT_SIGNALS, Options
from appliance.wire.lines.succession import REFUSALS

_CANNOT: Final = 127  # a shell's exit status for a command that does not exist


def start(command: Sequence[str], *, environment: Mapping[str, str], refusals: int) -> int:
    """Start `appliance run` by its command, and return its process id; raises OSError.

    If it does not start it writes the reason to the descriptor `refusals`, which is closed when it has become
    a supervisord, or has exited.
    """
    words = [*command, "run", "--take-over"]
    given = {**environment, REFUSALS: str(refusals), NO_USER_SITE: "1"}
    if os.geteuid() == 0:
        given[USER_VARIABLE] = pwd.getpwuid(0).pw_name  # as which we run: it would become another one
    # Between fork and exec a signal would reach supervisord's handlers, and be lost; `run` blocks them
    # itself.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, EXIT_SIGNALS)
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return child
    try:
        os.setpgid(0, 0)
        os.set_inheritable(refusals, True)  # noqa: FBT003  # its only parameter
        for number in EXIT_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        capabilities.grant(capabilities.EVERYTHING | capabilities.OTHER_USERS)
        os.execve(words[0], words, given)  # noqa: S606  # no shell is the point
    except OSError as error:
        os.write(refusals, f"{words[0]}: {error.strerror}".encode())
    finally:
        os._exit(_CANNOT)


class ReleaseStarter:
    """Starts releases with our environment, and hands the service over to one of them."""

    def __init__(self, options: Options, manager: ServiceManager) -> None:
        self._options, self._manager = options, manager

    def start(self, command: Sequence[str], *, refusals: int, ended: Callable[[str], None]) -> int:
        """Start one, and return its process id; `ended` is called with how it exited. Raises OSError."""
        environment = {**os.environ, **self._manager.environment()}
        pid = start(command, environment=environment, refusals=refusals)
        self._options.others[pid] = ended
        return pid

    def main_process(self, pid: int) -> None:
        """Notify systemd that this process is now the main one of the service."""
        self._manager.main_process(pid)

    def is_privileged(self) -> bool:
        """Return whether the releases that we start have capabilities."""
        return capabilities.any_held()
