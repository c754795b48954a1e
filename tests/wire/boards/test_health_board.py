"""The health board's payload."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from appliance.model.check_results import CheckResult
from appliance.model.server_states import AdminState, HealthVerdict, ServerState
from appliance.model.server_weights import OperatorWeight
from appliance.wire.boards import health_board
from appliance.wire.boards.health_board import (
    DETAIL_BYTES,
    NAME_BYTES,
    BoardFormatError,
    HealthBoard,
    PoolHealthRecord,
    ServerHealthRecord,
    ServerVerdict,
    VerdictReader,
    Verdicts,
)

pytestmark = pytest.mark.pure

NAMES = st.from_regex(r"[A-Za-z0-9._-]{1,63}", fullmatch=True)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
COUNTS = st.integers(0, 2**32 - 1)

SERVERS = st.builds(
    ServerHealthRecord,
    pool=NAMES,
    server=NAMES,
    verdict=st.sampled_from(HealthVerdict),
    admin=st.sampled_from(AdminState),
    weight=FINITE,
    since=FINITE,
    checked_at=FINITE,
    duration=FINITE,
    result=st.sampled_from(CheckResult),
    status=COUNTS,
    streak=COUNTS,
    failed=COUNTS,
    host=st.sampled_from(["", "10.0.0.1", "2001:db8::1"]),
    port=st.integers(0, 65535),
    detail=st.from_regex(r"[ -~]{0,72}", fullmatch=True),
    unreachable=st.booleans(),
    operator_weight=st.none() | st.builds(OperatorWeight, value=st.integers(0, 256), percent=st.booleans()),
)
POOLS = st.builds(
    PoolHealthRecord, pool=NAMES, downs=st.integers(0, 2**64 - 1), down_seconds=FINITE, down_since=FINITE
)
BOARDS = st.builds(
    HealthBoard,
    snapshot=COUNTS,
    pid=COUNTS,
    written_at=FINITE,
    servers=st.lists(SERVERS, max_size=4).map(tuple),
    pools=st.lists(POOLS, max_size=3).map(tuple),
)


def server(**changes: object) -> ServerHealthRecord:
    """Return a server that is up, with `changes`."""
    up = ServerHealthRecord(
        pool="masters",
        server="master-0",
        verdict=HealthVerdict.UP,
        admin=AdminState.READY,
        weight=1.0,
        since=1.0,
        checked_at=2.0,
        duration=0.1,
        result=CheckResult.L7OK,
        status=200,
        streak=3,
        failed=0,
        host="10.0.0.34",
        port=6443,
        detail="",
        unreachable=False,
    )
    return structs.replace(up, **changes)


@given(BOARDS)
def test_what_was_encoded_is_decoded(board: HealthBoard):
    """Every board comes back as it was."""
    assert health_board.decode(health_board.encode(board)) == board


@given(BOARDS)
def test_verdicts_are_those_of_the_records(board: HealthBoard):
    """Balancing sees of a server what its record has."""
    verdicts = VerdictReader()(health_board.encode(board))
    read = {key: each for servers in verdicts.values() for key, each in servers.items()}
    assert read.keys() == board.by_name().keys()
    for key, each in board.by_name().items():
        named = {name: getattr(each, name) for name in ServerVerdict.__struct_fields__}
        assert read[key] == ServerVerdict(**named)
        assert read[key].pool in verdicts


def test_a_verdict_that_stays_is_the_same_object():
    """Whatever checks say of the server besides; one that differs is another object."""
    reader, one, other = VerdictReader(), server(), server(server="master-1")

    def read(*servers: ServerHealthRecord) -> Verdicts:
        payload = health_board.encode(HealthBoard(snapshot=1, pid=2, written_at=3.0, servers=servers))
        return reader(payload)

    first = read(one, other)["masters"]
    second = read(structs.replace(one, streak=9, checked_at=5.0), structs.replace(other, weight=0.5))[
        "masters"
    ]
    assert second["masters", "master-0"] is first["masters", "master-0"]
    assert second["masters", "master-1"].weight == 0.5


@pytest.mark.parametrize("payload", [b"", b"garbage", bytes(100)])
def test_no_verdicts_come_from_garbage(payload: bytes):
    """It is the same error as of a whole board."""
    with pytest.raises(BoardFormatError):
        VerdictReader()(payload)


@given(BOARDS, st.data())
def test_a_part_is_refused(board: HealthBoard, data: st.DataObject):
    """No proper prefix of a payload passes for a payload."""
    payload = health_board.encode(board)
    cut = data.draw(st.integers(0, len(payload) - 1))
    with pytest.raises(BoardFormatError):
        health_board.decode(payload[:cut])


@pytest.mark.promise("rights", "boards")
@given(st.binary(max_size=1000))
def test_garbage_never_escapes(payload: bytes):
    """Any bytes give a board or BoardFormatError."""
    try:
        board = health_board.decode(payload)
    except BoardFormatError:
        return
    assert health_board.encode(board) == payload


@given(BOARDS.filter(lambda board: board.servers), st.data())
def test_a_damaged_payload_never_escapes(board: HealthBoard, data: st.DataObject):
    """A payload with one byte changed gives a board or BoardFormatError, nothing else."""
    payload = bytearray(health_board.encode(board))
    payload[data.draw(st.integers(0, len(payload) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        servers = health_board.decode(bytes(payload)).servers
    except BoardFormatError:
        return
    assert len(servers) == len(board.servers)


def test_a_long_detail_is_cut():
    """A detail longer than its field is cut, and the rest of the record is whole."""
    board = HealthBoard(snapshot=1, pid=2, written_at=3.0, servers=(server(detail="x" * 500),))
    (decoded,) = health_board.decode(health_board.encode(board)).servers
    assert decoded == server(detail="x" * DETAIL_BYTES)


def test_the_longest_name_fits():
    """A name of 63 characters, the longest that a configuration may give, is kept whole."""
    name = "n" * (NAME_BYTES - 1)
    board = HealthBoard(snapshot=1, pid=2, written_at=3.0, servers=(server(pool=name, server=name),))
    assert health_board.decode(health_board.encode(board)) == board


@pytest.mark.parametrize(
    ("verdict", "admin", "state"),
    [
        (HealthVerdict.UP, AdminState.READY, ServerState.UP),
        (HealthVerdict.DOWN, AdminState.READY, ServerState.DOWN),
        (HealthVerdict.UNKNOWN, AdminState.READY, ServerState.CHECKING),
        (HealthVerdict.UP, AdminState.DRAIN, ServerState.DRAIN),
        (HealthVerdict.DOWN, AdminState.DRAIN, ServerState.DOWN),
        (HealthVerdict.UNKNOWN, AdminState.DRAIN, ServerState.DRAIN),
        (HealthVerdict.UP, AdminState.MAINT, ServerState.MAINT),
        (HealthVerdict.DOWN, AdminState.MAINT, ServerState.MAINT),
    ],
)
def test_one_word_for_a_server(verdict: HealthVerdict, admin: AdminState, state: ServerState):
    """Maint hides everything, down hides drain, and drain hides what the checks have not said yet."""
    assert server(verdict=verdict, admin=admin).state is state
