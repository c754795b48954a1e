"""The content of `health.board`: the state of every server, one record of fixed size each.

The board is a file in shared memory that `health` writes and workers, trackers and `status` read.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

from appliance.model.check_results import CheckResult
from appliance.model.server_states import AdminState, HealthVerdict, ServerState, state_of
from appliance.model.server_weights import OperatorWeight, operator_weight

NAME_BYTES: Final = 64
DETAIL_BYTES: Final = 72


CHECK_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds of the classes of check times; one class above them has none."""

NO_CHECKS: Final = (0,) * (len(CHECK_BOUNDS) + 1)


class BoardFormatError(Exception):
    """The payload was not written by this version."""


_RESULTS: Final = tuple(CheckResult)
_VERDICTS: Final = {each.value: each for each in HealthVerdict}
_ADMIN_STATES: Final = {each.value: each for each in AdminState}


class ServerVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What balancing needs to know of a server: a struct, as those are created faster, and there may be many.

    `weight` is the effective weight: the configured or the operator's, ramped by slow_start;
    `operator_weight` is the latter, None without one. `host` is the address to which the server's name
    resolves now, "" if it could not be resolved. `unreachable`: the server is down because nothing answers;
    otherwise it answers badly.
    """

    pool: str
    server: str
    verdict: HealthVerdict
    admin: AdminState
    weight: float
    host: str
    unreachable: bool
    operator_weight: OperatorWeight | None = None

    @property
    def state(self) -> ServerState:
        """Return the one-word state of the server (model.server_states.state_of)."""
        return state_of(self.verdict, self.admin)


Verdicts = dict[str, dict[tuple[str, str], ServerVerdict]]
"""By pool, the verdicts of its servers by pool and name."""


class ServerHealthRecord(ServerVerdict, frozen=True, kw_only=True):
    """One server as `health` sees it.

    `since` is when verdict or admin last changed and `checked_at` when the last check ended, both Unix
    seconds; `duration` is seconds. `status` is the HTTP status, 0 for none. `streak` counts results like the
    last one, `failed` all checks that failed. `downs` is how often it went down, `failed_up` counts the
    checks that failed while it was up (HAProxy's `chkfail`), `down_seconds` is how long it was down before it
    last came up. `check_seconds` is the sum of the durations of all checks, `check_times` counts them by
    duration (CHECK_BOUNDS); `reused` is how many used the connection of an earlier one.
    """

    since: float
    checked_at: float
    duration: float
    result: CheckResult
    status: int
    streak: int
    failed: int
    port: int
    detail: str
    downs: int = 0
    failed_up: int = 0
    down_seconds: float = 0.0
    check_seconds: float = 0.0
    check_times: tuple[int, ...] = NO_CHECKS
    reused: int = 0


class PoolHealthRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How often a pool lost its last server that accepts connections, and for how long in total.

    `down_since` is Unix seconds, 0.0 while it has one. `down_seconds` excludes the time since then.
    """

    pool: str
    downs: int = 0
    down_seconds: float = 0.0
    down_since: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthBoard:
    """The whole payload. `snapshot` is the configuration behind it, `written_at` Unix seconds."""

    snapshot: int
    pid: int
    written_at: float
    servers: tuple[ServerHealthRecord, ...]
    pools: tuple[PoolHealthRecord, ...] = ()

    def by_name(self) -> dict[tuple[str, str], ServerHealthRecord]:
        """Return the servers by pool and name."""
        return {(each.pool, each.server): each for each in self.servers}


_HEAD: Final = struct.Struct("=4sIIIIId")
_POOL: Final = struct.Struct(f"={NAME_BYTES}sQdd")
_MAGIC: Final = b"HLT4"
_WEIGHT_BYTES: Final = 8
_RECORD: Final = struct.Struct(
    f"={NAME_BYTES}s{NAME_BYTES}sBBB?IIIIIdddd48s{DETAIL_BYTES}sQQdd{len(NO_CHECKS)}Q{_WEIGHT_BYTES}s"
)
_VERDICT: Final = struct.Struct(
    f"={NAME_BYTES}s{NAME_BYTES}sBBx?20xd24x48s{DETAIL_BYTES}x32x{8 * len(NO_CHECKS)}x{_WEIGHT_BYTES}s"
)
"""The same record, of which only a verdict is read."""


def encode(board: HealthBoard) -> bytes:
    """Return the payload; names must not exceed NAME_BYTES (the configuration checks it), details are cut."""
    records = [encode_server(server) for server in board.servers]
    return assemble(records, board.pools, snapshot=board.snapshot, pid=board.pid, written_at=board.written_at)


def assemble(
    records: Sequence[bytes],
    pools: Sequence[PoolHealthRecord],
    *,
    snapshot: int,
    pid: int,
    written_at: float,
) -> bytes:
    """Return the payload of records from `encode_server`; unchanged ones need not be encoded again."""
    head = _HEAD.pack(_MAGIC, snapshot, pid, len(records), _RECORD.size, len(pools), written_at)
    return b"".join((head, *records, *map(_encode_pool, pools)))


def _encode_pool(pool: PoolHealthRecord) -> bytes:
    return _POOL.pack(pool.pool.encode(), pool.downs, pool.down_seconds, pool.down_since)


def encode_server(server: ServerHealthRecord) -> bytes:
    """Return one record."""
    return _RECORD.pack(
        server.pool.encode(),
        server.server.encode(),
        server.verdict,
        server.admin,
        _RESULTS.index(server.result),
        server.unreachable,
        server.status,
        server.streak,
        server.failed,
        server.port,
        server.reused,
        server.weight,
        server.since,
        server.checked_at,
        server.duration,
        server.host.encode(),
        server.detail.encode()[:DETAIL_BYTES],
        server.downs,
        server.failed_up,
        server.down_seconds,
        server.check_seconds,
        *server.check_times,
        str(server.operator_weight or "").encode(),
    )


class VerdictReader:
    """Reads the verdicts of one board after the other; raises BoardFormatError.

    One that is as it was is the same object: with 40,000 servers, usually all but a few.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], ServerVerdict] = {}

    def __call__(self, payload: bytes) -> Verdicts:
        """Return the verdicts on a board."""
        known, found = self._known, {}
        verdicts: Verdicts = {}
        try:
            _, servers, _ = _parts(payload)
            for fields in _VERDICT.iter_unpack(servers):
                verdict = found[fields] = known.get(fields) or _verdict(fields)
                verdicts.setdefault(verdict.pool, {})[verdict.pool, verdict.server] = verdict
        except (struct.error, ValueError, LookupError) as error:
            raise BoardFormatError(f"health board: {error}") from error
        self._known = found
        return verdicts


def _verdict(fields: tuple) -> ServerVerdict:  # type: ignore[type-arg]  # struct's own shape, named below
    pool, server, verdict, admin, unreachable, weight, host, weighed = fields
    return ServerVerdict(
        pool=text_of(pool),
        server=text_of(server),
        verdict=_VERDICTS[verdict],
        admin=_ADMIN_STATES[admin],
        unreachable=unreachable,
        weight=weight,
        host=text_of(host),
        operator_weight=_operator_weight(weighed),
    )


def _operator_weight(field: bytes) -> OperatorWeight | None:
    return operator_weight(text_of(field)) if field[0] else None


def _parts(payload: bytes) -> tuple[tuple[int, int, float], memoryview, memoryview]:
    """Return snapshot, process and time of a board, and the records of servers and pools."""
    magic, snapshot, pid, count, size, pool_count, written_at = _HEAD.unpack_from(payload)
    end = _HEAD.size + count * size
    if magic != _MAGIC or size != _RECORD.size or len(payload) != end + pool_count * _POOL.size:
        raise BoardFormatError("health board: another layout")
    view = memoryview(payload)
    return (snapshot, pid, written_at), view[_HEAD.size : end], view[end:]


def decode(payload: bytes) -> HealthBoard:
    """Return the board; raises BoardFormatError."""
    try:
        (snapshot, pid, written_at), of_servers, of_pools = _parts(payload)
        servers = tuple(map(_server, _RECORD.iter_unpack(of_servers)))
        pools = tuple(map(_pool, _POOL.iter_unpack(of_pools)))
    except (struct.error, ValueError, LookupError) as error:
        raise BoardFormatError(f"health board: {error}") from error
    return HealthBoard(snapshot=snapshot, pid=pid, written_at=written_at, servers=servers, pools=pools)


def _server(record: tuple) -> ServerHealthRecord:  # type: ignore[type-arg]  # struct's own shape, named below
    pool, server, verdict, admin, result, unreachable, status, streak, failed, port, reused = record[:11]
    weight, since, checked_at, duration, host, detail = record[11:17]
    downs, failed_up, down_seconds, check_seconds, *check_times, weighed = record[17:]
    return ServerHealthRecord(
        pool=text_of(pool),
        server=text_of(server),
        verdict=_VERDICTS[verdict],
        admin=_ADMIN_STATES[admin],
        weight=weight,
        since=since,
        checked_at=checked_at,
        duration=duration,
        result=_RESULTS[result],
        status=status,
        streak=streak,
        failed=failed,
        host=text_of(host),
        port=port,
        detail=text_of(detail),
        unreachable=unreachable,
        downs=downs,
        failed_up=failed_up,
        down_seconds=down_seconds,
        check_seconds=check_seconds,
        check_times=tuple(check_times),
        operator_weight=_operator_weight(weighed),
        reused=reused,
    )


def _pool(record: tuple) -> PoolHealthRecord:  # type: ignore[type-arg]  # struct's own shape, named below
    pool, downs, down_seconds, down_since = record
    return PoolHealthRecord(pool=text_of(pool), downs=downs, down_seconds=down_seconds, down_since=down_since)


@lru_cache(maxsize=1 << 17)
def text_of(field: bytes) -> str:
    """Return a field's text without padding; cached, as each read meets the same names."""
    return field.rstrip(b"\0").decode(errors="replace")
