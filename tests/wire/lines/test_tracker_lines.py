"""The lines between vrrp and its tracker."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzzing.damage import cuts, flips

from appliance.model.snapshot.virtual_router import Track, TrackKind
from appliance.wire.lines import tracker_lines
from appliance.wire.lines.line_buffer import LineBuffer
from appliance.wire.lines.tracker_lines import (
    CommandEnded,
    Order,
    Report,
    RunCommand,
    TrackerLineError,
    TrackVerdict,
    WatchTracks,
    WriteLine,
)

pytestmark = pytest.mark.pure

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.lists(TEXT, max_size=3).map(tuple)
NUMBERS = st.integers(-(2**63), 2**63 - 1)
RANGES = st.lists(st.tuples(st.integers(100, 599), st.integers(100, 599)), max_size=2).map(tuple)

TRACKS = st.builds(
    Track,
    name=TEXT,
    kind=st.sampled_from(TrackKind),
    target=TEXT,
    arguments=WORDS,
    weight=st.none() | st.integers(-253, 253),
    interval=FINITE,
    timeout=FINITE,
    rise=st.integers(1, 100),
    fall=st.integers(1, 100),
    user=st.none() | TEXT,
    verify=st.none() | TEXT,
    expect=RANGES,
)
ORDERS = st.one_of(
    st.builds(WatchTracks, tracks=st.lists(st.tuples(TEXT, TRACKS), max_size=3).map(tuple)),
    st.builds(RunCommand, router=TEXT, words=WORDS, user=st.none() | TEXT, timeout=FINITE),
    st.builds(WriteLine, router=TEXT, path=TEXT, line=TEXT),
)
REPORTS = st.one_of(
    st.builds(TrackVerdict, router=TEXT, track=TEXT, up=st.booleans(), value=NUMBERS, detail=TEXT, at=FINITE),
    st.builds(CommandEnded, router=TEXT, words=WORDS, outcome=TEXT),
)
TRACK = Track(
    name="api",
    kind=TrackKind.HTTP,
    target="https://127.0.0.1:6443/readyz",
    arguments=(),
    weight=-20,
    interval=1.0,
    timeout=1.0,
    rise=2,
    fall=3,
    user=None,
    verify=None,
    expect=((200, 299),),
)
LINES = {
    "watch": tracker_lines.encode(WatchTracks(tracks=(("api", TRACK),))),
    "run": tracker_lines.encode(RunCommand(router="api", words=("/bin/true", "x"), user=None, timeout=30.0)),
    "write": tracker_lines.encode(WriteLine(router="api", path="/run/fifo", line='INSTANCE "api" MASTER 7')),
    "verdict": tracker_lines.encode(
        TrackVerdict(router="api", track="api", up=True, value=0, detail="200", at=12.5)
    ),
    "ran": tracker_lines.encode(CommandEnded(router="api", words=("/bin/true", "x"), outcome="exit 0")),
}
each_line = pytest.mark.parametrize("line", LINES.values(), ids=LINES.keys())


def tried(line: bytes) -> list[Order | Report]:
    """Return what either side reads in a line."""
    read: list[Order | Report] = []
    with suppress(TrackerLineError):
        read.append(tracker_lines.decode_order(line))
    with suppress(TrackerLineError):
        read.append(tracker_lines.decode_report(line))
    return read


@given(ORDERS)
def test_an_order_comes_back(order: Order):
    """Every order is one line, and is read as it was meant."""
    (line,) = LineBuffer().feed(tracker_lines.encode(order))
    assert tracker_lines.decode_order(line) == order


@given(REPORTS)
def test_a_report_comes_back(report: Report):
    """Every report is one line, and is read as it was meant."""
    (line,) = LineBuffer().feed(tracker_lines.encode(report))
    assert tracker_lines.decode_report(line) == report


@given(ORDERS, REPORTS)
def test_directions_are_not_mixed_up(order: Order, report: Report):
    """An order is no report, and a report is no order."""
    with pytest.raises(TrackerLineError):
        tracker_lines.decode_report(tracker_lines.encode(order))
    with pytest.raises(TrackerLineError):
        tracker_lines.decode_order(tracker_lines.encode(report))


@given(st.lists(ORDERS, min_size=1, max_size=4), st.integers(1, 50))
def test_lines_survive_any_chunks(orders: list[Order], size: int):
    """However the stream is cut into chunks, the same orders come out in the same order."""
    stream = b"".join(map(tracker_lines.encode, orders))
    lines = LineBuffer()
    chunks = (stream[at : at + size] for at in range(0, len(stream), size))
    assert [tracker_lines.decode_order(line) for chunk in chunks for line in lines.feed(chunk)] == orders


@each_line
def test_a_part_is_refused(line: bytes):
    """No proper prefix of a line is a message."""
    assert not [part for part in cuts(line.rstrip(b"\n")) if tried(part)]


@each_line
def test_a_tail_is_refused(line: bytes):
    """Two messages on one line are none."""
    assert not tried(line.rstrip(b"\n") + line)


@each_line
def test_a_changed_bit_never_escapes(line: bytes):
    """A line with one bit changed is a message of that side, or is refused."""
    for damaged in flips(line):
        assert len(tried(damaged)) <= 1


@given(st.one_of(st.binary(max_size=200), TEXT.map(str.encode)))
def test_garbage_never_escapes(line: bytes):
    """Any bytes are refused."""
    assert not tried(line)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"[" * 100_000, id="deep list"),
        pytest.param(b'{"kind":"run","router":' + b'{"a":' * 100_000, id="deep object in a field"),
        pytest.param(b'{"kind":"run","other":' + b"[" * 100_000, id="deep list in an unknown field"),
        pytest.param(b'{"other":' + b"[" * 100_000, id="deep list before the kind"),
        pytest.param(b'{"kind":"verdict","router":"\xff\xfe"}', id="no UTF-8"),
        pytest.param(b'{"kind":"verdict","router":"\\ud800"}', id="half a character"),
        pytest.param(b'{"kind":"stop"}', id="unknown kind"),
        pytest.param(b"{}", id="no kind"),
        pytest.param(b'{"kind":"ran","router":"a","words":[],"outcome":""', id="no end"),
        pytest.param(b'{"kind":"ran","router":"a","words":[],"outcome":"","more":1}', id="a field too many"),
        pytest.param(b'{"kind":"ran","router":"a","words":[1],"outcome":""}', id="a number for a word"),
    ],
)
def test_what_is_no_message_is_refused(line: bytes):
    """Nesting, broken text and unknown fields end in the one error."""
    assert not tried(line)
