"""What a machine was given last is known at the next start."""

from pathlib import Path

import pytest

from appliance.guest.record import DIRECTORY, Record, digest_of
from appliance.model.guest.placement import Placed

pytestmark = pytest.mark.sockets


def test_what_was_kept_is_read_again(tmp_path: Path):
    """Nothing before the first time, then what was kept, for root alone."""
    placed = Placed(yaml="a", properties="b")
    assert (Record(tmp_path).environment(), Record(tmp_path).placed()) == (None, None)
    Record(tmp_path).keep_environment(b"<x/>")
    Record(tmp_path).keep_placed(placed)
    assert (Record(tmp_path).environment(), Record(tmp_path).placed()) == (b"<x/>", placed)
    assert (tmp_path / DIRECTORY).stat().st_mode & 0o777 == 0o700


def test_the_same_is_not_written_again(tmp_path: Path):
    """A start without changes leaves the disk alone."""
    file = tmp_path / DIRECTORY / "environment.xml"
    Record(tmp_path).keep_environment(b"<x/>")
    before = file.stat().st_ino
    Record(tmp_path).keep_environment(b"<x/>")
    assert file.stat().st_ino == before


def test_a_damaged_record_is_as_good_as_none(tmp_path: Path):
    """Then a file that is there counts as edited."""
    Record(tmp_path).keep_placed(Placed(yaml="a", properties="b"))
    (tmp_path / DIRECTORY / "record.json").write_text("{")
    assert Record(tmp_path).placed() is None


def test_the_order_of_properties_does_not_matter():
    """A hypervisor may write them in any order."""
    assert digest_of({"a": "1", "b": "2"}) == digest_of({"b": "2", "a": "1"})
    assert digest_of({"a": "1"}) != digest_of({"a": "2"})
