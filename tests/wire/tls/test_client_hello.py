"""The server name of a ClientHello: whole, byte by byte, in any records, with a tail, and with garbage."""

import ssl
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values.client_hellos import extension, message, openssl_hello, records, server_name, vector

from appliance.wire.need import Need
from appliance.wire.tls.client_hello import LIMIT, ClientHello, HelloError, HelloReader

pytestmark = pytest.mark.pure

NAMED = records(message(extension(10, b"\0\2\0\x17"), server_name(b"API.Example.com")))


def read(data: bytes, size: int = LIMIT * 2) -> ClientHello | Need:
    """Return what is known after these bytes, in pieces of a size."""
    reader = HelloReader()
    for at in range(0, len(data), size):
        found = reader.feed(data[at : at + size])
        if found is not Need.MORE:
            return found
    return Need.MORE


@pytest.mark.parametrize("size", [1, 2, 7, LIMIT])
@pytest.mark.parametrize("most", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("name", ["a.example.com", None])
def test_hellos_of_openssl(name: str | None, most: ssl.TLSVersion, size: int):
    """What OpenSSL sends is understood, in pieces of any size."""
    assert read(openssl_hello(name, most=most), size) == ClientHello(name)


def test_case_means_nothing():
    """A name is told in lower case (RFC 4343)."""
    assert read(NAMED) == ClientHello("api.example.com")


def test_without_extensions():
    """A hello of TLS 1.2 may end before its extensions: it has no name."""
    assert read(records(message())) == ClientHello(None)


def test_with_a_tail():
    """What comes behind a hello is not looked at."""
    assert read(NAMED + b"\x14\x03\x03garbage") == ClientHello("api.example.com")


@given(
    st.lists(st.integers(1, 60), max_size=12),
    st.integers(1, 100),
    st.from_regex(rb"[a-z0-9.-]{1,255}", fullmatch=True),
)
def test_any_cut(sizes: list[int], piece: int, name: bytes):
    """However a hello is cut into records and segments, its name is the same; no byte of it is too many."""
    data = records(message(server_name(name)), sizes)
    assert read(data, piece) == ClientHello(name.decode())
    assert read(data[:-1], piece) is Need.MORE


@given(st.binary(max_size=300), st.integers(1, 20))
def test_garbage_never_escapes(data: bytes, piece: int):
    """Any bytes are a hello, a need for more, or HelloError."""
    with suppress(HelloError):
        read(data, piece)
    with suppress(HelloError):
        read(records(b"\1" + vector(3, data)), piece)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"G", "not the beginning"),
        (b"\x16\x02", "not a version"),
        (b"\x16\x03\x01\0\0", "empty or too long"),
        (b"\x16\x03\x01\x40\x01", "empty or too long"),
        (records(message(kind=2)), "no ClientHello"),
        (records(b"\1\0\xff\xff" + bytes(50)), "more than"),
        (records(b"\1" + vector(3, bytes(10))), "beyond its end"),
        (records(message(server_name(b"a"), server_name(b"b"))), "two extensions"),
        (records(message(server_name(b"a", kind=1))), "no host_name"),
        (records(message(server_name(b""))), "no name of a host"),
        (records(message(server_name(b"a" * 256))), "no name of a host"),
        (records(message(server_name("ä".encode()))), "no name of a host"),
        (records(message(extension(0, vector(2, b"\0\0\1a\0\0\1b")))), "no name of a host"),
    ],
)
def test_what_is_no_hello(data: bytes, why: str):
    """Each way not to be a hello has its words, as soon as it is seen."""
    with pytest.raises(HelloError, match=why):
        read(data, 1)


def test_the_limit():
    """A hello that does not end within the limit is given up, however small its records are."""
    endless = records(b"\1\0\x30\0" + bytes(0x3000), [1] * 0x3000)
    with pytest.raises(HelloError, match="ends in the first"):
        read(endless, 1000)
    assert read(endless[: LIMIT - 1], 1000) is Need.MORE
