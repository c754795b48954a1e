"""Who may give which command on a control socket: the owner any, members of `group:` those that look."""

import os
from collections.abc import Collection
from typing import Final

from appliance.net.privileges.peer_credentials import SocketOptions, peer_credentials
from appliance.wire.lines.control import Answer, bad

MOST_READERS: Final = 16
"""Connections at a time of those who may only look: the others are kept for the owner."""

READER_BYTES: Final = 4096
"""Bytes of a question of theirs, and of what is read of it at a time: a command without values is short."""


def is_owner(connection: SocketOptions) -> bool:
    """Return whether root or our own user has connected. The kernel says so, whatever the peer sends."""
    return peer_credentials(connection).user in (0, os.geteuid())


def refusal(command: str, for_readers: Collection[str]) -> Answer | None:
    """Return the answer for somebody who may only look, None for a command that only looks."""
    if command in for_readers:
        return None
    return bad(f"not permitted: a member of the group may look only; {command} is for root and the owner")
