"""Failed connects to servers, as they cross from a worker to health."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.wire.lines.connect_failure import (
    SIZE_LIMIT,
    ConnectFailure,
    ConnectFailureError,
    decode,
    encode,
)

pytestmark = pytest.mark.pure

NAMES = st.from_regex(r"[A-Za-z0-9._-]{1,63}", fullmatch=True)


@given(NAMES, NAMES)
def test_what_was_encoded_is_decoded(pool: str, server: str):
    """Names come back as they were, and fit."""
    datagram = encode(pool, server)
    assert len(datagram) <= SIZE_LIMIT
    assert decode(datagram) == ConnectFailure(pool, server)


@pytest.mark.parametrize(
    "datagram",
    [
        b"",
        b"\xff",
        b"[" * 1000,
        b"[]",
        b'["a"]',
        b'["a", 1]',
        b"null",
        b"[" * 100,
        encode("a", "b")[:-1],
        encode("a", "b") + b"x",
        encode("a", "b" * SIZE_LIMIT),
        encode("a", "b") + b" " * SIZE_LIMIT,
    ],
)
def test_any_other_datagram_is_the_one_error(datagram: bytes):
    """Anything else, cut off or too long, is ConnectFailureError."""
    with pytest.raises(ConnectFailureError):
        decode(datagram)


@settings(deadline=None)  # a busy machine is no failure
@given(st.binary(max_size=300), st.sampled_from([b"", b"[", b'["a",']))
def test_garbage_never_escapes(data: bytes, start: bytes):
    """Any bytes give a value or ConnectFailureError."""
    with suppress(ConnectFailureError):
        assert isinstance(decode(start + data), ConnectFailure)
