"""The status line, fed whole, in bytes, with a tail, and as garbage."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.wire.http.http_response import INTERIM_LIMIT, LINE_LIMIT, ResponseError, StatusLine, decode
from appliance.wire.need import Need

pytestmark = pytest.mark.pure

LINES = [
    (b"HTTP/1.0 200 OK\r\n", StatusLine(version="1.0", status=200, reason="OK")),
    (
        b"HTTP/1.1 500 Internal Server Error\r\n",
        StatusLine(version="1.1", status=500, reason="Internal Server Error"),
    ),
    (b"HTTP/1.1 204\r\n", StatusLine(version="1.1", status=204, reason="")),
    (b"HTTP/1.1 204 \r\n", StatusLine(version="1.1", status=204, reason="")),
    (b"HTTP/1.0 200 fine\n", StatusLine(version="1.0", status=200, reason="fine")),
    (b"HTTP/1.1 200 \x1b[31m\r\n", StatusLine(version="1.1", status=200, reason="\ufffd[31m")),
    (b"HTTP/1.1 200 \xff\r\n", StatusLine(version="1.1", status=200, reason="\ufffd")),
    (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 503 no\r\n",
        StatusLine(version="1.1", status=503, reason="no"),
    ),
    (b"HTTP/1.1 100\n\nHTTP/1.1 200 OK\n", StatusLine(version="1.1", status=200, reason="OK")),
    (
        b"HTTP/1.1 101 Switching Protocols\r\n",
        StatusLine(version="1.1", status=101, reason="Switching Protocols"),
    ),
]
TAILS = [b"", b"Content-Length: 2\r\n\r\nok", b"\r\n" + b"x" * 100_000]


@pytest.mark.parametrize(("line", "expected"), LINES)
@pytest.mark.parametrize("tail", TAILS)
def test_a_status_line_is_read_whatever_follows(line: bytes, expected: StatusLine, tail: bytes):
    """Version, status and reason come out, with or without a reason, headers and a body."""
    assert decode(line + tail) == expected


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_every_beginning_needs_more(line: bytes, expected: StatusLine):
    """Fed byte by byte, the line is incomplete until its newline."""
    assert all(decode(line[:size]) is Need.MORE for size in range(len(line)))
    assert decode(line) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.2p1\r\n",
        b"\x15\x03\x03\x00\x02\x02\x32",
        b"HTTP/1.1 OK\r\n",
        b"HTTP/1.1 20 OK\r\n",
        b"HTTP/1.1 2000 OK\r\n",
        b"HTTP/2 200\r\n",
        b"\r\nHTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 " + b"x" * LINE_LIMIT,
        b"HTTP/1.1 200 " + b"x" * LINE_LIMIT + b"\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * (INTERIM_LIMIT // 30),
        b"HTTP/1.1 103 Early Hints\r\nLink: " + b"x" * INTERIM_LIMIT,
        b"HTTP/1.1 100 Continue\r\n\r\nSSH-2.0-OpenSSH_9.2p1\r\n",
    ],
)
def test_what_is_no_status_line_is_the_one_error(data: bytes):
    """Another protocol, a line without a status, and one that is too long are ResponseError."""
    with pytest.raises(ResponseError):
        decode(data)


@settings(deadline=None)  # a busy machine is no failure
@given(st.binary(max_size=300), st.sampled_from([b"", b"HTTP/", b"HTTP/1.1 ", b"HTTP/1.1 200"]))
def test_garbage_never_escapes(data: bytes, start: bytes):
    """Any bytes give a status line, Need.MORE or ResponseError."""
    with suppress(ResponseError):
        result = decode(start + data)
        assert result is Need.MORE or 100 <= result.status <= 999
