"""Who is at the other end of a control socket: the owner of the programs, or somebody who may only look."""

import os
import struct
from collections.abc import Collection
from typing import Final

from appliance.wire.lines.control import Answer, bad

_CREDENTIALS: Final = struct.Struct("=iII")  # struct ucred: pid, uid, gid (unix(7))

SIZE: Final = _CREDENTIALS.size
"""Bytes that the socket option SO_PEERCRED has."""

MOST_READERS: Final = 16
"""Connections at a time of those who may only look: the others leave room for the owner's."""


def is_owner(credentials: bytes) -> bool:
    """Say whether root or our own user has connected, from what SO_PEERCRED says."""
    _, user, _ = _CREDENTIALS.unpack(credentials)
    return user in (0, os.geteuid())


def refusal(command: str, for_readers: Collection[str]) -> Answer | None:
    """Return what somebody who may only look is told, None for a command that only looks."""
    if command in for_readers:
        return None
    return bad(f"not permitted: a member of the group may look only; {command} is for root and the owner")
