"""The reasons that keep a VRRP instance from taking part, and the operations that the kernel may refuse it.

An instance with a fault has its election in the state FAULT, keepalived's word for a router that may not
become active.
"""

from collections.abc import Mapping
from enum import StrEnum


class FaultReason(StrEnum):
    """What keeps an instance from taking part."""

    CAPABILITIES = "capabilities"
    INTERFACE = "interface"
    SOURCE = "source"
    SOCKET = "socket"
    ADDRESSES = "addresses"
    CONFLICT = "conflict"
    TRACK = "track"
    BUG = "bug"


class RefusedOperation(StrEnum):
    """An operation that the kernel has refused, as the log event `socket-error` names it."""

    RECEIVE = "receive"
    SEND = "send"
    ANNOUNCE = "announce"
    PROBE = "watch"
    PREPARE = "prepare"
    RELEASE = "release"
    CLOSE = "close"
    ROUTES = "routes"


class Faults:
    """The faults of one instance, oldest first; false while there is none."""

    def __init__(self) -> None:
        self._messages: dict[tuple[FaultReason, str], str] = {}

    def __bool__(self) -> bool:
        return bool(self._messages)

    def __contains__(self, reason: FaultReason) -> bool:
        return any(each is reason for each, _ in self._messages)

    @property
    def messages(self) -> tuple[str, ...]:
        """Return the messages for operators, one for each fault."""
        return tuple(self._messages.values())

    def add(self, reason: FaultReason, message: str) -> None:
        """Note a fault, or update its message."""
        self._messages[reason, ""] = message

    def remove(self, reason: FaultReason) -> None:
        """Clear a fault; harmless when there is none."""
        self._messages.pop((reason, ""), None)

    def set_tracks(self, messages: Mapping[str, str]) -> None:
        """Replace the faults of tracks by these, each with the name of its track."""
        others = {key: each for key, each in self._messages.items() if key[0] is not FaultReason.TRACK}
        self._messages = others | {(FaultReason.TRACK, track): message for track, message in messages.items()}
