"""What operators said of servers survives on disk, whole or not at all."""

import json
import stat
from pathlib import Path

import pytest

from appliance.health.kept_by_operator import STATES, WEIGHTS, OperatorOverridesError, load, save
from appliance.model.server_states import AdminState
from appliance.model.server_weights import OperatorWeight

pytestmark = pytest.mark.sockets

SAID = {("pool", "a"): AdminState.DRAIN, ("pool", "b"): AdminState.MAINT, ("other", "a"): AdminState.MAINT}


def test_no_file_is_no_states(tmp_path: Path):
    """A fresh appliance has nobody in drain or maint."""
    assert load(tmp_path / "states.json", STATES) == {}


def test_states_are_read_back(tmp_path: Path):
    """What was saved last is loaded, and only its owner can read it; nothing is left beside it."""
    path = tmp_path / "state" / "states.json"
    save(path, STATES, {("pool", "z"): AdminState.DRAIN})
    save(path, STATES, SAID)
    assert load(path, STATES) == SAID
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["states.json"]


def test_weights_are_read_back(tmp_path: Path):
    """Absolute ones and parts of the configured one are told apart."""
    path = tmp_path / "weights.json"
    said = {
        ("pool", "a"): OperatorWeight(value=50, percent=True),
        ("pool", "b"): OperatorWeight(value=50, percent=False),
    }
    save(path, WEIGHTS, said)
    assert load(path, WEIGHTS) == said


@pytest.mark.parametrize("text", ["", "%", "-1", "257", "1.5", "50 %", "\u0661", "9" * 5000, "drain"])
def test_what_is_no_weight_is_the_one_error(tmp_path: Path, text: str):
    """The file is set aside for it, by whoever reads it."""
    path = tmp_path / "weights.json"
    path.write_text(json.dumps({"pool": {"a": text}}))
    with pytest.raises(OperatorOverridesError, match=r"weights\.json"):
        load(path, WEIGHTS)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"pool": {"a": "gone"}}', b'{"pool": "drain"}', b"\xff"])
def test_a_file_that_says_something_else_is_the_one_error(tmp_path: Path, content: bytes):
    """Broken JSON, another shape and an unknown state name the file."""
    path = tmp_path / "states.json"
    path.write_bytes(content)
    with pytest.raises(OperatorOverridesError, match=r"states\.json"):
        load(path, STATES)


def test_a_directory_that_cannot_be_written_is_the_one_error(tmp_path: Path):
    """The operator hears that the state could not be kept."""
    (tmp_path / "file").touch()
    with pytest.raises(OperatorOverridesError, match="file"):
        save(tmp_path / "file" / "states.json", STATES, SAID)
