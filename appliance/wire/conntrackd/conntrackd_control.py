"""Questions to conntrackd on its control socket, and its answer with the statistics.

A question is one number (conntrackd.h of conntrack-tools), an answer is text until the end of the connection.
"""

import re
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

LIMIT: Final = 1 << 16
"""Bytes after which an answer is none: the statistics are one thousand."""

_QUESTION: Final = struct.Struct("=i")
_LONGEST: Final = 18  # digits of a counter of 64 bits


class ConntrackdQuestion(IntEnum):
    """What conntrackd is asked: statistics, to send all connections, to have others send all of theirs."""

    STATISTICS = 21
    SEND_ALL = 22
    REQUEST_ALL = 23


class ConntrackdAnswerError(Exception):
    """What came is no statistics of conntrackd."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConntrackdStatistics:
    """What conntrackd has counted since its start.

    `created`, `updated` and `destroyed` are connections of other nodes in this kernel's table, `failed` those
    that it refused. `sent` and `received` are bytes; `packets` were received. `lost` are messages.
    """

    created: int
    updated: int
    destroyed: int
    failed: int
    sent: int
    received: int
    packets: int
    errors: int
    lost: int


def question(asked: ConntrackdQuestion) -> bytes:
    """Return the bytes of a question."""
    return _QUESTION.pack(asked)


def statistics(answer: bytes) -> ConntrackdStatistics:
    """Return the statistics in an answer; raises ConntrackdAnswerError."""
    _, _, injected = answer[:LIMIT].partition(b"external inject:")
    words = injected.decode("ascii", "replace")
    created, updated, destroyed = (_pair(words, rf"connections {each}:\s+@\s+failed:\s+@") for each in _ENDS)
    sent, received = _pair(words, r"@ Bytes sent\s+@ Bytes recv")
    _, packets = _pair(words, r"@ Pckts sent\s+@ Pckts recv")
    lost, refused = _pair(words, r"@ Error send\s+@ Error recv")
    _, missed = _pair(words, r"@ Malformed msgs\s+@ Lost msgs")
    return ConntrackdStatistics(
        created=created[0],
        updated=updated[0],
        destroyed=destroyed[0],
        failed=created[1] + updated[1] + destroyed[1],
        sent=sent,
        received=received,
        packets=packets,
        errors=lost + refused,
        lost=missed,
    )


_ENDS: Final = ("created", "updated", "destroyed")


def _pair(text: str, pattern: str) -> tuple[int, int]:
    """Return the two numbers that stand at the two `@` of a pattern."""
    found = re.search(pattern.replace("@", rf"(\d{{1,{_LONGEST}}})"), text, re.ASCII)
    if found is None:
        raise ConntrackdAnswerError(f"no statistics of conntrackd: {text[:80]!r}")
    return int(found[1]), int(found[2])
