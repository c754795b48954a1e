"""The file of the last hours: a ring of minutes."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.wire import history_ring
from appliance.wire.history_ring import (
    SIZE,
    SLOT_BYTES,
    SLOTS,
    FrontendMinute,
    HistoryError,
    Minute,
    PoolMinute,
)

pytestmark = pytest.mark.pure

COUNTS = FrontendMinute(connections=5, sessions=3, failed=1, bytes=900)


def minute(number: int, *, places: int = 1) -> Minute:
    """Return a minute with so many frontends and pools."""
    return Minute(
        number=number,
        total=COUNTS,
        frontends={f"frontend-{each}": COUNTS for each in range(places)},
        pools={f"pool-{each}": PoolMinute(5, 3, 2, 1) for each in range(places)},
    )


def file_with(*minutes: Minute) -> bytes:
    """Return a file into which these minutes were written, one after the other."""
    data = bytearray(history_ring.empty())
    for each in minutes:
        at = history_ring.place(each.number)
        data[at : at + SLOT_BYTES] = history_ring.encode(each)
    return bytes(data)


def test_what_was_written_is_read():
    """The oldest first, wherever the ring begins."""
    written = [minute(number) for number in range(SLOTS - 2, SLOTS + 2)]
    assert history_ring.decode(file_with(*written)) == tuple(written)


def test_an_empty_file():
    """It has its full size from the start."""
    assert len(history_ring.empty()) == SIZE
    assert history_ring.decode(history_ring.empty()) == ()


def test_the_oldest_minute_is_overwritten():
    """It never grows."""
    data = file_with(*(minute(number) for number in range(SLOTS + 1)))
    numbers = [each.number for each in history_ring.decode(data)]
    assert len(data) == SIZE
    assert numbers == list(range(1, SLOTS + 1))


@pytest.mark.parametrize("data", [b"", b"x" * SIZE, history_ring.empty()[:-1], history_ring.empty() + b"\0"])
def test_another_file(data: bytes):
    """Of another kind, version or length: it is no history."""
    with pytest.raises(HistoryError):
        history_ring.decode(data)


def test_a_torn_write_costs_its_minute():
    """The others are whole."""
    data = bytearray(file_with(minute(1), minute(2)))
    data[history_ring.place(1) + 20] ^= 1
    assert [each.number for each in history_ring.decode(bytes(data))] == [2]


@pytest.mark.parametrize("content", [b"null", b"[" * 3000, b'{"number":1}'])
def test_a_slot_of_somebody_else(content: bytes):
    """Its checksum is right, and it is no minute."""
    data = bytearray(history_ring.empty())
    slot = zlib.crc32(content).to_bytes(4, "big") + len(content).to_bytes(2, "big") + content
    data[SLOT_BYTES : SLOT_BYTES + len(slot)] = slot
    assert history_ring.decode(bytes(data)) == ()


def test_a_minute_at_a_wrong_place():
    """It is not believed."""
    data = bytearray(history_ring.empty())
    data[SLOT_BYTES : 2 * SLOT_BYTES] = history_ring.encode(minute(7))
    assert history_ring.decode(bytes(data)) == ()


@given(st.integers(0, 3000))
def test_a_minute_always_fits(places: int):
    """Names for which there is no room are left out, the last ones first."""
    slot = history_ring.encode(minute(9, places=places))
    (kept,) = history_ring.decode(file_with(minute(9, places=places)))
    assert len(slot) == SLOT_BYTES
    assert list(kept.frontends) == [f"frontend-{each}" for each in range(len(kept.frontends))]
    assert len(kept.frontends) == len(kept.pools) == (places if places < 40 else len(kept.pools))
    assert kept.total == COUNTS
