"""What this machine has of what virtual routers need."""

from pathlib import Path

import pytest

from appliance.model.machine_needs import Need, NeedKind
from appliance.net.tracking.here import objection

pytestmark = pytest.mark.programs


def interface(name: str) -> Need:
    """Return the need of an interface."""
    return Need(path=("virtual_ips", "api", "interface"), kind=NeedKind.INTERFACE, name=name)


def command(name: str) -> Need:
    """Return the need of a command."""
    return Need(path=("virtual_ips", "api", "notify", "any"), kind=NeedKind.COMMAND, name=name)


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
