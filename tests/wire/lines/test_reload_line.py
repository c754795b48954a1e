"""Lines of the reload socket: whole, byte by byte, with a tail, and with garbage."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.wire.lines.reload_line import (
    LINE_LIMIT,
    RehearsalLine,
    ReloadLine,
    ReloadLines,
    StopLine,
    UnknownLine,
)

pytestmark = pytest.mark.pure

_RELOAD = ReloadLine()


def test_whole():
    """The word and its line end are one request."""
    assert list(ReloadLines().feed(b"reload\n")) == [_RELOAD]


def test_byte_by_byte():
    """A line in pieces is one request, at its end."""
    lines = ReloadLines()
    assert [list(lines.feed(bytes([each]))) for each in b"reload\n"] == [[]] * 6 + [[_RELOAD]]


def test_with_a_tail():
    """Several lines in a chunk are as many requests, and what follows the last end waits."""
    lines = ReloadLines()
    assert list(lines.feed(b"reload\nreload\nrel")) == [_RELOAD, _RELOAD]
    assert lines.unfinished
    assert list(lines.feed(b"oad\n")) == [_RELOAD]
    assert not lines.unfinished


@pytest.mark.parametrize("line", [b"reload --force\n", b" reload  --force\r\n"])
def test_a_reload_may_be_forced(line: bytes):
    """The one option of the line; it is not the default."""
    assert list(ReloadLines().feed(line)) == [ReloadLine(forced=True)]
    assert not _RELOAD.forced


@pytest.mark.parametrize("line", [b"reload --dry-run\n", b" reload  --dry-run\r\n"])
def test_a_reload_may_be_rehearsed(line: bytes):
    """A line of its own, so that no reload is taken for one."""
    assert list(ReloadLines().feed(line)) == [RehearsalLine()]


@pytest.mark.parametrize("line", [b"stop\n", b" stop\r\n"])
def test_a_stop(line: bytes):
    """The second word of OpenShift's keepalived pod, with blanks as above."""
    assert list(ReloadLines().feed(line)) == [StopLine()]


@pytest.mark.parametrize("line", [b"reload\r\n", b"  reload \t\n"])
def test_blanks_do_not_matter(line: bytes):
    """A carriage return and blanks around the word are ignored."""
    assert list(ReloadLines().feed(line)) == [_RELOAD]


@pytest.mark.parametrize("line", [b"\n", b"stop now\n", b"Reload\n", b"reload now\n", b"\xff\x00\n"])
def test_anything_else_is_refused(line: bytes):
    """Another word, none at all, and bytes that are no text are refused with what they were."""
    (said,) = ReloadLines().feed(line)
    assert isinstance(said, UnknownLine)
    assert "known: reload" in said.reason


def test_an_endless_line_is_refused_once_and_skipped():
    """Megabytes without an end cost one refusal and little memory; the next line counts again."""
    lines = ReloadLines()
    said = [each for _ in range(100) for each in lines.feed(b"x" * 65536)]
    assert said == [UnknownLine(reason=f"line of more than {LINE_LIMIT} bytes")]
    assert len(lines._pending) <= LINE_LIMIT
    assert lines.unfinished
    assert list(lines.feed(b"x\nreload\n")) == [_RELOAD]


def test_a_stranger_is_not_repeated_at_length():
    """A long unknown line is shortened in the refusal."""
    (said,) = ReloadLines().feed(b"y" * 4000 + b"\n")
    assert isinstance(said, UnknownLine)
    assert len(said.reason) < 200


@settings(deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=20))
def test_chunking_does_not_matter(chunks: list[bytes]):
    """Any bytes give the same lines, however they are cut."""
    pieces, whole = ReloadLines(), ReloadLines()
    assert [each for chunk in chunks for each in pieces.feed(chunk)] == list(whole.feed(b"".join(chunks)))
