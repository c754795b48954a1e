"""Counts that outlive who counts."""

from pathlib import Path

import pytest

from appliance.net.files.kept_counts import KeptCounts, read

pytestmark = pytest.mark.sockets


def test_counting_goes_on(tmp_path: Path):
    """Another process goes on from the file; names that are known from the start are at 0."""
    path = tmp_path / "counts.json"
    assert read(path) == {}
    for name in ("health", "health", "reload"):
        KeptCounts(path).count(name)
    assert read(path) == {"health": 2, "reload": 1}
    assert KeptCounts(path, names=["stats", "reload"]).counts == {"stats": 0, "health": 2, "reload": 1}


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"health": "x"}', b'{"health": -3}', b"\xff"])
def test_a_damaged_file_counts_as_none(tmp_path: Path, content: bytes):
    """Counting begins anew, and the start goes on."""
    path = tmp_path / "counts.json"
    path.write_bytes(content)
    assert read(path) == {}
    KeptCounts(path).count("reload")
    assert read(path)["reload"] == 1


def test_a_directory_in_its_place_is_moved_away(tmp_path: Path):
    """What is no file is renamed."""
    path = tmp_path / "counts.json"
    path.mkdir()
    KeptCounts(path).count("reload")
    assert read(path) == {"reload": 1}
