"""What nodes tell each other of strays: told and understood, and every way to forge or cut it."""

import hashlib
import hmac
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzzing.damage import cuts, flips

from appliance.wire.linger_report import MOST_BYTES, LingerReportError, ReportDrop
from appliance.wire.linger_strays import MOST_ENDS, Ends, ReportedStrays, decode, encode, is_one, shares

pytestmark = pytest.mark.pure

SECRET = bytes(range(32))
SOURCE = {4: "192.0.2.1", 6: "fd00::1"}
ENDS: dict[int, Ends] = {
    4: ("203.0.113.5", 4711, "198.51.100.10", 443),
    6: ("2001:db8:20::5", 4711, "2001:db8:10::10", 443),
}
_DAMAGED = {ReportDrop.DIGEST, ReportDrop.LAYOUT}


def told(family: int, *, found: int = 1, denied: int = 2) -> ReportedStrays:
    """Return what a node tells of so many connections."""
    client, _, address, port = ENDS[family]
    ends = tuple((client, each, address, port) for each in range(found + denied))
    return ReportedStrays(session=bytes(range(8)), sequence=2**63, found=ends[:found], denied=ends[found:])


def sent(family: int = 4) -> bytes:
    """Return a good datagram."""
    return encode(told(family), family=family, source=SOURCE[family], secret=SECRET)


def reason(datagram: bytes, *, source: str = SOURCE[4], secret: bytes = SECRET) -> ReportDrop:
    """Return why a datagram is not believed; fails where it is."""
    with pytest.raises(LingerReportError) as caught:
        decode(datagram, source=source, secrets=[secret])
    return caught.value.reason


@pytest.mark.parametrize("family", [4, 6])
def test_told_and_understood(family: int):
    """It is understood as it was told, signed with any of the keys, and is told apart from a report."""
    assert is_one(sent(family))
    assert not is_one(b"LNG3")
    assert decode(sent(family), source=SOURCE[family], secrets=[bytes(32), SECRET]) == told(family)


@pytest.mark.parametrize("family", [4, 6])
def test_more_than_one_datagram_takes(family: int):
    """They are told in as few as they fit into, found and denied ones apart."""
    most = MOST_ENDS[family]
    all_of = told(family, found=most + 1, denied=most)
    parts = list(shares(all_of.found, all_of.denied, family=family))
    assert [(len(found), len(denied)) for found, denied in parts] == [(most, 0), (1, 0), (0, most)]
    whole = encode(told(family, found=most, denied=0), family=family, source=SOURCE[family], secret=SECRET)
    assert len(whole) <= MOST_BYTES


def test_another_key_or_sender():
    """Another key is not believed, and nobody can send on what another node has told."""
    assert reason(sent(), secret=bytes(32)) is ReportDrop.DIGEST
    assert reason(sent(), source="192.0.2.9") is ReportDrop.DIGEST


def test_a_changed_bit():
    """Whatever bit is changed, and wherever it is cut, it is not believed."""
    for damaged in (*flips(sent()), *cuts(sent())):
        assert reason(damaged) in _DAMAGED


@pytest.mark.parametrize(
    ("place", "value"),
    [
        pytest.param(0, b"LNG3", id="a report"),
        pytest.param(20, b"\x10", id="addresses of the other family"),
        pytest.param(21, b"\x02", id="more found than there are"),
        pytest.param(22, b"\x03", id="more denied than there are"),
    ],
)
def test_another_layout_with_the_right_key(place: int, value: bytes):
    """What is signed by us and means nothing is an error of its layout."""
    body = bytearray(sent()[:-32])
    body[place : place + len(value)] = value
    digest = hmac.digest(SECRET, bytes([192, 0, 2, 1]) + bytes(body), hashlib.sha256)
    assert reason(bytes(body) + digest) is ReportDrop.LAYOUT


@given(st.binary(max_size=300))
def test_garbage(data: bytes):
    """Any bytes give LingerReportError, and nothing else."""
    with suppress(LingerReportError):
        decode(data, source=SOURCE[4], secrets=[SECRET])
