"""The payload of `worker-<program>-<generation>-<n>.board`: what one worker has done and holds."""

import struct
from dataclasses import dataclass
from typing import Final

from appliance.model.end_reasons import EndReason
from appliance.model.worker_phases import WorkerPhase
from appliance.wire.boards.health_board import NAME_BYTES, BoardFormatError, text_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontendCounters:
    """One frontend in one worker. Bytes are as seen from the client: `bytes_in` came from it."""

    name: str
    current: int
    total: int
    denied: int
    failed: int
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCounters:
    """One server in one worker. `failed` counts connects that were not made, `queued` who waits for it."""

    pool: str
    server: str
    current: int
    total: int
    failed: int
    queued: int
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerBoard:
    """The whole payload. Times are Unix seconds, `drain_deadline` 0.0 while not draining."""

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


_MAGIC: Final = b"WRK1"
_HEAD: Final = struct.Struct(f"=4s{NAME_BYTES}sIIIIIIIIddd")
_FRONTEND: Final = struct.Struct(f"={NAME_BYTES}sQQQQQQ")
_SERVER: Final = struct.Struct(f"={NAME_BYTES}s{NAME_BYTES}sQQQQQQ")
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
        board.started_at,
        board.written_at,
        board.drain_deadline,
    )
    reasons = _REASONS.pack(*(board.reasons.get(reason, 0) for reason in EndReason))
    return b"".join((head, reasons, *map(_frontend, board.frontends), *map(_server, board.servers)))


def decode(payload: bytes) -> WorkerBoard:
    """Return the board; raises BoardFormatError."""
    try:
        magic, program, generation, index, pid, phase, snapshot, sessions, frontends, servers, *times = (
            _HEAD.unpack_from(payload)
        )
        at = _HEAD.size + _REASONS.size
        end = at + frontends * _FRONTEND.size
        if magic != _MAGIC or len(payload) != end + servers * _SERVER.size:
            raise BoardFormatError("worker board: another layout")
        view = memoryview(payload)
        return WorkerBoard(
            program=text_of(program),
            generation=generation,
            index=index,
            pid=pid,
            phase=WorkerPhase(phase),
            snapshot=snapshot,
            started_at=times[0],
            written_at=times[1],
            drain_deadline=times[2],
            sessions=sessions,
            reasons=dict(zip(EndReason, _REASONS.unpack_from(payload, _HEAD.size), strict=True)),
            frontends=tuple(
                FrontendCounters(
                    name=text_of(name), current=c, total=t, denied=d, failed=f, bytes_in=i, bytes_out=o
                )
                for name, c, t, d, f, i, o in _FRONTEND.iter_unpack(view[at:end])
            ),
            servers=tuple(
                ServerCounters(
                    pool=text_of(pool),
                    server=text_of(name),
                    current=c,
                    total=t,
                    failed=f,
                    queued=q,
                    bytes_in=i,
                    bytes_out=o,
                )
                for pool, name, c, t, f, q, i, o in _SERVER.iter_unpack(view[end:])
            ),
        )
    except (struct.error, ValueError) as error:
        raise BoardFormatError(f"worker board: {error}") from error


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
    return _SERVER.pack(
        server.pool.encode(),
        server.server.encode(),
        server.current,
        server.total,
        server.failed,
        server.queued,
        server.bytes_in,
        server.bytes_out,
    )
