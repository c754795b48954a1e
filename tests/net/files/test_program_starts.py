"""How often programs were started, over restarts of who counts."""

from pathlib import Path

import pytest

from appliance.model.paths import Paths
from appliance.net.files.program_starts import ProgramStarts, read

pytestmark = pytest.mark.programs


def test_counting_goes_on(tmp_path: Path):
    """Another supervisord goes on from the file."""
    paths = Paths(runtime=tmp_path, state=tmp_path)
    assert read(paths) == {}
    for name in ("health", "health", "reload"):
        ProgramStarts(paths).count(name)
    assert read(paths) == {"health": 2, "reload": 1}


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"health": "x"}', b'{"health": -3}', b"\xff"])
def test_a_damaged_file_counts_as_none(tmp_path: Path, content: bytes):
    """Counting begins anew, and the start goes on."""
    paths = Paths(runtime=tmp_path, state=tmp_path)
    paths.program_starts.write_bytes(content)
    assert read(paths) == {}
    ProgramStarts(paths).count("reload")
    assert read(paths)["reload"] == 1


def test_a_directory_in_its_place_is_moved_away(tmp_path: Path):
    """What is no file is renamed."""
    paths = Paths(runtime=tmp_path, state=tmp_path)
    paths.program_starts.mkdir()
    ProgramStarts(paths).count("reload")
    assert read(paths) == {"reload": 1}
