"""The head of a request is read whole, in pieces, with a tail, and out of garbage."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.wire.http.http_request import LIMIT, Request, RequestError, decode, encode_response
from appliance.wire.need import Need

pytestmark = pytest.mark.pure

GOOD = b"GET /haproxy_ready?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
REQUEST = Request(method="GET", path="/haproxy_ready")


@pytest.mark.parametrize("data", [GOOD, GOOD + b"tail", b"\r\n" + GOOD, b"GET /haproxy_ready HTTP/1.0\n\n"])
def test_request_is_read(data: bytes):
    """A whole head gives method and path, whatever follows."""
    assert decode(data) == REQUEST


def test_every_part_of_a_request_needs_more():
    """Byte by byte there is no answer before the empty line."""
    assert {decode(GOOD[:size]) for size in range(len(GOOD))} == {Need.MORE}


@pytest.mark.parametrize(
    "data", [b"hello\r\n\r\n", b"GET / HTTP/2.0\r\n\r\n", b"\x16\x03\x01\n\n", b"x" * (LIMIT + 1)]
)
def test_anything_else_is_refused(data: bytes):
    """What is not HTTP/1, or has no end, is an error."""
    with pytest.raises(RequestError):
        decode(data)


@given(st.binary(max_size=300))
def test_garbage_never_escapes(data: bytes):
    """Any bytes give a request, a need for more, or RequestError."""
    with suppress(RequestError):
        assert isinstance(decode(data), Request | Need)


def test_response_closes():
    """A response has its length, and announces that the connection closes; HEAD gets no body."""
    whole = encode_response(200, "OK", b"ready", head_only=False)
    assert whole.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Length: 5\r\n" in whole
    assert b"Connection: close\r\n" in whole
    assert whole.endswith(b"\r\n\r\nready")
    assert whole == encode_response(200, "OK", b"ready", head_only=True) + b"ready"
