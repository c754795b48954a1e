"""What operators said of servers survives on disk, whole or not at all."""

import stat
from pathlib import Path

import pytest

from appliance.model.server_states import AdminState
from appliance.net.files.operator_states import OperatorStatesError, load, save

pytestmark = pytest.mark.programs

STATES = {("pool", "a"): AdminState.DRAIN, ("pool", "b"): AdminState.MAINT, ("other", "a"): AdminState.MAINT}


def test_no_file_is_no_states(tmp_path: Path):
    """A fresh appliance has nobody in drain or maint."""
    assert load(tmp_path / "states.json") == {}


def test_states_are_read_back(tmp_path: Path):
    """What was saved last is loaded, and only its owner can read it; nothing is left beside it."""
    path = tmp_path / "state" / "states.json"
    save(path, {("pool", "z"): AdminState.DRAIN})
    save(path, STATES)
    assert load(path) == STATES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["states.json"]


@pytest.mark.parametrize("content", [b"", b"[]", b'{"pool": {"a": "gone"}}', b'{"pool": "drain"}', b"\xff"])
def test_a_file_that_says_something_else_is_the_one_error(tmp_path: Path, content: bytes):
    """Broken JSON, another shape and an unknown state name the file."""
    path = tmp_path / "states.json"
    path.write_bytes(content)
    with pytest.raises(OperatorStatesError, match=r"states\.json"):
        load(path)


def test_a_directory_that_cannot_be_written_is_the_one_error(tmp_path: Path):
    """The operator hears that the state could not be kept."""
    (tmp_path / "file").touch()
    with pytest.raises(OperatorStatesError, match="file"):
        save(tmp_path / "file" / "states.json", STATES)
