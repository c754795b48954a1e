"""Reports between nodes: said and understood, and every way to forge, cut or repeat one."""

import hashlib
import hmac
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzzing.damage import cuts, flips

from appliance.wire.linger_report import (
    MOST_ADDRESSES,
    MOST_ANSWERED,
    MOST_BYTES,
    AnsweredNode,
    LingerReport,
    LingerReportError,
    ReportDrop,
    ReportedAddress,
    decode,
    encode,
)

pytestmark = pytest.mark.pure

SECRET = bytes(range(32))
MAC = bytes.fromhex("020000000001")
_DAMAGED = {ReportDrop.DIGEST, ReportDrop.LAYOUT, ReportDrop.VERSION}
NODE: Any = {"mac": MAC, "session": bytes(range(8)), "challenge": b"1234"}
SOURCE = {4: "192.0.2.1", 6: "fe80::1"}


def address(text: str, *, active: bool = True, left: float = 0.0, connections: int = 0) -> ReportedAddress:
    """Return what is said of one address."""
    return ReportedAddress(address=text, active=active, left=left, connections=connections)


REPORTS = {
    4: LingerReport(
        **NODE,
        sequence=7,
        addresses=(address("192.0.2.100"), address("192.0.2.101", active=False, left=1.5, connections=200)),
        answered=(
            AnsweredNode(mac=bytes.fromhex("020000000002"), challenge=b"abcd", believed=True),
            AnsweredNode(mac=bytes.fromhex("020000000003"), challenge=b"efgh", believed=False),
        ),
    ),
    6: LingerReport(**NODE, sequence=2**63, addresses=(address("fd00::100", active=False, connections=1),)),
}


def reason(datagram: bytes, *, source: str = SOURCE[4], secret: bytes = SECRET) -> ReportDrop:
    """Return why a datagram is not believed; fails where it is."""
    with pytest.raises(LingerReportError) as caught:
        decode(datagram, source=source, secrets=[secret])
    return caught.value.reason


def sent(family: int = 4) -> bytes:
    """Return a good datagram."""
    return encode(REPORTS[family], family=family, source=SOURCE[family], secret=SECRET)


@pytest.mark.parametrize("family", [4, 6])
def test_said_and_understood(family: int):
    """A report is understood as it was said, one without addresses too."""
    assert decode(sent(family), source=SOURCE[family], secrets=[SECRET]) == REPORTS[family]
    empty = LingerReport(**NODE, sequence=1, addresses=())
    datagram = encode(empty, family=family, source=SOURCE[family], secret=SECRET)
    assert decode(datagram, source=SOURCE[family], secrets=[SECRET]) == empty


@pytest.mark.parametrize("family", [4, 6])
def test_shared_addresses_have_a_magic_of_their_own(family: int):
    """A node of an older release takes the report for one of another version, and only that one."""
    shared = replace(REPORTS[family], shared=True)
    datagram = encode(shared, family=family, source=SOURCE[family], secret=SECRET)
    assert (sent(family)[:4], datagram[:4]) == (b"LNG2", b"LNG3")
    assert decode(datagram, source=SOURCE[family], secrets=[SECRET]) == shared
    assert reason(b"LNG2" + datagram[4:], source=SOURCE[family]) is ReportDrop.DIGEST


def test_what_is_too_great_is_cut():
    """An age or a count that has no room is the greatest that has."""
    huge = LingerReport(
        **NODE, sequence=1, addresses=(address("192.0.2.1", active=False, left=1e9, connections=2**40),)
    )
    datagram = encode(huge, family=4, source=SOURCE[4], secret=SECRET)
    (found,) = decode(datagram, source=SOURCE[4], secrets=[SECRET]).addresses
    assert (found.left, found.connections) == ((2**32 - 1) / 1000, 2**32 - 1)


@pytest.mark.parametrize("family", [4, 6])
def test_the_most_addresses_fit(family: int):
    """As many addresses and nodes as a report may have fit into one packet."""
    prefix = "192.0.2." if family == 4 else "fd00::"
    report = LingerReport(
        **NODE,
        sequence=1,
        addresses=tuple(address(f"{prefix}1{each}") for each in range(MOST_ADDRESSES[family])),
        answered=(AnsweredNode(mac=MAC, challenge=bytes(4), believed=True),) * MOST_ANSWERED,
    )
    datagram = encode(report, family=family, source=SOURCE[family], secret=SECRET)
    assert len(datagram) <= MOST_BYTES
    assert decode(datagram, source=SOURCE[family], secrets=[SECRET]) == report


def test_another_key_or_sender():
    """Another key is not believed, and nobody can send on what another node has said."""
    assert reason(sent(), secret=bytes(32)) is ReportDrop.DIGEST
    assert reason(sent(), source="192.0.2.9") is ReportDrop.DIGEST


def test_each_of_several_keys_is_accepted():
    """So a key can be rotated: first all nodes accept the new one, then they sign with it."""
    assert decode(sent(), source=SOURCE[4], secrets=[bytes(32), SECRET]) == REPORTS[4]


def test_another_version_is_named():
    """What it says is not understood, but who says it is known."""
    assert reason(b"LNG1" + sent()[4:]) is ReportDrop.VERSION
    assert reason(b"LNG") is ReportDrop.VERSION


def test_a_changed_bit():
    """Whatever bit is changed, and wherever it is cut, it is not believed."""
    for damaged in (*flips(sent()), *cuts(sent())):
        assert reason(damaged) in _DAMAGED
    assert reason(bytes(MOST_BYTES + 1)) is ReportDrop.LAYOUT


@pytest.mark.parametrize(
    ("place", "value"),
    [
        pytest.param(30, b"\x05", id="no size of an address"),
        pytest.param(31, b"\x03", id="more addresses than there are"),
        pytest.param(32, b"\x03", id="more nodes than there are"),
        pytest.param(37, b"\x02", id="no state"),
        pytest.param(-1, b"\x02", id="neither believed nor not"),
    ],
)
def test_another_layout_with_the_right_key(place: int, value: bytes):
    """What is signed by us and means nothing is an error of its layout."""
    body = bytearray(sent()[:-32])
    place %= len(body)
    body[place : place + len(value)] = value
    digest = hmac.digest(SECRET, bytes([192, 0, 2, 1]) + bytes(body), hashlib.sha256)
    assert reason(bytes(body) + digest) is ReportDrop.LAYOUT


@given(st.binary(max_size=300))
def test_garbage(data: bytes):
    """Any bytes give LingerReportError, and nothing else."""
    with suppress(LingerReportError):
        decode(data, source=SOURCE[4], secrets=[SECRET])
