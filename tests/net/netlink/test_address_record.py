"""The record of addresses that may be ours."""

from pathlib import Path

import pytest

from appliance.net.netlink.address_record import AddressRecord

pytestmark = pytest.mark.pure

FOUR = ("eth0", "192.0.2.100/24")
SIX = ("eth0", "fd00::100/64")


def test_kept_for_the_next_life(tmp_path: Path):
    """What was recorded and not forgotten is there for another process."""
    path = tmp_path / "owned.json"
    record = AddressRecord(path)
    record.add([FOUR, SIX])
    record.discard([FOUR])
    assert record.entries == AddressRecord(path).entries == {SIX}


def test_nothing_recorded(tmp_path: Path):
    """Without a file nothing is ours, and none is made for nothing."""
    record = AddressRecord(tmp_path / "owned.json")
    record.add([])
    record.discard([FOUR])
    assert record.entries == set()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", [b"", b"[", b"7", b"[[1]]", b"[1]", b"\xff", b'{"a": 1, "b": 2}'])
def test_damaged(tmp_path: Path, damage: bytes):
    """A file that is no record claims nothing, and the next record takes its place."""
    path = tmp_path / "owned.json"
    path.write_bytes(damage)
    record = AddressRecord(path)
    assert record.entries == set()
    record.add([FOUR])
    assert AddressRecord(path).entries == {FOUR}


def test_cannot_be_written(tmp_path: Path):
    """Where recording fails that is an OSError, and what counts as ours is what is on disk."""
    record = AddressRecord(tmp_path / "absent" / "owned.json")
    with pytest.raises(OSError, match="No such file"):
        record.add([FOUR])
    assert record.entries == set()
