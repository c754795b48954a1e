"""The content of `worker-<program>-<generation>-<n>.board`: counters and current state of one worker."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from operator import add
from typing import Final

import msgspec

from appliance.model.end_reasons import EndReason
from appliance.model.worker_phases import WorkerPhase
from appliance.wire.boards.health_board import NAME_BYTES, BoardFormatError, text_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontendCounters:
    """One frontend in one worker. Bytes are counted from the client's side: `bytes_in` came from it."""

    name: str
    current: int
    total: int
    denied: int
    failed: int
    bytes_in: int
    bytes_out: int


class ServerCounters(msgspec.Struct, frozen=True):
    """One server in one worker. `queued` is the number of clients waiting for it now.

    `failed` counts failed connects; `given_up` of them ended their session, and the others were tried again:
    `retried` on this server, `redispatched` on another (HAProxy's econ, wretr and wredis). `connected` counts
    successful connects, and `connect_seconds` and `queue_seconds` are the sums of their waiting times.
    `ended` counts their sessions that have ended, and `session_seconds` is the sum of their durations since
    acceptance. The longest of each is next to the sums. The aborts are connections broken by client or
    server.

    A struct and no dataclass: reading the boards of a thousand servers makes several thousand of these, and a
    struct takes a quarter of the time.
    """

    pool: str
    server: str
    current: int
    total: int
    failed: int
    queued: int
    bytes_in: int
    bytes_out: int
    given_up: int = 0
    retried: int = 0
    redispatched: int = 0
    client_aborts: int = 0
    server_aborts: int = 0
    connected: int = 0
    ended: int = 0
    queue_seconds: float = 0.0
    connect_seconds: float = 0.0
    session_seconds: float = 0.0
    longest_queue: float = 0.0
    longest_connect: float = 0.0
    longest_session: float = 0.0


def summed(parts: Sequence[ServerCounters]) -> ServerCounters:
    """Return the counters of several workers for one server as one; there is at least one."""
    if len(parts) == 1:
        return parts[0]
    sums = msgspec.structs.astuple(parts[0])
    for part in parts[1:]:
        more = msgspec.structs.astuple(part)
        added = map(add, sums[2:_MAXIMA], more[2:_MAXIMA])
        sums = (*sums[:2], *added, *map(max, sums[_MAXIMA:], more[_MAXIMA:]))
    return ServerCounters(*sums)


CONNECT_BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds in seconds of the classes of connect times; one class above them has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTimes:
    """The connect times of a pool's servers in one worker: the number in each class."""

    pool: str
    connects: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerBoard:
    """The whole payload. Times are Unix seconds, `drain_deadline` 0.0 while not draining.

    A server that is not in `servers` has had no connection. `compiled` is whether the worker's data
    path runs as extension modules, and not as plain Python.
    """

    program: str
    generation: int
    index: int
    pid: int
    phase: WorkerPhase
    snapshot: int
    started_at: float
    written_at: float
    drain_deadline: float
    sessions: int
    frontends: tuple[FrontendCounters, ...]
    servers: tuple[ServerCounters, ...]
    reasons: dict[EndReason, int]
    pools: tuple[PoolTimes, ...] = ()
    compiled: bool = False


_MAGIC: Final = b"WRK4"
_HEAD: Final = struct.Struct(f"=4s{NAME_BYTES}sIIIIIIIII?ddd")
_SESSIONS: Final = 7  # its position
_FRONTEND: Final = struct.Struct(f"={NAME_BYTES}sQQQQQQ")
_SERVER: Final = struct.Struct(f"={NAME_BYTES}s{NAME_BYTES}s13Q6d")
_MAXIMA: Final = ServerCounters.__struct_fields__.index("longest_queue")
_POOL: Final = struct.Struct(f"={NAME_BYTES}s{len(CONNECT_BOUNDS) + 1}Q")
_REASONS: Final = struct.Struct(f"={len(EndReason)}Q")


def encode(board: WorkerBoard) -> bytes:
    """Return the payload."""
    head = _HEAD.pack(
        _MAGIC,
        board.program.encode(),
        board.generation,
        board.index,
        board.pid,
        board.phase,
        board.snapshot,
        board.sessions,
        len(board.frontends),
        len(board.servers),
        len(board.pools),
        board.compiled,
        board.started_at,
        board.written_at,
        board.drain_deadline,
    )
    reasons = _REASONS.pack(*(board.reasons.get(reason, 0) for reason in EndReason))
    frontends, servers = map(_frontend, board.frontends), map(_server, board.servers)
    return b"".join((head, reasons, *frontends, *servers, *map(_pool, board.pools)))


def sessions(payload: bytes) -> int:
    """Return a worker's number of sessions, reading nothing else; raises BoardFormatError."""
    if len(payload) < _HEAD.size or not payload.startswith(_MAGIC):
        raise BoardFormatError("worker board: another layout")
    found: int = _HEAD.unpack_from(payload)[_SESSIONS]
    return found


def decode(payload: bytes) -> WorkerBoard:
    """Return the board; raises BoardFormatError."""
    try:
        magic, program, generation, index, pid, phase, snapshot, sessions, *counts = _HEAD.unpack_from(
            payload
        )
        frontends, servers, pools, compiled, started, written, drain = counts
        first = _HEAD.size + _REASONS.size
        second = first + frontends * _FRONTEND.size
        third = second + servers * _SERVER.size
        if magic != _MAGIC or len(payload) != third + pools * _POOL.size:
            raise BoardFormatError("worker board: another layout")
        view = memoryview(payload)
        return WorkerBoard(
            program=text_of(program),
            generation=generation,
            index=index,
            pid=pid,
            phase=WorkerPhase(phase),
            snapshot=snapshot,
            started_at=started,
            written_at=written,
            drain_deadline=drain,
            sessions=sessions,
            compiled=compiled,
            reasons=dict(zip(EndReason, _REASONS.unpack_from(payload, _HEAD.size), strict=True)),
            frontends=tuple(
                FrontendCounters(
                    name=text_of(name), current=c, total=t, denied=d, failed=f, bytes_in=i, bytes_out=o
                )
                for name, c, t, d, f, i, o in _FRONTEND.iter_unpack(view[first:second])
            ),
            servers=tuple(map(_server_counters, _SERVER.iter_unpack(view[second:third]))),
            pools=tuple(
                PoolTimes(pool=text_of(pool), connects=tuple(connects))
                for pool, *connects in _POOL.iter_unpack(view[third:])
            ),
        )
    except (struct.error, ValueError) as error:
        raise BoardFormatError(f"worker board: {error}") from error


def _server_counters(record: tuple) -> ServerCounters:  # type: ignore[type-arg]  # struct's own shape
    pool, server, *numbers = record
    return ServerCounters(text_of(pool), text_of(server), *numbers)


def _frontend(frontend: FrontendCounters) -> bytes:
    return _FRONTEND.pack(
        frontend.name.encode(),
        frontend.current,
        frontend.total,
        frontend.denied,
        frontend.failed,
        frontend.bytes_in,
        frontend.bytes_out,
    )


def _server(server: ServerCounters) -> bytes:
    pool, name, *numbers = msgspec.structs.astuple(server)
    return _SERVER.pack(pool.encode(), name.encode(), *numbers)


def _pool(pool: PoolTimes) -> bytes:
    return _POOL.pack(pool.pool.encode(), *pool.connects)
