"""Events travel and are kept as JSON lines."""

import pytest

from appliance.model.operator_events import EventKind, OperatorEvent
from appliance.wire.lines.event_lines import LONGEST, decode, encode, newest

pytestmark = pytest.mark.pure

EVENT = OperatorEvent(
    when=1.5,
    kind=EventKind.SERVER_DOWN,
    subject="masters/m-0",
    program="health",
    before="up",
    after="down",
    cause="L7STS",
    detail="500; 2 of 3 up",
    id="1-2",
)


def test_events_come_back():
    """What was told is read, in its order."""
    other = OperatorEvent(when=2.0, kind=EventKind.POOL_EMPTY, subject="masters")
    assert list(decode(encode(EVENT) + encode(other))) == [EVENT, other]


@pytest.mark.parametrize(
    "damaged",
    [
        b"{",
        b"null",
        b'{"when": 1}',
        b'{"when":1,"kind":"no-such-kind","subject":"a"}',
        b"[" * 3000,
        b"\xff\xfe",
        b" " * (LONGEST + 1),
        encode(EVENT)[:-20],
    ],
)
def test_a_damaged_line_costs_itself_alone(damaged: bytes):
    """The lines before and after one that cannot be understood are read."""
    assert list(decode(encode(EVENT) + damaged + b"\n" + encode(EVENT))) == [EVENT, EVENT]


def test_no_text_breaks_the_line_or_the_terminal():
    """Ends of lines, escapes and halves of characters become spaces, and long texts are cut."""
    worst = "\U0001f600" * 5000
    event = OperatorEvent(
        when=1.0, kind=EventKind.VIP_FAULT, subject="a\x1b[31m\nb\udc80", detail=worst, cause=worst, id=worst
    )
    line = encode(event)
    assert len(line) <= LONGEST
    (read,) = decode(line)
    assert read.subject == "a [31m b "
    assert (len(read.detail), read.detail[-4:]) == (300, "\U0001f600...")
    assert encode(read) == line


def test_the_newest_lines_stay():
    """Of lines that have no room together the first ones are left out."""
    lines = [b"first\n", b"second\n", b"third\n"]
    assert newest(lines, 100) == b"first\nsecond\nthird\n"
    assert newest(lines, 13) == b"second\nthird\n"
    assert newest(lines, 3) == b""
