"""What this machine has of what virtual routers need."""

import os
import tempfile
from pathlib import Path

import pytest

from appliance.model.rules.machine_needs import MachineNeed, MachineNeedKind
from appliance.net.scripts.machine_needs import objection

pytestmark = pytest.mark.sockets

NOBODY = 65534


def interface(name: str) -> MachineNeed:
    """Return the need of an interface."""
    return MachineNeed(path=("virtual_ips", "api", "interface"), kind=MachineNeedKind.INTERFACE, name=name)


def command(name: str) -> MachineNeed:
    """Return the need of a command."""
    return MachineNeed(path=("virtual_ips", "api", "notify", "any"), kind=MachineNeedKind.COMMAND, name=name)


def test_interfaces_are_there_or_those_that_are_are_named():
    """What is meant can be read from the answer."""
    assert objection(interface("lo")) is None
    said = objection(interface("eth99"))
    assert said is not None
    assert "`eth99`" in said
    assert "lo" in said


def test_commands_are_executable_files(tmp_path: Path):
    """By a path, or by a name that is looked for where commands are started from."""
    script = tmp_path / "script"
    assert objection(command(str(script))) == f"`{script}` does not exist here"
    script.touch()
    assert objection(command(str(script))) == f"`{script}` is no executable file"
    script.chmod(0o755)
    assert objection(command(str(script))) is None
    assert objection(command(str(tmp_path))) == f"`{tmp_path}` is no executable file"
    assert objection(command("true")) is None
    assert "no command `lb-no-such-command`" in str(objection(command("lb-no-such-command")))


def test_a_name_that_cannot_be_looked_at_is_an_answer():
    """The look is another thread's work, and an error there would leave a reload without its answer."""
    long = f"/{'x' * 300}"
    assert objection(command(long)) == f"`{long}`: File name too long"


@pytest.mark.needs(root=True)
@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_what_only_its_user_may_see_is_not_missing(mode: int):
    """A script that another `user` runs, also in a directory that the program may not enter."""
    with tempfile.TemporaryDirectory() as home:
        script = Path(home) / "script"
        script.touch(mode=0o700)
        Path(home).chmod(mode)
        os.seteuid(NOBODY)
        try:
            assert objection(command(str(script))) is None
        finally:
            os.seteuid(0)
