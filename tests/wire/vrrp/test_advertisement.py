"""VRRP messages: captures of real routers, every way to be wrong, and whatever else a network may bring."""

import dataclasses
import ipaddress
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzzing.damage import cuts, flips, ones_complement_sum

from appliance.model.drop_reasons import DropReason
from appliance.model.snapshot.virtual_router import Checksum
from appliance.wire.vrrp import advertisement
from appliance.wire.vrrp.advertisement import Advertisement, AuthType, VrrpError

pytestmark = pytest.mark.pure

V2 = bytes.fromhex("212abf03010af11f0a042a010a042a020a042a036162636465666768")
V3 = bytes.fromhex("312cbf0203e8b3c60a042c640a042cc8")
V3_MESSAGE = bytes.fromhex("3133c80100644402c0000264")
V3_IPV6 = bytes.fromhex("312dbf0203e8cfa0fe8000000000000002005efffe00022d200100000000000000000000abcd000a")
SOURCE = "10.0.0.91"
SOURCE_6 = "fe80::d6ca:6dff:fe66:cf60"
TRAILER = bytes(range(advertisement.HMAC_BYTES))

SAID_V2 = Advertisement(
    version=2,
    router_id=42,
    priority=191,
    interval=10.0,
    addresses=("10.4.42.1", "10.4.42.2", "10.4.42.3"),
    auth_type=AuthType.PASSWORD,
    password=b"abcdefgh",
)
SAID_V3 = Advertisement(
    version=3, router_id=44, priority=191, interval=10.0, addresses=("10.4.44.100", "10.4.44.200")
)
SAID_V3_MESSAGE = Advertisement(
    version=3, router_id=51, priority=200, interval=1.0, addresses=("192.0.2.100",)
)
SAID_V3_IPV6 = Advertisement(
    version=3,
    router_id=45,
    priority=191,
    interval=10.0,
    addresses=("fe80::200:5eff:fe00:22d", "2001::abcd:a"),
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """What was on the wire, what it says, and from whom."""

    wire: bytes
    said: Advertisement
    source: str
    checksum: Checksum = Checksum.PSEUDO_HEADER


CAPTURES = {
    "v2": Capture(wire=V2, said=SAID_V2, source=SOURCE),
    "v3": Capture(wire=V3, said=SAID_V3, source=SOURCE),
    "v3-message": Capture(
        wire=V3_MESSAGE, said=SAID_V3_MESSAGE, source="198.51.100.10", checksum=Checksum.MESSAGE
    ),
    "v3-ipv6": Capture(wire=V3_IPV6, said=SAID_V3_IPV6, source=SOURCE_6),
}
each_capture = pytest.mark.parametrize("capture", CAPTURES.values(), ids=CAPTURES.keys())

IPV4 = st.integers(0, 2**32 - 1).map(lambda number: str(ipaddress.IPv4Address(number)))
IPV6 = st.integers(0, 2**128 - 1).map(lambda number: str(ipaddress.IPv6Address(number)))
BYTES = st.integers(0, 255)
ROUTER_IDS = st.integers(1, 255)
HUNDREDTHS = st.integers(1, 4095).map(lambda number: number / 100)
PASSWORDS = st.binary(max_size=8).filter(lambda password: not password.endswith(b"\0"))


def lists(addresses: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    """Return lists of addresses, now and then the longest."""
    return st.one_of(
        st.lists(addresses, min_size=1, max_size=6), st.lists(addresses, min_size=1).map(longest)
    ).map(tuple)


def longest(addresses: list[str]) -> list[str]:
    """Return 255 addresses, the most that a message counts."""
    return (addresses * 255)[:255]


@st.composite
def version_2(draw: st.DrawFn) -> Advertisement:
    """Draw an advertisement of version 2."""
    auth_type = draw(st.sampled_from(AuthType))
    return Advertisement(
        version=2,
        router_id=draw(ROUTER_IDS),
        priority=draw(BYTES),
        interval=float(draw(st.integers(1, 255))),
        addresses=draw(lists(IPV4)),
        auth_type=auth_type,
        password=draw(PASSWORDS) if auth_type is AuthType.PASSWORD else b"",
    )


def version_3(addresses: st.SearchStrategy[str]) -> st.SearchStrategy[Advertisement]:
    """Return advertisements of version 3 for addresses of one family."""
    return st.builds(
        Advertisement,
        version=st.just(3),
        router_id=ROUTER_IDS,
        priority=BYTES,
        interval=HUNDREDTHS,
        addresses=lists(addresses),
    )


def group_of(source: str) -> str:
    """Return the multicast group of a sender's family."""
    return advertisement.MULTICAST_6 if ":" in source else advertisement.MULTICAST_4


def decoded(wire: bytes, *, source: str = SOURCE, trailer: bytes = b"") -> Advertisement:
    """Return what is read of a message that came to the group."""
    return advertisement.decode(wire, source=source, destination=group_of(source), trailer=trailer)


def encoded(
    said: Advertisement, *, source: str = SOURCE, checksum: Checksum = Checksum.PSEUDO_HEADER
) -> bytes:
    """Return the message that is sent to the group."""
    return advertisement.encode(said, source=source, destination=group_of(source), checksum=checksum)


def changed(wire: bytes, at: int, *values: int) -> bytes:
    """Return an IPv4 message with other bytes from offset `at`, and the checksum that is right for them."""
    message = bytearray(wire)
    message[at : at + len(values)] = bytes(values)
    message[6:8] = bytes(2)
    message[6:8] = (0xFFFF - ones_complement_sum(bytes(message))).to_bytes(2, "big")
    return bytes(message)


def reason(wire: bytes, *, source: str = SOURCE) -> DropReason:
    """Return why a message is dropped; fails where it is not."""
    with pytest.raises(VrrpError) as caught:
        decoded(wire, source=source)
    return caught.value.reason


@each_capture
def test_a_capture_is_read(capture: Capture):
    """Each captured message says what its sender was configured with, whichever checksum it has."""
    assert decoded(capture.wire, source=capture.source) == capture.said


@each_capture
def test_a_capture_is_written(capture: Capture):
    """We write every captured message byte by byte."""
    assert encoded(capture.said, source=capture.source, checksum=capture.checksum) == capture.wire


@given(version_2(), IPV4, st.sampled_from(Checksum))
def test_version_2_comes_back(said: Advertisement, source: str, checksum: Checksum):
    """What was sent by version 2 is read as it was meant; the configured checksum form is version 3's."""
    assert decoded(encoded(said, source=source, checksum=checksum), source=source) == said


@given(version_3(IPV4), IPV4, IPV4, st.sampled_from(Checksum))
def test_version_3_comes_back(said: Advertisement, source: str, destination: str, checksum: Checksum):
    """What was sent by version 3 over IPv4 is read as it was meant, with both forms of the checksum."""
    wire = advertisement.encode(said, source=source, destination=destination, checksum=checksum)
    assert advertisement.decode(wire, source=source, destination=destination) == said


@given(version_3(IPV6), IPV6, IPV6, st.sampled_from(Checksum))
def test_version_3_comes_back_over_ipv6(
    said: Advertisement, source: str, destination: str, checksum: Checksum
):
    """Over IPv6 the same holds, and the pseudo-header is covered whatever is configured."""
    wire = advertisement.encode(said, source=source, destination=destination, checksum=checksum)
    assert advertisement.decode(wire, source=source, destination=destination) == said


@given(version_3(IPV4), IPV4)
def test_the_checksum_is_that_of_the_rfc(said: Advertisement, source: str):
    """Both forms add up to 0xFFFF over what they cover, counted word by word (RFC 1071)."""
    message = encoded(said, source=source, checksum=Checksum.MESSAGE)
    covering = encoded(said, source=source, checksum=Checksum.PSEUDO_HEADER)
    ends = ipaddress.ip_address(source).packed + ipaddress.ip_address(advertisement.MULTICAST_4).packed
    head = ends + bytes((0, advertisement.PROTOCOL)) + len(covering).to_bytes(2, "big")
    assert ones_complement_sum(message) == 0xFFFF
    assert ones_complement_sum(head + covering) == 0xFFFF


def test_every_interval_of_version_3_is_exact():
    """No hundredth of a second is lost on the way, from 10 ms to 40.95 s."""
    intervals = [hundredths / 100 for hundredths in range(1, 4096)]
    said = [dataclasses.replace(SAID_V3, interval=interval) for interval in intervals]
    assert [decoded(encoded(each)).interval for each in said] == intervals


def test_a_short_password_is_filled_with_zeros():
    """A password of less than 8 bytes has zeros behind it, and is read without them."""
    wire = encoded(dataclasses.replace(SAID_V2, password=b"abc"))
    assert wire[-8:] == b"abc\0\0\0\0\0"
    assert decoded(wire).password == b"abc"


def test_a_long_password_is_cut():
    """Only the first 8 bytes of a password are sent, as keepalived does."""
    assert encoded(dataclasses.replace(SAID_V2, password=b"abcdefghij")) == V2


def test_data_without_authentication_is_ignored():
    """Without authentication nobody reads what stands in the password's place (RFC 3768 section 5.3.10)."""
    said = decoded(changed(V2, 4, 0))
    assert (said.auth_type, said.password) == (AuthType.NONE, b"")


def test_reserved_bits_are_ignored():
    """The four bits before version 3's interval may be anything (RFC 9568 section 5.2.6)."""
    assert decoded(changed(V3, 4, 0xF3)) == SAID_V3


def test_priority_zero_is_read():
    """Priority 0, the word of a leaving router, is a good priority."""
    assert decoded(encoded(dataclasses.replace(SAID_V3, priority=0))).priority == 0


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        pytest.param(b"", DropReason.TRUNCATED, id="empty"),
        pytest.param(V3[:7], DropReason.TRUNCATED, id="less than a head"),
        pytest.param(V3[:-1], DropReason.TRUNCATED, id="less than its addresses"),
        pytest.param(V2[:-8], DropReason.TRUNCATED, id="no authentication data"),
        pytest.param(V3 + b"\0", DropReason.TRAILING, id="a byte too many"),
        pytest.param(V2 + TRAILER, DropReason.TRAILING, id="a trailer behind version 2"),
        pytest.param(changed(V3, 0, 0x01), DropReason.VERSION, id="version 0"),
        pytest.param(changed(V3, 0, 0x11), DropReason.VERSION, id="version 1"),
        pytest.param(changed(V3, 0, 0x41), DropReason.VERSION, id="version 4"),
        pytest.param(changed(V3, 0, 0x30), DropReason.TYPE, id="type 0"),
        pytest.param(changed(V2, 0, 0x22), DropReason.TYPE, id="type 2"),
        pytest.param(changed(V3, 3, 0), DropReason.TRAILING, id="no addresses"),
        pytest.param(changed(V3, 3, 1), DropReason.TRAILING, id="more addresses than counted"),
        pytest.param(changed(V3, 3, 3), DropReason.TRUNCATED, id="less addresses than counted"),
        pytest.param(V3[:-1] + b"\0", DropReason.CHECKSUM, id="another address"),
        pytest.param(V2[:-1] + b"\0", DropReason.CHECKSUM, id="another password"),
        pytest.param(changed(V3, 1, 0), DropReason.ROUTER_ID, id="router id 0 of version 3"),
        pytest.param(changed(V2, 1, 0), DropReason.ROUTER_ID, id="router id 0 of version 2"),
        pytest.param(changed(V2, 4, 3), DropReason.AUTH_TYPE, id="unknown authentication"),
        pytest.param(changed(V2, 5, 0), DropReason.INTERVAL, id="no interval in version 2"),
        pytest.param(changed(V3, 4, 0xF0, 0), DropReason.INTERVAL, id="no interval in version 3"),
    ],
)
def test_each_fault_has_its_reason(wire: bytes, expected: DropReason):
    """Each field that is wrong is dropped for its own reason."""
    assert reason(wire) is expected


def test_version_2_is_not_spoken_over_ipv6():
    """A message of version 2 from an IPv6 address is one of no known version."""
    assert reason(V2, source=SOURCE_6) is DropReason.VERSION


def test_a_message_from_elsewhere_has_another_checksum():
    """The pseudo-header ties a message to its sender: the same bytes from another address are dropped."""
    assert reason(V3, source="10.0.0.92") is DropReason.CHECKSUM
    assert reason(V3_IPV6, source="fe80::1") is DropReason.CHECKSUM


def test_message_checksum_is_refused_over_ipv6():
    """Over IPv6 there is one checksum, the one with the pseudo-header (RFC 9568 section 5.2.8)."""
    body = V3_IPV6[:6] + bytes(2) + V3_IPV6[8:]
    bare = (0xFFFF - ones_complement_sum(body)).to_bytes(2, "big")
    assert reason(V3_IPV6[:6] + bare + V3_IPV6[8:], source=SOURCE_6) is DropReason.CHECKSUM


@pytest.mark.parametrize(
    ("said", "source"),
    [
        pytest.param(dataclasses.replace(SAID_V3, addresses=("10.0.0.1",) * 256), SOURCE, id="256 addresses"),
        pytest.param(SAID_V3, SOURCE_6, id="IPv4 addresses over IPv6"),
        pytest.param(SAID_V3_IPV6, SOURCE, id="IPv6 addresses over IPv4"),
        pytest.param(dataclasses.replace(SAID_V3_IPV6, version=2), SOURCE_6, id="version 2 over IPv6"),
        pytest.param(dataclasses.replace(SAID_V3, addresses=("web",)), SOURCE, id="a name"),
        pytest.param(dataclasses.replace(SAID_V3, router_id=0), SOURCE, id="router id 0"),
        pytest.param(dataclasses.replace(SAID_V3, router_id=256), SOURCE, id="router id 256"),
        pytest.param(dataclasses.replace(SAID_V3, priority=-1), SOURCE, id="priority -1"),
        pytest.param(dataclasses.replace(SAID_V3, priority=256), SOURCE, id="priority 256"),
        pytest.param(dataclasses.replace(SAID_V3, interval=0.004), SOURCE, id="4 ms"),
        pytest.param(dataclasses.replace(SAID_V3, interval=40.96), SOURCE, id="40.96 s"),
        pytest.param(dataclasses.replace(SAID_V2, interval=0.1), SOURCE, id="100 ms of version 2"),
        pytest.param(dataclasses.replace(SAID_V2, interval=256.0), SOURCE, id="256 s of version 2"),
    ],
)
def test_what_does_not_fit_is_not_sent(said: Advertisement, source: str):
    """A message that would say something else than it was told to is never made."""
    with pytest.raises(ValueError, match=r"."):
        encoded(said, source=source)


@each_capture
def test_a_part_is_truncated(capture: Capture):
    """A capture cut at any length is dropped as truncated, also by way of `split`."""
    for part in cuts(capture.wire):
        message, trailer = advertisement.split(part)
        assert reason(message, source=capture.source) is DropReason.TRUNCATED
        assert trailer == b""


@each_capture
def test_a_changed_bit_is_noticed(capture: Capture):
    """No capture with any one of its bits changed is used."""
    for damaged in flips(capture.wire):
        with pytest.raises(VrrpError):
            decoded(damaged, source=capture.source)


@given(st.one_of(st.binary(max_size=80), st.binary(max_size=1500)), st.one_of(IPV4, IPV6))
def test_garbage_never_escapes(wire: bytes, source: str):
    """Any bytes from anybody are an advertisement or dropped for a reason."""
    try:
        said = decoded(wire, source=source)
    except VrrpError:
        return
    assert said.addresses


@given(
    st.sampled_from([0x20, 0x21, 0x22, 0x31, 0x32, 0x41]),
    BYTES,
    BYTES,
    st.integers(0, 3),
    st.binary(max_size=40),
)
def test_well_summed_garbage_never_escapes(
    first: int, router_id: int, priority: int, count: int, rest: bytes
):
    """Nonsense with a right checksum is dropped too, or says only what can be said again."""
    body = rest.ljust(4, b"\0")
    wire = changed(bytes((first, router_id, priority, count)) + body + bytes(len(body) % 2), 0)
    with suppress(VrrpError):
        said = decoded(wire)
        assert decoded(encoded(said)) == said


@given(st.one_of(version_2(), version_3(IPV4)), IPV4, st.data())
def test_damage_never_escapes(said: Advertisement, source: str, data: st.DataObject):
    """A good message with some bytes changed, lost or added is an advertisement or dropped for a reason."""
    wire = bytearray(encoded(said, source=source))
    for at in data.draw(st.lists(st.integers(0, len(wire) - 1), max_size=4)):
        wire[at] = data.draw(BYTES)
    end = data.draw(st.integers(0, len(wire)))
    tail = data.draw(st.binary(max_size=32))
    message, _ = advertisement.split(bytes(wire[:end]) + tail)
    with suppress(VrrpError):
        assert decoded(message, source=source).addresses


@each_capture
def test_a_trailer_is_split_off(capture: Capture):
    """Behind version 3 of either family 28 bytes are the trailer, and without them there is none."""
    message, trailer = advertisement.split(capture.wire)
    assert (message, trailer) == (capture.wire, b"")
    if capture.said.version == 3:
        assert advertisement.split(capture.wire + TRAILER) == (capture.wire, TRAILER)
    assert decoded(message, source=capture.source, trailer=trailer) == capture.said


@pytest.mark.parametrize("extra", [count for count in range(1, 64) if count != advertisement.HMAC_BYTES])
def test_anything_else_behind_a_message_is_refused(extra: int):
    """What is behind a message and no whole trailer makes it dropped as trailing."""
    message, _ = advertisement.split(V3 + bytes(extra))
    assert reason(message) is DropReason.TRAILING


@pytest.mark.parametrize("width", [4, 16])
def test_no_trailer_is_taken_for_addresses(width: int):
    """For every number of addresses the length alone tells family and trailer apart."""
    for count in range(1, 256):
        message = bytes((0x31, 1, 100, count, 0, 100, 0, 0)) + bytes(count * width)
        assert advertisement.split(message) == (message, b"")
        assert advertisement.split(message + TRAILER) == (message, TRAILER)


@given(st.binary(max_size=200))
def test_splitting_loses_nothing(payload: bytes):
    """Both parts together are the payload, whatever it is."""
    message, trailer = advertisement.split(payload)
    assert message + trailer == payload
    assert len(trailer) in (0, advertisement.HMAC_BYTES)


@given(version_3(IPV6), IPV6, st.binary(min_size=28, max_size=28))
def test_the_checksum_covers_the_trailer_over_ipv6(said: Advertisement, source: str, trailer: bytes):
    """Over IPv6 message and trailer are one transport payload with one checksum."""
    destination = advertisement.MULTICAST_6
    wire = advertisement.with_trailer(
        encoded(said, source=source), trailer, source=source, destination=destination
    )
    ends = ipaddress.ip_address(source).packed + ipaddress.ip_address(destination).packed
    head = ends + len(wire).to_bytes(4, "big") + bytes((0, 0, 0, advertisement.PROTOCOL))
    message, split_off = advertisement.split(wire)
    assert ones_complement_sum(head + wire) == 0xFFFF
    assert split_off == trailer
    assert decoded(message, source=source, trailer=trailer) == said


@given(version_3(IPV4), IPV4, st.binary(min_size=28, max_size=28), st.sampled_from(Checksum))
def test_the_checksum_leaves_the_trailer_out_over_ipv4(
    said: Advertisement, source: str, trailer: bytes, checksum: Checksum
):
    """Over IPv4 the trailer is put behind a message that stays as it is."""
    message = encoded(said, source=source, checksum=checksum)
    wire = advertisement.with_trailer(message, trailer, source=source, destination=advertisement.MULTICAST_4)
    assert wire == message + trailer
    assert decoded(message, source=source, trailer=trailer) == said


def test_an_error_says_its_reason():
    """The text of an error is the word that log and counters use."""
    assert str(VrrpError(DropReason.HOP_LIMIT)) == "hop-limit"


@pytest.mark.parametrize("said", [SAID_V2, SAID_V3])
def test_an_election_may_be_about_no_address(said: Advertisement):
    """As keepalived has it: what is sent without addresses is understood so, with a trailer too."""
    nothing = dataclasses.replace(said, addresses=())
    message = encoded(nothing, source=SOURCE)
    assert advertisement.decode(message, source=SOURCE, destination=group_of(SOURCE)) == nothing
    assert advertisement.split(message) == (message, b"")
