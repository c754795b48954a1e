"""The content of `vrrp.board`: the state and the counters of the program `vrrp`, one record per router.

After a crash the next run of the program reads from it which routers were active, and when they last
advertised. Records have a fixed size, so that one can be encoded without the others.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from appliance.model.drop_reasons import DropReason
from appliance.wire.boards.health_board import NAME_BYTES, BoardFormatError, text_of

STATE_BYTES: Final = 16
PEER_BYTES: Final = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterRecord:
    """One virtual router.

    `state` is a word of `core.vrrp.election_messages.RouterState`, `since` Unix seconds. `last_advert` is
    when the last advertisement was sent, in seconds of CLOCK_MONOTONIC, 0.0 for never. `peer` is the address
    of the active router received from last, "" for none. `drops` has an entry for every reason after
    decoding. Counters continue across restarts of the program. `uninformed` is whether it waits until
    `linger` knows which nodes have connections.
    """

    name: str
    state: str
    priority: int
    since: float
    transitions: int
    adverts_sent: int
    adverts_received: int
    priority_zero_sent: int
    priority_zero_received: int
    gratuitous_sent: int
    last_advert: float
    peer: str
    drops: dict[DropReason, int]
    became_active: int = 0
    left_active: int = 0
    split_brains: int = 0
    send_errors: int = 0
    restored: int = 0
    uninformed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VrrpBoard:
    """The whole payload. `written_at` is Unix seconds, `monotonic` the same moment of CLOCK_MONOTONIC.

    `late_wakeups` counts late wake-ups, `latest_wakeup` is the largest delay in seconds. `realtime` is
    whether the program has real-time scheduling.
    """

    snapshot: int
    pid: int
    written_at: float
    monotonic: float
    late_wakeups: int
    latest_wakeup: float
    realtime: bool
    routers: tuple[RouterRecord, ...]


_MAGIC: Final = b"VRR2"
_HEAD: Final = struct.Struct("=4sIIIIBxxxQddd")
_DROPS: Final = tuple(DropReason)
_NONE: Final = (0,) * len(_DROPS)
_RECORD: Final = struct.Struct(f"={NAME_BYTES}s{STATE_BYTES}s{PEER_BYTES}sBBxxxxxxdd11Q{len(DropReason)}Q")


def encode(board: VrrpBoard, encoded: Sequence[bytes] = ()) -> bytes:
    """Return the payload; names must not exceed NAME_BYTES, which the configuration checks.

    `encoded` are further records from `encode_router`; they follow those of `board`.
    """
    head = _HEAD.pack(
        _MAGIC,
        board.snapshot,
        board.pid,
        len(board.routers) + len(encoded),
        _RECORD.size,
        board.realtime,
        board.late_wakeups,
        board.latest_wakeup,
        board.written_at,
        board.monotonic,
    )
    return b"".join((head, *map(encode_router, board.routers), *encoded))


def encode_router(router: RouterRecord) -> bytes:
    """Return the record of one router."""
    return _RECORD.pack(
        router.name.encode(),
        router.state.encode(),
        router.peer.encode(),
        router.priority,
        router.uninformed,
        router.since,
        router.last_advert,
        router.transitions,
        router.adverts_sent,
        router.adverts_received,
        router.priority_zero_sent,
        router.priority_zero_received,
        router.gratuitous_sent,
        router.became_active,
        router.left_active,
        router.split_brains,
        router.send_errors,
        router.restored,
        *(map(router.drops.get, _DROPS, _NONE) if router.drops else _NONE),
    )


def decode(payload: bytes) -> VrrpBoard:
    """Return the board; raises BoardFormatError."""
    try:
        magic, snapshot, pid, count, size, realtime, late_wakeups, *times = _HEAD.unpack_from(payload)
    except struct.error as error:
        raise BoardFormatError(f"vrrp board: {error}") from error
    if magic != _MAGIC or size != _RECORD.size or len(payload) != _HEAD.size + count * size:
        raise BoardFormatError("vrrp board: another layout")
    latest_wakeup, written_at, monotonic = times
    return VrrpBoard(
        snapshot=snapshot,
        pid=pid,
        written_at=written_at,
        monotonic=monotonic,
        late_wakeups=late_wakeups,
        latest_wakeup=latest_wakeup,
        realtime=bool(realtime),
        routers=tuple(map(_decode_router, _RECORD.iter_unpack(memoryview(payload)[_HEAD.size :]))),
    )


def _decode_router(record: tuple) -> RouterRecord:  # type: ignore[type-arg]  # struct's own shape, named below
    name, state, peer, priority, uninformed, since, last_advert = record[:7]
    transitions, sent, received, zero_sent, zero_received, gratuitous = record[7:13]
    became_active, left_active, split_brains, send_errors, restored = record[13:18]
    return RouterRecord(
        name=text_of(name),
        state=text_of(state),
        priority=priority,
        since=since,
        transitions=transitions,
        adverts_sent=sent,
        adverts_received=received,
        priority_zero_sent=zero_sent,
        priority_zero_received=zero_received,
        gratuitous_sent=gratuitous,
        last_advert=last_advert,
        peer=text_of(peer),
        drops=dict(zip(DropReason, record[18:], strict=True)),
        became_active=became_active,
        left_active=left_active,
        split_brains=split_brains,
        send_errors=send_errors,
        restored=restored,
        uninformed=bool(uninformed),
    )
