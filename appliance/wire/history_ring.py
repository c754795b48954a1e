"""The file of the last hours, minute by minute: a ring of slots of equal size, so that it never grows.

Each minute replaces that of six hours ago. The first slot identifies the file, every other one has a
checksum: a power cut during a write costs that minute. If the names do not fit a slot, the frontends and
pools that come first in the configuration are kept.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Annotated, Final, NamedTuple

import msgspec

SLOTS: Final = 360
"""Minutes kept."""

SLOT_BYTES: Final = 4096
SIZE: Final = (1 + SLOTS) * SLOT_BYTES
"""Length of the file, bytes."""

_TITLE: Final = b"appliance history, version 1\n"
_HEAD: Final = struct.Struct("!IH")  # CRC-32 of the rest, length of the content
_ROOM: Final = SLOT_BYTES - _HEAD.size


class HistoryError(Exception):
    """The file is not a history of this version."""


_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class FrontendMinute(NamedTuple):  # a JSON list, without field names
    """A frontend's minute: new connections, peak of connections, failed ones, bytes in both directions."""

    connections: _Count
    sessions: _Count
    failed: _Count
    bytes: _Count


class PoolMinute(NamedTuple):
    """A pool's minute: new connections, peak of connections, peak of the queue, fewest servers up."""

    connections: _Count
    sessions: _Count
    queued: _Count
    up: _Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """One minute; `number` counts minutes since 1970. `total` covers all frontends."""

    number: _Count
    total: FrontendMinute
    frontends: Mapping[str, FrontendMinute] = field(default_factory=dict)
    pools: Mapping[str, PoolMinute] = field(default_factory=dict)


def empty() -> bytes:
    """Return the content of a file without minutes."""
    return _TITLE.ljust(SIZE, b"\0")


def place(number: int) -> int:
    """Return the offset of a minute in the file."""
    return (1 + number % SLOTS) * SLOT_BYTES


def encode(minute: Minute) -> bytes:
    """Return the slot of a minute."""
    content = msgspec.json.encode(minute)
    most = max(len(minute.frontends), len(minute.pools))
    while len(content) > _ROOM:
        most //= 2
        content = msgspec.json.encode(_with_first(minute, most))
    return (_HEAD.pack(zlib.crc32(content), len(content)) + content).ljust(SLOT_BYTES, b"\0")


def decode(data: bytes) -> tuple[Minute, ...]:
    """Return the minutes in a file, the oldest first; raises HistoryError."""
    if not data.startswith(_TITLE):
        raise HistoryError("not a history of this version")
    if len(data) != SIZE:
        raise HistoryError(f"{len(data)} bytes instead of {SIZE}")
    return tuple(sorted(_minutes(data), key=lambda each: each.number))


def _minutes(data: bytes) -> Iterator[Minute]:
    for start in range(SLOT_BYTES, SIZE, SLOT_BYTES):
        minute = _minute(data[start : start + SLOT_BYTES])
        if minute is not None and place(minute.number) == start:
            yield minute


def _minute(slot: bytes) -> Minute | None:
    """Return the minute in a slot, None if it has no undamaged one."""
    checksum, length = _HEAD.unpack_from(slot)
    content = slot[_HEAD.size : _HEAD.size + length]
    if not content or zlib.crc32(content) != checksum:
        return None
    try:
        return msgspec.json.decode(content, type=Minute)
    except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors
        return None


def _with_first(minute: Minute, most: int) -> Minute:
    """Return a minute with only this many frontends and pools."""
    return replace(
        minute,
        frontends=dict(islice(minute.frontends.items(), most)),
        pools=dict(islice(minute.pools.items(), most)),
    )
