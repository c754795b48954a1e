"""The console of a machine without properties asks for what it needs, and keeps the answers."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.machines.guest import Guest, guest

from appliance.console.command import main

pytestmark = pytest.mark.programs


@pytest.fixture
def machine(tmp_path: Path) -> Guest:
    """Give a machine that was told nothing."""
    return guest(tmp_path)


def answered(machine: Guest, *lines: str) -> Result:
    """Type these lines."""
    typed = "".join(f"{each}\n" for each in lines)
    return CliRunner().invoke(main, ["guest", "setup", "--root", str(machine.root)], input=typed)


def test_answers_are_properties(machine: Guest):
    """They hold at the next start, and properties of a hypervisor replace them."""
    password = ("short", "short", "long enough", "long enough")
    done = answered(machine, *password, "lb-1", "10.0.0.11/24", "10.0.0.1", "", "")
    assert done.exit_code == 0
    assert "at least 8 characters" in done.stdout
    assert "long enough" not in done.stdout
    machine.apply()
    assert machine.report()["origin"] == "remembered"
    assert "Address=10.0.0.11/24" in machine.read("run/systemd/network/10-appliance.network")
    machine.vmware({"lb.hostname": "lb-2"})
    machine.apply()
    assert "DHCP=yes" in machine.read("run/systemd/network/10-appliance.network")


def test_a_wrong_answer_is_asked_again(machine: Guest):
    """With what is wrong about it; who wants may go on with the rest."""
    password = ("long enough",) * 2
    done = answered(machine, *password, "", "10.0.0.11", "", "", "", "n", "", "10.0.0.11/24", "none", "", "")
    assert done.exit_code == 0
    assert "has no prefix length" in done.stdout
    machine.apply()
    assert "Address=10.0.0.11/24" in machine.read("run/systemd/network/10-appliance.network")


def test_who_leaves_is_asked_at_the_next_start(machine: Guest):
    """Nothing is kept of half the answers."""
    assert answered(machine, "long enough", "long enough", "lb-1").exit_code == 1
    assert not (machine.root / "var/lib/appliance-guest").exists()
