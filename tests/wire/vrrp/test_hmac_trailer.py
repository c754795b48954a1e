"""keepalived's HMAC trailer: the draft's two messages, and every way to forge, repeat or be late."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzzing.damage import cuts, flips

from appliance.model.drop_reasons import DropReason
from appliance.model.snapshot.virtual_router import AntiReplay, Hmac, HmacMode
from appliance.wire.vrrp import advertisement, hmac_trailer
from appliance.wire.vrrp.advertisement import VrrpError
from appliance.wire.vrrp.hmac_trailer import SENDERS, ReplayWindow, Sequence, Stamp

pytestmark = pytest.mark.pure

SECRET = bytes(range(32))
OTHER_SECRET = bytes(range(32, 96))
KEYS = {1: SECRET}
STAMP = Stamp(seconds=0x68000000, fraction=0x8000, counter=0)
IPV4 = bytes.fromhex("3133c80100644402c00002640101000068000000800000001b84bc4e8e43892dc6d98448f8ee2265")
IPV6 = bytes.fromhex(
    "3133c8010064a2e9fe800000000000000000000000000100010100006800000080000000c8c56146ebfd66ee10ec4d8186461b78"
)
VECTORS = pytest.mark.parametrize(
    ("wire", "source", "destination"),
    [
        pytest.param(IPV4, "198.51.100.10", advertisement.MULTICAST_4, id="ipv4"),
        pytest.param(IPV6, "fe80::10", "fe80::20", id="ipv6"),
    ],
)
NOW = 1_700_000_000.25
WINDOW = 5.0

SECONDS = st.integers(0, 2**32 - 1)
TICKS = st.integers(0, 2**16 - 1)
STAMPS = st.builds(Stamp, seconds=SECONDS, fraction=TICKS, counter=TICKS)


def accepted(wire: bytes, *, source: str, destination: str = advertisement.MULTICAST_4) -> Stamp:
    """Read a payload as a router does that enforces the trailer; raises VrrpError."""
    message, trailer = advertisement.split(wire)
    advertisement.decode(message, source=source, destination=destination, trailer=trailer)
    return hmac_trailer.verify(message, trailer, source=source, keys=KEYS)


def reason(message: bytes, trailer: bytes, *, source: str = "198.51.100.10") -> DropReason:
    """Return why a message with this trailer is dropped; fails where it is not."""
    with pytest.raises(VrrpError) as caught:
        hmac_trailer.verify(message, trailer, source=source, keys=KEYS)
    return caught.value.reason


def refusal(window: ReplayWindow, source: str, stamp: Stamp, now: float) -> DropReason:
    """Return why a stamp is dropped; fails where it is not."""
    with pytest.raises(VrrpError) as caught:
        window.check(source, stamp, now)
    return caught.value.reason


def at(now: float, *, counter: int = 0) -> Stamp:
    """Return the stamp of a clock that shows `now`."""
    return Stamp(seconds=int(now), fraction=int(now % 1 * 65536), counter=counter)


@VECTORS
def test_the_draft_is_read(wire: bytes, source: str, destination: str):
    """Both messages of the draft are sealed with its key at its time."""
    assert accepted(wire, source=source, destination=destination) == STAMP


@VECTORS
def test_the_draft_is_written(wire: bytes, source: str, destination: str):
    """We seal both messages of the draft byte by byte, whatever their checksum was before."""
    message, _ = advertisement.split(wire)
    sealed = hmac_trailer.sealed(
        message, source=source, destination=destination, key_id=1, secret=SECRET, clock=STAMP
    )
    assert sealed == wire


@VECTORS
def test_a_changed_bit_is_noticed(wire: bytes, source: str, destination: str):
    """No message of the draft with any one of its bits changed is used, checksum included."""
    for damaged in flips(wire):
        with pytest.raises(VrrpError):
            accepted(damaged, source=source, destination=destination)


@VECTORS
def test_the_digest_alone_notices_a_changed_bit(wire: bytes, source: str, destination: str):
    """Without the checksum's help every bit counts but those of the checksum, which routers may rewrite."""
    message, trailer = advertisement.split(wire)
    for at_bit, damaged in enumerate(flips(message)):
        if at_bit // 8 in (6, 7):
            assert hmac_trailer.verify(damaged, trailer, source=source, keys=KEYS) == STAMP
        else:
            assert reason(damaged, trailer, source=source) is DropReason.HMAC_DIGEST
    assert destination


@VECTORS
def test_a_part_of_a_trailer_is_no_trailer(wire: bytes, source: str, destination: str):
    """A trailer cut at any length is no seal, and a message with a part of one behind it is dropped."""
    message, trailer = advertisement.split(wire)
    for part in cuts(trailer):
        assert reason(message, part, source=source) is DropReason.TRAILING
    for part in list(cuts(trailer))[1:]:
        with pytest.raises(VrrpError):
            accepted(message + part, source=source, destination=destination)


@pytest.mark.parametrize(
    ("offset", "value", "expected"),
    [
        pytest.param(0, 0, DropReason.HMAC_TYPE, id="type 0"),
        pytest.param(0, 2, DropReason.HMAC_TYPE, id="type 2"),
        pytest.param(1, 2, DropReason.HMAC_KEY, id="another key id"),
        pytest.param(2, 1, DropReason.HMAC_TYPE, id="reserved, first byte"),
        pytest.param(3, 1, DropReason.HMAC_TYPE, id="reserved, second byte"),
        pytest.param(4, 0, DropReason.HMAC_DIGEST, id="seconds"),
        pytest.param(8, 0, DropReason.HMAC_DIGEST, id="fraction"),
        pytest.param(11, 1, DropReason.HMAC_DIGEST, id="counter"),
        pytest.param(12, 0, DropReason.HMAC_DIGEST, id="digest, first byte"),
        pytest.param(27, 0, DropReason.HMAC_DIGEST, id="digest, last byte"),
    ],
)
def test_each_fault_has_its_reason(offset: int, value: int, expected: DropReason):
    """Each field of the trailer that is wrong is dropped for its own reason."""
    message, trailer = advertisement.split(IPV4)
    damaged = bytearray(trailer)
    damaged[offset] = value
    assert reason(message, bytes(damaged)) is expected


def test_a_seal_is_bound_to_its_sender():
    """The same bytes from another address are forged."""
    message, trailer = advertisement.split(IPV4)
    assert reason(message, trailer, source="198.51.100.11") is DropReason.HMAC_DIGEST


def test_a_seal_is_bound_to_its_family():
    """An IPv4 sender's seal is none of the IPv6 address that starts with the same bytes."""
    message, trailer = advertisement.split(IPV4)
    assert reason(message, trailer, source="c633:640a::") is DropReason.HMAC_DIGEST


def test_too_short_a_message_is_truncated():
    """A message without a whole head is not looked at."""
    assert reason(IPV4[:7], IPV4[-28:]) is DropReason.TRUNCATED


def test_keys_are_rolled_one_after_the_other():
    """With two keys configured both are accepted, each under its own id only."""
    message, _ = advertisement.split(IPV4)
    keys = {1: SECRET, 255: OTHER_SECRET}
    for key_id, secret in keys.items():
        trailer = hmac_trailer.seal(message, source="10.0.0.1", key_id=key_id, secret=secret, clock=STAMP)
        assert hmac_trailer.verify(message, trailer, source="10.0.0.1", keys=keys) == STAMP
    crossed = hmac_trailer.seal(message, source="10.0.0.1", key_id=1, secret=OTHER_SECRET, clock=STAMP)
    assert reason(message, crossed, source="10.0.0.1") is DropReason.HMAC_DIGEST


@given(st.binary(min_size=8, max_size=80), STAMPS, st.binary(min_size=32, max_size=64), st.integers(1, 255))
def test_what_was_sealed_is_verified(message: bytes, stamp: Stamp, secret: bytes, key_id: int):
    """Every seal is recognised with its key, and tells when it was made."""
    trailer = hmac_trailer.seal(message, source="fe80::1", key_id=key_id, secret=secret, clock=stamp)
    assert hmac_trailer.verify(message, trailer, source="fe80::1", keys={key_id: secret}) == stamp


@given(st.binary(max_size=60), st.binary(max_size=40))
def test_garbage_never_escapes(message: bytes, trailer: bytes):
    """Any bytes are dropped for a reason: nobody guesses a digest."""
    assert reason(message, trailer) in DropReason


@given(st.binary(max_size=16))
def test_a_well_headed_trailer_never_escapes(rest: bytes):
    """A trailer whose head is right and whose digest is not is dropped for its digest."""
    trailer = IPV4[12:24] + rest.rjust(16, b"\0")
    assert reason(IPV4[:12], trailer) is DropReason.HMAC_DIGEST


def test_a_clock_makes_the_stamps():
    """A stamp is seconds, 65536ths of a second, and a counter that starts at zero."""
    assert Sequence(WINDOW).next(NOW) == Stamp(seconds=1_700_000_000, fraction=16384, counter=0)


def test_a_clock_that_stands_is_counted_on():
    """Messages within one tick of the clock have growing counters."""
    sequence = Sequence(WINDOW)
    assert [sequence.next(NOW).counter for _ in range(3)] == [0, 1, 2]


def test_the_counter_carries():
    """The message after 65536 of one tick is in the next tick."""
    sequence = Sequence(WINDOW)
    *_, last = (sequence.next(NOW) for _ in range(65537))
    assert last == Stamp(seconds=1_700_000_000, fraction=16385, counter=0)


def test_a_clock_set_back_a_little_is_counted_on():
    """Within the window the stamps grow although the clock does not."""
    sequence = Sequence(WINDOW)
    sequence.next(NOW)
    assert sequence.next(NOW - 5) == at(NOW, counter=1)


def test_a_clock_set_back_far_is_followed():
    """Beyond the window receivers would drop the stamps anyway: they start anew with the clock."""
    sequence = Sequence(WINDOW)
    sequence.next(NOW + 3600)
    assert sequence.next(NOW) == at(NOW)


def test_the_seconds_wrap():
    """After 32 bits of seconds, in 2106, the sequence goes on from zero."""
    sequence, window = Sequence(WINDOW), ReplayWindow(WINDOW)
    before, after = 2.0**32 - 1, 2.0**32 + 0.5
    window.check("10.0.0.1", sequence.next(before), before)
    window.check("10.0.0.1", sequence.next(after), after)
    assert sequence.next(after).seconds == 0


@given(st.lists(st.floats(-2, 2).map(lambda step: NOW + step), min_size=1, max_size=30))
def test_every_message_of_a_wavering_clock_is_accepted(times: list[float]):
    """While the sender's clock wavers within the window, the receiver accepts every message, once."""
    sequence, window = Sequence(WINDOW), ReplayWindow(WINDOW)
    for now in times:
        stamp = sequence.next(now)
        window.check("10.0.0.1", stamp, NOW)
        assert refusal(window, "10.0.0.1", stamp, NOW) is DropReason.HMAC_REPLAY


def test_a_replay_is_dropped():
    """The stamp heard last and every earlier one are replays, a later one is not."""
    window = ReplayWindow(WINDOW)
    window.check("10.0.0.1", at(NOW, counter=5), NOW)
    assert refusal(window, "10.0.0.1", at(NOW, counter=5), NOW) is DropReason.HMAC_REPLAY
    assert refusal(window, "10.0.0.1", at(NOW, counter=4), NOW) is DropReason.HMAC_REPLAY
    assert refusal(window, "10.0.0.1", at(NOW - 1), NOW) is DropReason.HMAC_REPLAY
    window.check("10.0.0.1", at(NOW, counter=6), NOW)


def test_senders_are_told_apart():
    """Each sender has a sequence of its own."""
    window = ReplayWindow(WINDOW)
    window.check("10.0.0.1", at(NOW), NOW)
    window.check("10.0.0.2", at(NOW - 1), NOW)


@pytest.mark.parametrize("skew", [-6, 6, -3600, 3600, 2**31])
def test_a_clock_out_of_the_window_is_dropped(skew: int):
    """What is said by a clock more than the window behind or ahead is dropped for its time."""
    assert refusal(ReplayWindow(WINDOW), "10.0.0.1", at(NOW + skew), NOW) is DropReason.HMAC_TIME


@pytest.mark.parametrize("skew", [-5, 0, 5])
def test_a_clock_within_the_window_is_heard(skew: int):
    """The window's ends are inside, in whole seconds as keepalived counts them."""
    window = ReplayWindow(WINDOW)
    window.check("10.0.0.1", at(NOW + skew), NOW)
    assert refusal(window, "10.0.0.1", at(NOW + skew), NOW) is DropReason.HMAC_REPLAY


def test_a_refused_stamp_changes_nothing():
    """A stamp out of the window is not remembered: the sender's good ones are heard after it."""
    window = ReplayWindow(WINDOW)
    assert refusal(window, "10.0.0.1", at(NOW + 3600), NOW) is DropReason.HMAC_TIME
    window.check("10.0.0.1", at(NOW), NOW)


def test_a_sender_whose_clock_was_set_right_is_heard():
    """A last stamp that is out of the window by now stands in nobody's way."""
    window = ReplayWindow(WINDOW)
    window.check("10.0.0.1", at(NOW), NOW)
    window.check("10.0.0.1", at(NOW - 3600), NOW - 3600)


def test_senders_are_remembered_in_a_bounded_number():
    """The sender that was silent longest is forgotten first, others are still protected."""
    window = ReplayWindow(WINDOW)
    for number in range(SENDERS):
        window.check(f"10.0.0.{number}", at(NOW), NOW)
    window.check("10.0.0.0", at(NOW, counter=1), NOW)
    window.check("10.0.1.0", at(NOW), NOW)
    assert refusal(window, "10.0.0.0", at(NOW, counter=1), NOW) is DropReason.HMAC_REPLAY
    assert refusal(window, "10.0.0.2", at(NOW), NOW) is DropReason.HMAC_REPLAY
    window.check("10.0.0.1", at(NOW), NOW)


@given(
    st.lists(
        st.tuples(st.sampled_from(["10.0.0.1", "10.0.0.2"]), st.integers(-8, 8), st.integers(0, 2)),
        max_size=40,
    )
)
def test_nothing_is_heard_twice(said: list[tuple[str, int, int]]):
    """While time goes on, no stamp of a sender is accepted a second time, in whatever order they come."""
    window = ReplayWindow(WINDOW)
    heard = []
    for step, (source, skew, counter) in enumerate(said):
        stamp = at(NOW + skew, counter=counter)
        with suppress(VrrpError):
            window.check(source, stamp, NOW + step)
            heard.append((source, stamp))
    assert len(heard) == len(set(heard))


def test_version_2_is_sealed_behind_its_authentication_data():
    """The default of keepalived: the trailer follows 8 bytes of zeros, and the seal is the version's."""
    said = advertisement.Advertisement(
        version=2, router_id=51, priority=100, interval=1.0, addresses=("192.0.2.100",)
    )
    message = advertisement.encode(said, source="198.51.100.10", destination=advertisement.MULTICAST_4)
    wire = hmac_trailer.sealed(
        message,
        source="198.51.100.10",
        destination=advertisement.MULTICAST_4,
        key_id=1,
        secret=SECRET,
        clock=STAMP,
    )
    assert wire[: len(message)] == message
    assert len(wire) == len(message) + advertisement.HMAC_BYTES
    assert accepted(wire, source="198.51.100.10") == STAMP
    as_version_3 = bytes((0x31, *message[1:]))
    assert reason(as_version_3, wire[len(message) :]) is DropReason.HMAC_DIGEST


def test_without_a_window_no_clock_is_looked_at():
    """`anti_replay: monotonic` asks only that stamps grow, and forgets none."""
    window = ReplayWindow(None)
    window.check("192.0.2.1", at(NOW - 3600), NOW)
    assert refusal(window, "192.0.2.1", at(NOW - 3600), NOW + 7200) is DropReason.HMAC_REPLAY
    window.check("192.0.2.1", at(NOW - 3599), NOW + 7200)


def test_without_a_window_a_clock_set_back_far_is_counted_on():
    """Who forgets nothing has to be told more each time."""
    sequence = Sequence(None)
    first, second = sequence.next(NOW), sequence.next(NOW - 3600)
    window = ReplayWindow(None)
    window.check("192.0.2.1", first, NOW)
    window.check("192.0.2.1", second, NOW)


@pytest.mark.parametrize(("anti_replay", "expected"), [(AntiReplay.TIME, 7.0), (AntiReplay.MONOTONIC, None)])
def test_the_window_is_for_clocks(anti_replay: AntiReplay, expected: float | None):
    """It means nothing where they are not looked at."""
    hmac = Hmac(keys=(), send=1, mode=HmacMode.ENFORCE, time_window=7.0, anti_replay=anti_replay)
    assert hmac_trailer.window(hmac) == expected
