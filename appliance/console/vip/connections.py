"""Whether handing virtual IPs over would end connections to this node."""

import contextlib
import time
from typing import Final

from appliance.model.paths import Paths
from appliance.model.program_names import LINGER
from appliance.model.snapshot.snapshot import Snapshot, SnapshotError
from appliance.net.control.control_client import status_of
from appliance.net.files import snapshots
from appliance.wire.lines.linger_status import LingerStatus

_TIMEOUT: Final = 10.0
_PATIENCE: Final = 2.0
"""Seconds in which nodes that have just been reloaded exchange reports again."""

_LOOK_AGAIN: Final = 0.2


def lingering(paths: Paths) -> LingerStatus | None:
    """Return the answer of `linger`; None if it is not configured, or does not answer."""
    return _asked(paths) if _configured(paths) else None


def unkept(paths: Paths) -> str:
    """Return why connections of virtual IPs would end if this node left them, "" if none would."""
    if _configured(paths) is None:
        return "`linger` is not configured"
    return objection(paths)


def objection(paths: Paths, name: str | None = None) -> str:
    """Return why a move of a virtual router would end connections that `linger` should keep, else "".

    It moves with its sync group; None means all.
    """
    snapshot = _configured(paths)
    if snapshot is None:
        return ""
    routers = snapshot.virtual_routers
    groups = {each.sync_group for each in routers if each.name == name and each.sync_group}
    moving = {each.name for each in routers if name in (None, each.name) or each.sync_group in groups}
    until = time.monotonic() + _PATIENCE
    while True:
        status = _asked(paths)
        why = f"the program {LINGER} does not answer" if status is None else status.objection(moving)
        if not why or time.monotonic() >= until:
            return why
        time.sleep(_LOOK_AGAIN)


def _configured(paths: Paths) -> Snapshot | None:
    with contextlib.suppress(SnapshotError):
        accepted = snapshots.for_readers(paths)
        return accepted if accepted and accepted.linger else None
    return None


def _asked(paths: Paths) -> LingerStatus | None:
    return status_of(paths.control(LINGER), LingerStatus, timeout=_TIMEOUT)
