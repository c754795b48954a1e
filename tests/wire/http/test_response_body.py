"""The body of an answer: counted, in chunks or until the end, fed in any pieces, and never too much of it."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.wire.http.http_response import ResponseError
from appliance.wire.http.response_body import BODY_LIMIT, HEAD_LIMIT, ResponseBody

pytestmark = pytest.mark.pure

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n"


def read(data: bytes, *, method: str = "GET", size: int | None = None) -> ResponseBody:
    """Return an answer that was fed as a whole, or in pieces of `size` bytes."""
    answer = ResponseBody(method)
    for at in range(0, len(data), size or len(data) or 1):
        answer.feed(data[at : at + (size or len(data))])
    return answer


@pytest.mark.parametrize("size", [None, 1, 3])
@pytest.mark.parametrize(
    ("data", "body", "ended"),
    [
        (OK + b"Content-Length: 2\r\n\r\nok and more", b"ok", True),
        (OK + b"content-length:2\r\nContent-Length: 2, 2\r\n\r\nok", b"ok", True),
        (OK + b"Content-Length: 9\r\n\r\nok", b"ok", False),
        (OK + b"Content-Length: 0\r\n\r\nok", b"", True),
        (OK + b"\r\nok", b"ok", False),
        (OK + b"Transfer-Encoding: gzip\r\nContent-Length: 1\r\n\r\nok", b"ok", False),
        (b"HTTP/1.0 503 -\nX: y\n\nok", b"ok", False),
        (b"HTTP/1.1 103 -\r\nContent-Length: 9\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok", b"ok", True),
        (CHUNKED + b"1\r\no\r\n01 ; x=y\r\nk\r\n0\r\nTrailer: x\r\n\r\n", b"ok", True),
        (CHUNKED + b"1\no\n1\nk\n0\n\n", b"ok", True),
        (CHUNKED + b"ff\r\nok", b"ok", False),
        (b"HTTP/1.1 204 -\r\nContent-Length: 2\r\n\r\nok", b"", True),
        (b"HTTP/1.1 304 -\r\n\r\nok", b"", True),
        (b"HTTP/1.1 101 -\r\n\r\nok", b"", True),
    ],
)
def test_a_body_is_read_as_its_headers_say(data: bytes, body: bytes, *, ended: bool, size: int | None):
    """Its length is counted, told by chunks, or open until the server closes, see RFC 9112 s.6.3."""
    answer = read(data, size=size)

    assert (answer.body, answer.ended) == (body, ended)


def test_an_answer_to_head_has_no_body():
    """The length that it names is that of an answer to GET."""
    answer = read(OK + b"Content-Length: 2\r\n\r\n", method="HEAD")

    assert (answer.line.status if answer.line else 0, answer.body, answer.ended) == (200, b"", True)


@pytest.mark.parametrize("head", [OK + b"\r\n", OK + b"Content-Length: 99999\r\n\r\n", CHUNKED + b"ffff\r\n"])
def test_no_more_is_kept_than_is_looked_at(head: bytes):
    """After the limit the answer has ended, whatever else comes."""
    answer = read(head + b"x" * (BODY_LIMIT - 1))
    assert not answer.ended

    answer.feed(b"yz")
    assert (answer.body[-1:], len(answer.body), answer.ended) == (b"y", BODY_LIMIT, True)


@pytest.mark.parametrize("data", [OK[:5], OK, OK + b"Content-Length: 2\r\n"])
def test_before_the_end_of_the_headers_there_is_no_body(data: bytes):
    """A head in pieces is waited for; the status is known as soon as its line is there."""
    answer = read(data)

    assert (answer.line is not None, answer.body, answer.ended) == (len(data) > 5, b"", False)


@pytest.mark.parametrize("size", [None, 1])
@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.2p1\r\n",
        OK + b"no colon\r\n\r\n",
        OK + b" folded: line\r\n\r\n",
        OK + b"X: " + b"x" * HEAD_LIMIT,
        OK + b"X: " + b"x" * HEAD_LIMIT + b"\r\n\r\n",
        OK + b"Content-Length: two\r\n\r\n",
        OK + b"Content-Length: -2\r\n\r\n",
        OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n",
        CHUNKED + b"two\r\nok",
        CHUNKED + b"fffffffff\r\nok",
        CHUNKED + b"1\r\nok\r\n",
        CHUNKED + b"1;" + b"x" * 300,
        CHUNKED + b"\r\n",
    ],
)
def test_a_body_without_a_clear_end_is_an_error(data: bytes, size: int | None):
    """Another protocol, headers that are none or too long, and false sizes are ResponseError."""
    with pytest.raises(ResponseError):
        read(data, size=size)


@settings(deadline=None)  # a busy machine is no failure
@given(st.binary(max_size=300), st.sampled_from([b"", OK, CHUNKED, OK + b"Content-Length: 5\r\n\r\n"]))
def test_garbage_never_escapes(data: bytes, start: bytes):
    """Any bytes give a body, less than all of one, or ResponseError."""
    with suppress(ResponseError):
        assert len(read(start + data).body) <= 300


LENGTH = OK + b"Content-Length: 2\r\n"


@pytest.mark.parametrize("size", [None, 1, 3])
@pytest.mark.parametrize(
    "data",
    [
        LENGTH + b"\r\nok",
        OK + b"Content-Length: 0\r\n\r\n",
        OK + b"Content-Length: 16384\r\n\r\n" + b"x" * BODY_LIMIT,
        OK + b"Transfer-Encoding: Chunked\r\n\r\n1\r\no\r\n1;x=y\r\nk\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\nDigest: x\r\nnonsense\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 -\r\nLink: x\r\n\r\n" + LENGTH + b"\r\nok",
        b"HTTP/1.1 204 -\r\n\r\n",
        b"HTTP/1.1 304 -\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_a_whole_answer_leaves_the_connection_for_the_next_question(data: bytes, size: int | None):
    """With a clear end it persists, but neither before that end nor when a byte comes behind it."""
    assert read(data, size=size).persists
    assert not read(data[:-1], size=size).persists
    assert not read(data + b"H", size=size).persists


@pytest.mark.parametrize(
    "data",
    [
        OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nok",
        OK + b"Connection: x, CLOSE\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        OK + b"\r\nok",
        OK + b"Transfer-Encoding: gzip\r\n\r\nok",
        CHUNKED + b"0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"x" * HEAD_LIMIT + b"\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: xxxxxxxx\r\n" * 2000 + b"\r\n",
        OK + b"Content-Length: 16385\r\n\r\n" + b"x" * 16385,
        b"HTTP/1.1 101 -\r\nConnection: upgrade\r\n\r\n",
    ],
)
def test_an_answer_that_leaves_a_doubt_is_the_last_of_its_connection(data: bytes):
    """The server says so, or where it ends is not said, said twice, or too far away."""
    assert not read(data).persists


def test_an_answer_to_head_persists():
    """It has ended with its headers."""
    assert read(LENGTH + b"\r\n", method="HEAD").persists


pieces = st.lists(st.binary(min_size=1, max_size=40), max_size=5)
trailers = st.sampled_from([b"", b"Expires: 0\r\n", b"X: y\r\nServer-Timing: db\r\n"])


@settings(deadline=None)  # a busy machine is no failure
@given(pieces, trailers, st.booleans(), st.integers(1, 50), st.binary(max_size=3))
def test_the_end_of_an_answer_is_found_wherever_it_is_cut(
    parts: list[bytes],
    behind: bytes,
    chunked: bool,  # noqa: FBT001  # hypothesis gives by position
    size: int,
    more: bytes,
):
    """Any body, counted or in chunks: whole it persists, with anything behind it or cut short it does not."""
    body = b"".join(parts)
    if chunked:
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in parts)
        data = OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n" + behind + b"\r\n"
    else:
        data = OK + b"Content-Length: %d\r\n\r\n" % len(body) + body
    answer = read(data + more, size=size)
    assert (answer.body, answer.ended, answer.persists) == (body, True, not more)
    assert not any(read(data[:at], size=size).persists for at in range(0, len(data), 7))


def test_as_much_of_a_body_as_is_wanted():
    """A digest is of more bytes than are searched for a text."""
    answer = ResponseBody("GET", limit=20_000)
    answer.feed(OK + b"Content-Length: 17000\r\n\r\n" + b"x" * 17_000)

    assert (len(answer.body), answer.ended) == (17_000, True)
