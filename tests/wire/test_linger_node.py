"""What a node tells of itself: told and understood, and every way to forge or cut it."""

import hashlib
import hmac
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzzing.damage import cuts, flips

from appliance.wire.linger_node import (
    MOST_MARKS,
    MOST_SERVERS,
    Condition,
    NodeFacts,
    ReportedNode,
    decode,
    encode,
    is_one,
    marks,
    server_key,
)
from appliance.wire.linger_report import MOST_BYTES, LingerReportError, ReportDrop

pytestmark = pytest.mark.pure

SECRET = bytes(range(32))
SOURCE = "192.0.2.1"
FACTS = NodeFacts(
    name="lb-0",
    release="1.2.3",
    configuration=bytes(range(16)),
    condition=Condition.ATTENTION,
    page="https://:9444",
    marks=marks(["10.0.0.200", "10.0.0.201"]),
    servers={server_key("masters", "master-0"): True, server_key("masters", "master-1"): False},
)
TOLD = ReportedNode(session=bytes(range(8)), sequence=2**63, facts=FACTS)
_TEXTS = 39  # where the first text begins


def sent(facts: NodeFacts = FACTS) -> bytes:
    """Return a good datagram."""
    return encode(replace(TOLD, facts=facts), source=SOURCE, secret=SECRET)


def reason(datagram: bytes, *, source: str = SOURCE, secret: bytes = SECRET) -> ReportDrop:
    """Return why a datagram is not believed; fails where it is."""
    with pytest.raises(LingerReportError) as caught:
        decode(datagram, source=source, secrets=[secret])
    return caught.value.reason


def signed(body: bytes) -> bytes:
    """Return a body with the right digest."""
    return body + hmac.digest(SECRET, bytes([192, 0, 2, 1]) + body, hashlib.sha256)


def test_told_and_understood():
    """It is understood as it was told, signed with any of the keys, and is told apart from a report."""
    assert is_one(sent())
    assert not is_one(b"LNG3")
    assert decode(sent(), source=SOURCE, secrets=[bytes(32), SECRET]) == TOLD


@pytest.mark.parametrize(
    "page", ["", "http://10.0.0.2:9444", "https://[fd00::2]:9444", "http://:80", "http://[::ffff:1.2.3.4]:80"]
)
def test_pages(page: str):
    """A page is at an address, or at all of them."""
    assert decode(sent(replace(FACTS, page=page)), source=SOURCE, secrets=[SECRET]).facts.page == page


def test_what_cannot_be_told_is_left_out():
    """A name that no configuration can have, and an address that is none."""
    odd = replace(FACTS, name="lb 0", release="1" * 33, page="javascript://:1")
    found = decode(sent(odd), source=SOURCE, secrets=[SECRET]).facts
    assert (found.name, found.release, found.page) == ("", "", "")


def test_the_most_that_is_told_fits():
    """The longest texts, the most addresses and the most servers are one packet that every link carries."""
    servers = {server_key("p", str(each)): True for each in range(MOST_SERVERS)}
    most = replace(
        FACTS,
        name="n" * 64,
        release="1" * 32,
        page=f"https://[{'f' * 45}]:65535",
        marks=marks(map(str, range(MOST_MARKS + 5))),
        servers=servers,
    )
    assert len(most.marks) == MOST_MARKS
    assert len(sent(most)) <= MOST_BYTES
    assert decode(sent(most), source=SOURCE, secrets=[SECRET]).facts == most


def test_nodes_that_share_most_addresses_have_marks_in_common():
    """Of many addresses both choose the same ones."""
    many = [f"10.0.0.{each}" for each in range(60)]
    assert len(marks(many) & marks(many[1:])) >= MOST_MARKS - 1


def test_another_key_or_sender():
    """Another key is not believed, and nobody can send on what another node has told."""
    assert reason(sent(), secret=bytes(32)) is ReportDrop.DIGEST
    assert reason(sent(), source="192.0.2.9") is ReportDrop.DIGEST


def test_a_changed_bit():
    """Whatever bit is changed, and wherever it is cut, it is not believed."""
    for damaged in (*flips(sent()), *cuts(sent())):
        assert reason(damaged) in {ReportDrop.DIGEST, ReportDrop.LAYOUT}


@pytest.mark.parametrize(
    ("place", "value"),
    [
        pytest.param(0, b"LNG3", id="a report"),
        pytest.param(36, b"\x04", id="a condition that there is not"),
        pytest.param(37, b"\x11", id="more addresses than may be"),
        pytest.param(38, b"\x03", id="more servers than there are"),
        pytest.param(_TEXTS, b"\xff", id="a name longer than the datagram"),
        pytest.param(_TEXTS + 1, b"\x1b", id="a name that would change a terminal"),
        pytest.param(-1, b"\x02", id="neither up nor down"),
    ],
)
def test_another_layout_with_the_right_key(place: int, value: bytes):
    """What is signed by us and means nothing is an error of its layout."""
    body = bytearray(sent()[:-32])
    at = place % len(body)
    body[at : at + len(value)] = value
    assert reason(signed(bytes(body))) is ReportDrop.LAYOUT


def test_texts_are_missing():
    """A head without any text is an error of its layout."""
    assert reason(signed(sent()[:_TEXTS])) is ReportDrop.LAYOUT


@given(st.binary(max_size=300))
def test_garbage(data: bytes):
    """Any bytes give LingerReportError, and nothing else."""
    with suppress(LingerReportError):
        decode(data, source=SOURCE, secrets=[SECRET])
