"""The VRRP board's payload."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzzing.damage import cuts, flips

from appliance.model.drop_reasons import DropReason
from appliance.wire.boards import vrrp_board
from appliance.wire.boards.health_board import NAME_BYTES, BoardFormatError
from appliance.wire.boards.vrrp_board import RouterRecord, VrrpBoard

pytestmark = pytest.mark.pure

NAMES = st.from_regex(r"[A-Za-z0-9._-]{1,63}", fullmatch=True)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
COUNTS = st.integers(0, 2**32 - 1)
TOTALS = st.integers(0, 2**64 - 1)

ROUTERS = st.builds(
    RouterRecord,
    name=NAMES,
    state=st.sampled_from(["initialize", "backup", "active", "fault"]),
    priority=st.integers(0, 255),
    since=FINITE,
    transitions=TOTALS,
    adverts_sent=TOTALS,
    adverts_received=TOTALS,
    priority_zero_sent=TOTALS,
    priority_zero_received=TOTALS,
    gratuitous_sent=TOTALS,
    last_advert=FINITE,
    peer=st.sampled_from(["", "10.0.0.1", "fe80::d6ca:6dff:fe66:cf60"]),
    drops=st.fixed_dictionaries(dict.fromkeys(DropReason, TOTALS)),
    became_active=TOTALS,
    left_active=TOTALS,
    split_brains=TOTALS,
    send_errors=TOTALS,
    restored=TOTALS,
    uninformed=st.booleans(),
)
BOARDS = st.builds(
    VrrpBoard,
    snapshot=COUNTS,
    pid=COUNTS,
    written_at=FINITE,
    monotonic=FINITE,
    late_wakeups=TOTALS,
    latest_wakeup=FINITE,
    realtime=st.booleans(),
    routers=st.lists(ROUTERS, max_size=3).map(tuple),
)
ROUTER = RouterRecord(
    name="api",
    state="active",
    priority=150,
    since=1.0,
    transitions=2,
    adverts_sent=3,
    adverts_received=4,
    priority_zero_sent=5,
    priority_zero_received=6,
    gratuitous_sent=7,
    last_advert=8.0,
    peer="10.0.0.91",
    drops=dict.fromkeys(DropReason, 0),
)
BOARD = VrrpBoard(
    snapshot=1,
    pid=2,
    written_at=3.0,
    monotonic=4.0,
    late_wakeups=5,
    latest_wakeup=0.006,
    realtime=True,
    routers=(ROUTER,),
)


@given(BOARDS)
def test_what_was_encoded_is_decoded(board: VrrpBoard):
    """Every board comes back as it was."""
    assert vrrp_board.decode(vrrp_board.encode(board)) == board


def test_what_never_happened_is_zero():
    """A reason that a router has not counted is read as zero."""
    counted = dataclasses.replace(ROUTER, drops={DropReason.CHECKSUM: 9})
    (decoded,) = vrrp_board.decode(vrrp_board.encode(dataclasses.replace(BOARD, routers=(counted,)))).routers
    assert decoded.drops == {**dict.fromkeys(DropReason, 0), DropReason.CHECKSUM: 9}


def test_the_longest_names_fit():
    """The longest name that a configuration may give and the longest address are kept whole."""
    address = "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255"
    router = dataclasses.replace(ROUTER, name="n" * (NAME_BYTES - 1), peer=address)
    board = dataclasses.replace(BOARD, routers=(router,))
    assert vrrp_board.decode(vrrp_board.encode(board)) == board


def test_a_part_is_refused():
    """No proper prefix of a payload passes for a payload."""
    for part in cuts(vrrp_board.encode(BOARD)):
        with pytest.raises(BoardFormatError):
            vrrp_board.decode(part)


def test_a_tail_is_refused():
    """A payload with more behind it is of another layout."""
    with pytest.raises(BoardFormatError, match="layout"):
        vrrp_board.decode(vrrp_board.encode(BOARD) + b"\0")


def test_a_changed_bit_never_escapes():
    """A payload with one bit changed gives a board or BoardFormatError, nothing else."""
    for damaged in flips(vrrp_board.encode(BOARD)):
        try:
            board = vrrp_board.decode(damaged)
        except BoardFormatError:
            continue
        assert len(board.routers) == 1


@given(st.binary(max_size=1000))
def test_garbage_never_escapes(payload: bytes):
    """Any bytes give a board or BoardFormatError."""
    with pytest.raises(BoardFormatError):
        vrrp_board.decode(payload)


def test_another_layout_is_refused():
    """A board of another version of the program is refused, not misread."""
    with pytest.raises(BoardFormatError, match="layout"):
        vrrp_board.decode(b"VRR0" + vrrp_board.encode(BOARD)[4:])
