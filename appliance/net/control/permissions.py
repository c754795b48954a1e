"""Permissions on a control socket: the owner may give any command, members of `group:` read-only ones."""

import os
from collections.abc import Collection
from typing import Final

from appliance.net.privileges.peer_credentials import SocketOptions, peer_credentials
from appliance.wire.lines.control import Answer, bad

MOST_READERS: Final = 16
"""Most connections of readers at a time: the others are reserved for the owner."""

READER_BYTES: Final = 4096
"""Most bytes of a reader's question, and per read of it: a command without values is short."""


def is_owner(connection: SocketOptions) -> bool:
    """Return whether the peer is root or our own user, as the kernel reports it, whatever the peer sends."""
    return peer_credentials(connection).user in (0, os.geteuid())


def refusal(command: str, for_readers: Collection[str]) -> Answer | None:
    """Return the refusal of a reader's command, None for a read-only command."""
    if command in for_readers:
        return None
    return bad(f"not permitted: the group has read access only; {command} is for root and the owner")
