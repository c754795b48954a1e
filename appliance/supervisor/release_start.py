"""A release of the appliance, started by the supervisord of another one as its child.

So it is in the same control group, with the same output, limits and environment, and has the capabilities
that supervisord was given: the service of systemd is the same one before and after.
"""

import os
import pwd
import signal
from collections.abc import Mapping, Sequence
from typing import Final

from appliance.net.privileges import capabilities
from appliance.net.privileges.drop_privileges import USER_VARIABLE
from appliance.net.process.python import NO_USER_SITE
from appliance.supervisor.supervisord import EXIT_SIGNALS
from appliance.wire.lines.succession import REFUSALS

_CANNOT: Final = 127  # the status of a shell that finds no such command


def start(command: Sequence[str], *, environment: Mapping[str, str], refusals: int) -> int:
    """Start `appliance run` by its command, and return its process id; raises OSError.

    It writes why it does not start to the descriptor `refusals`, which is closed when it has become a
    supervisord, or has ended.
    """
    words = [*command, "run", "--take-over"]
    given = {**environment, REFUSALS: str(refusals), NO_USER_SITE: "1"}
    if os.geteuid() == 0:
        given[USER_VARIABLE] = pwd.getpwuid(0).pw_name  # as which we run: it would become another one
    # Between fork and exec a signal would meet supervisord's handlers, and be lost; `run` blocks them itself.
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
