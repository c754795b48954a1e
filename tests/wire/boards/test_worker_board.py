"""A worker board's payload."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.end_reasons import EndReason
from appliance.model.worker_phases import WorkerPhase
from appliance.wire.boards import worker_board
from appliance.wire.boards.health_board import BoardFormatError
from appliance.wire.boards.worker_board import (
    CONNECT_BOUNDS,
    FrontendCounters,
    PoolTimes,
    ServerCounters,
    WorkerBoard,
    summed,
)

pytestmark = pytest.mark.pure

NAMES = st.from_regex(r"[A-Za-z0-9._-]{1,63}", fullmatch=True)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
COUNTS = st.integers(0, 2**32 - 1)
TOTALS = st.integers(0, 2**64 - 1)

FRONTENDS = st.builds(
    FrontendCounters,
    name=NAMES,
    current=TOTALS,
    total=TOTALS,
    denied=TOTALS,
    failed=TOTALS,
    bytes_in=TOTALS,
    bytes_out=TOTALS,
)
SERVERS = st.builds(
    ServerCounters,
    pool=NAMES,
    server=NAMES,
    current=TOTALS,
    total=TOTALS,
    failed=TOTALS,
    queued=TOTALS,
    bytes_in=TOTALS,
    bytes_out=TOTALS,
    given_up=TOTALS,
    retried=TOTALS,
    redispatched=TOTALS,
    client_aborts=TOTALS,
    server_aborts=TOTALS,
    connected=TOTALS,
    ended=TOTALS,
    queue_seconds=FINITE,
    connect_seconds=FINITE,
    session_seconds=FINITE,
    longest_queue=FINITE,
    longest_connect=FINITE,
    longest_session=FINITE,
)
CONNECTS = st.tuples(*[TOTALS] * (len(CONNECT_BOUNDS) + 1))
POOLS = st.builds(PoolTimes, pool=NAMES, connects=CONNECTS)
BOARDS = st.builds(
    WorkerBoard,
    program=NAMES,
    generation=COUNTS,
    compiled=st.booleans(),
    index=COUNTS,
    pid=COUNTS,
    phase=st.sampled_from(WorkerPhase),
    snapshot=COUNTS,
    started_at=FINITE,
    written_at=FINITE,
    drain_deadline=FINITE,
    sessions=COUNTS,
    frontends=st.lists(FRONTENDS, max_size=3).map(tuple),
    servers=st.lists(SERVERS, max_size=3).map(tuple),
    reasons=st.fixed_dictionaries(dict.fromkeys(EndReason, TOTALS)),
    pools=st.lists(POOLS, max_size=3).map(tuple),
)


@given(BOARDS)
def test_sessions_are_read_without_the_rest(board: WorkerBoard):
    """Their number stands at the beginning, and nothing behind it is looked at."""
    payload = worker_board.encode(board)
    assert worker_board.sessions(payload) == board.sessions
    head = len(worker_board.encode(replace(board, frontends=(), servers=(), pools=())))
    assert worker_board.sessions(payload[:head]) == board.sessions


@pytest.mark.parametrize("payload", [b"", b"WRK4", bytes(500)])
def test_sessions_of_another_layout_are_refused(payload: bytes):
    """What is no worker's board has none."""
    with pytest.raises(BoardFormatError):
        worker_board.sessions(payload)


@given(BOARDS)
def test_what_was_encoded_is_decoded(board: WorkerBoard):
    """Every board comes back as it was."""
    assert worker_board.decode(worker_board.encode(board)) == board


@given(BOARDS, st.data())
def test_a_part_is_refused(board: WorkerBoard, data: st.DataObject):
    """No proper prefix of a payload passes for a payload."""
    payload = worker_board.encode(board)
    cut = data.draw(st.integers(0, len(payload) - 1))
    with pytest.raises(BoardFormatError):
        worker_board.decode(payload[:cut])


@given(st.binary(max_size=1000))
def test_garbage_never_escapes(payload: bytes):
    """Any bytes give a board or BoardFormatError."""
    try:
        board = worker_board.decode(payload)
    except BoardFormatError:
        return
    assert worker_board.encode(board) == payload


@given(BOARDS, st.data())
def test_a_damaged_payload_never_escapes(board: WorkerBoard, data: st.DataObject):
    """A payload with one byte changed gives a board or BoardFormatError, nothing else."""
    payload = bytearray(worker_board.encode(board))
    payload[data.draw(st.integers(0, len(payload) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        decoded = worker_board.decode(bytes(payload))
    except BoardFormatError:
        return
    assert len(decoded.reasons) == len(EndReason)


@given(st.lists(SERVERS, min_size=1, max_size=4))
def test_what_several_workers_counted(parts: list[ServerCounters]):
    """Counts and seconds are added up; of the longest times the longest is taken."""
    total = summed(parts)

    assert (total.pool, total.server) == (parts[0].pool, parts[0].server)
    assert total.bytes_out == sum(part.bytes_out for part in parts)
    assert total.ended == sum(part.ended for part in parts)
    for name in ("longest_queue", "longest_connect", "longest_session"):
        assert getattr(total, name) == max(getattr(part, name) for part in parts)
    if len(parts) == 1:
        assert total == parts[0]
