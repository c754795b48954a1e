"""The PROXY header: written as the specification says, and read whole, in bytes, with a tail, as garbage."""

from contextlib import suppress
from ipaddress import IPv6Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.model.snapshot.pools import SendProxy
from appliance.wire import proxy_protocol
from appliance.wire.need import Need
from appliance.wire.proxy_protocol import SIGNATURE, ProxyHeader, ProxyHeaderError, decode

pytestmark = pytest.mark.pure

V4 = ("192.168.0.1", 56324), ("192.168.0.11", 443)
V6 = ("2001:db8::1", 1), ("2001:db8::2", 65535)
ADDRESSES = st.one_of(
    st.tuples(st.ip_addresses(v=4).map(str), st.ip_addresses(v=4).map(str)),
    st.tuples(st.ip_addresses(v=6).map(str), st.ip_addresses(v=6).map(str)),
).filter(lambda pair: not any("::ffff:" in each for each in pair))
PORTS = st.integers(0, 65535)
HEADERS = [
    proxy_protocol.encode_v1(*V4),
    proxy_protocol.encode_v1(*V6),
    proxy_protocol.encode_v2(*V4),
    proxy_protocol.encode_v2(*V6),
    proxy_protocol.local_v1(),
    proxy_protocol.local_v2(),
]


def test_v1_is_the_line_of_the_specification():
    """The text form is the example of section 2.1."""
    assert proxy_protocol.encode_v1(*V4) == b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n"


def test_v1_of_ipv6_says_tcp6():
    """An IPv6 client is announced as TCP6."""
    assert proxy_protocol.encode_v1(*V6) == b"PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n"


def test_v2_is_signature_command_family_length_addresses():
    """The binary form has the layout of section 2.2."""
    assert proxy_protocol.encode_v2(*V4) == (
        SIGNATURE + b"\x21\x11\x00\x0c" + bytes([192, 168, 0, 1, 192, 168, 0, 11]) + b"\xdc\x04\x01\xbb"
    )


def test_v2_of_ipv6_has_36_bytes_of_addresses():
    """An IPv6 block says AF_INET6 over STREAM and 36 bytes."""
    block = proxy_protocol.encode_v2(*V6)
    assert (block[13], int.from_bytes(block[14:16]), len(block)) == (0x21, 36, 52)


def test_a_mapped_client_is_ipv4():
    """The IPv4 client of a dual-stack listener is written as IPv4."""
    header = proxy_protocol.encode_v1(("::ffff:192.168.0.1", 56324), ("::ffff:192.168.0.11", 443))
    assert header == proxy_protocol.encode_v1(*V4)


def test_mixed_families_are_ipv6_with_one_mapped():
    """A header has one family: the IPv4 side is mapped."""
    mixed = str(IPv6Address("::ffff:192.168.0.11"))
    assert decode(proxy_protocol.encode_v2(V6[0], V4[1])) == ProxyHeader(
        version=2, source=V6[0], destination=(mixed, 443), size=52
    )


def test_a_scope_is_not_sent():
    """The interface of a link-local address means nothing to another machine."""
    assert proxy_protocol.encode_v1(("fe80::1%eth0", 1), V6[1]).startswith(b"PROXY TCP6 fe80::1 2001")


@pytest.mark.parametrize(
    ("version", "expected", "own"),
    [
        (SendProxy.NONE, b"", b""),
        (SendProxy.V1, proxy_protocol.encode_v1(*V4), proxy_protocol.local_v1()),
        (SendProxy.V2, proxy_protocol.encode_v2(*V4), proxy_protocol.local_v2()),
    ],
)
def test_the_setting_chooses_the_form(version: SendProxy, expected: bytes, own: bytes):
    """`send_proxy` none, v1 and v2 give nothing, the line and the block, for clients and for checks."""
    assert proxy_protocol.encode(version, *V4) == expected
    assert proxy_protocol.local(version) == own


@settings(deadline=None)  # a busy machine is no failure
@given(ADDRESSES, PORTS, PORTS, st.binary(max_size=40))
def test_what_is_written_is_read_back_and_the_tail_left_alone(
    hosts: tuple[str, str], one: int, other: int, tail: bytes
):
    """Both versions give the endpoints back, and a size that leaves the client's first bytes."""
    source, destination = (hosts[0], one), (hosts[1], other)
    for version, encode in ((1, proxy_protocol.encode_v1), (2, proxy_protocol.encode_v2)):
        data = encode(source, destination)
        expected = ProxyHeader(version=version, source=source, destination=destination, size=len(data))
        assert decode(data + tail) == expected


@pytest.mark.parametrize("header", HEADERS)
def test_every_beginning_needs_more(header: bytes):
    """Fed byte by byte, a header is incomplete until its last byte."""
    assert all(decode(header[:size]) is Need.MORE for size in range(len(header)))
    whole = decode(header)
    assert isinstance(whole, ProxyHeader)
    assert whole.size == len(header)


@pytest.mark.parametrize("header", [proxy_protocol.local_v1(), proxy_protocol.local_v2()])
def test_local_names_nobody(header: bytes):
    """A check's own connection has no endpoints."""
    assert decode(header + b"GET /") == ProxyHeader(
        version=1 if header.startswith(b"PROXY") else 2, source=None, destination=None, size=len(header)
    )


def test_unknown_may_carry_words_that_are_ignored():
    """Section 2.1: what follows UNKNOWN is ignored up to the CRLF."""
    header = decode(b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n")
    assert isinstance(header, ProxyHeader)
    assert header.source is None


def test_other_families_and_extensions_are_skipped():
    """A unix or UDP block has no endpoints; extensions count into the size."""
    unix = SIGNATURE + b"\x21\x31\x00\xd8" + b"\0" * 216
    assert decode(unix) == ProxyHeader(version=2, source=None, destination=None, size=232)
    block = proxy_protocol.encode_v2(*V4)
    longer = block[:14] + b"\x00\x10" + block[16:] + b"\x04\x00\x01\x00"
    assert decode(longer) == ProxyHeader(version=2, source=V4[0], destination=V4[1], size=32)


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.0\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.5 1\r\n",
        b"PROXY TCP5 1.2.3.4 1.2.3.5 1 2\r\n",
        b"PROXY TCP4 ::1 ::2 1 2\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.5 1 65536\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.5 1 -2\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.5 1 \xff\r\n",
        b"PROXY " + b"x" * 101,
        SIGNATURE + b"\x31\x11\x00\x0c" + b"\0" * 12,
        SIGNATURE + b"\x21\x11\x00\x0b" + b"\0" * 11,
        SIGNATURE + b"\x21\x21\x00\x0c" + b"\0" * 12,
    ],
)
def test_what_is_no_header_is_the_one_error(data: bytes):
    """Wrong words, ports, lengths, commands and a line without an end are ProxyHeaderError."""
    with pytest.raises(ProxyHeaderError):
        decode(data)


@settings(deadline=None)  # a busy machine is no failure
@given(
    st.binary(max_size=300), st.sampled_from([b"", b"PROXY ", b"PROXY TCP4 ", SIGNATURE, SIGNATURE + b"\x21"])
)
def test_garbage_never_escapes(data: bytes, start: bytes):
    """Any bytes give a header, Need.MORE or ProxyHeaderError."""
    with suppress(ProxyHeaderError):
        result = decode(start + data)
        assert result is Need.MORE or result.size <= len(start + data)
