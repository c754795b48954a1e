"""Whether a program ends alone, or with the whole appliance."""

import contextlib
import os
from pathlib import Path
from typing import Final

import gevent
from gevent import socket

from appliance.model.paths import Paths
from appliance.net.supervision.supervisor_rpc import SupervisorClient, SupervisorUnavailable

_PATIENCE: Final = 20.0
"""Seconds until one of two supervisords must be in charge: one of them may just have died."""

_PAUSE: Final = 0.05

_SUPERVISED: Final = "SUPERVISOR_ENABLED"
"""What supervisord sets in the environment of its programs."""


def everything_ends(paths: Paths, *, without_supervisord: bool = True) -> bool:
    """Return whether supervisord stops everything; `without_supervisord` is the answer if none started us.

    One that did and is gone was killed: the TERM is that of the next one, which may have been killed as well.
    During a take-over there are two. Briefly, neither may answer, which is not the end: the standby one
    listens on its other socket.
    """
    with gevent.Timeout(_PATIENCE, False):  # noqa: FBT003  # its way to say: raise nothing
        while True:
            with contextlib.suppress(SupervisorUnavailable):
                return SupervisorClient(paths.supervisor_socket).shutting_down()
            if not _listens(paths.succession_socket):
                break
            gevent.sleep(_PAUSE)
    return without_supervisord and _SUPERVISED not in os.environ


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
