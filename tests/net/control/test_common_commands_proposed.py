"""What was prepared is committed; a process that has not prepared it reads it."""

from pathlib import Path

import pytest
from support.values.snapshots import snapshot

from appliance.model.paths import Paths
from appliance.model.snapshot import snapshot as model
from appliance.net.control.common_commands import ProposedSnapshot
from appliance.wire.lines.control import ControlError

pytestmark = pytest.mark.sockets


@pytest.fixture
def proposed(tmp_path: Path) -> ProposedSnapshot:
    """Give one whose runtime directory has the snapshots 1 and 2."""
    paths = Paths(runtime=tmp_path, state=tmp_path)
    paths.snapshot(1).parent.mkdir()
    for number in (1, 2):
        paths.snapshot(number).write_bytes(model.encode(snapshot(number=number)))
    return ProposedSnapshot(paths)


def test_what_is_held_is_taken_once(proposed: ProposedSnapshot):
    """The same object, and nothing is held afterwards."""
    held = proposed.read(1)
    assert proposed.number is None
    proposed.hold(held)
    assert proposed.number == 1
    assert proposed.take(1) is held
    assert proposed.number is None
    assert proposed.take(1) == held


def test_another_one_is_read(proposed: ProposedSnapshot):
    """A commit of another number than was prepared."""
    proposed.hold(proposed.read(1))
    assert proposed.take(2).number == 2
    assert proposed.number is None
    with pytest.raises(ControlError, match="no snapshot 3"):
        proposed.take(3)


def test_an_abort_of_another_one_changes_nothing(proposed: ProposedSnapshot):
    """Only the one that is named is forgotten."""
    proposed.hold(proposed.read(1))
    proposed.forget(2)
    assert proposed.number == 1
    proposed.forget(1)
    assert proposed.number is None
