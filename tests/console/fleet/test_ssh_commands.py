"""The command lines by which nodes are reached."""

import shlex
import subprocess
from pathlib import Path

import pytest

from appliance.console.fleet.ssh_commands import FleetNode, Transport
from appliance.net.process import python

pytestmark = pytest.mark.pure

THERE, HERE = FleetNode(name="lb-1", here=False), FleetNode(name="lb-0", here=True)


def test_another_node_is_reached_by_ssh():
    """The operator's options come first, as the first of two counts; the name is no option of ssh."""
    words = Transport(options=("User=root", "ConnectTimeout=3")).command(
        THERE, ["weight", "--", "a/b", "50%"]
    )
    assert words[:6] == ["ssh", "-T", "-o", "User=root", "-o", "ConnectTimeout=3"]
    assert "BatchMode=yes" in words
    assert words[-3:] == ["--", "lb-1", "appliance weight -- a/b 50%"]


def test_what_a_shell_would_read_is_quoted():
    """Words arrive as they are."""
    odd = "a b;$(c)'d'"
    assert shlex.split(Transport().command(THERE, ["drain", odd])[-1]) == ["appliance", "drain", odd]


def test_this_node_needs_no_ssh():
    """Its own command runs, with the words as they are."""
    assert Transport().command(HERE, ["status"]) == [*python.own_command(), "status"]


@pytest.mark.parametrize(
    ("via", "before"), [("podman", "podman exec --interactive appliance"), ("sudo", "sudo -n")]
)
def test_via(via: str, before: str):
    """The command stands behind that which leads to it, here and there."""
    transport = Transport(via=via)
    assert transport.command(THERE, ["status"])[-1] == f"{before} appliance status"
    assert transport.command(HERE, ["status"]) == [*before.split(), "appliance", "status"]


@pytest.mark.programs
@pytest.mark.parametrize("counts", [0, 1])
def test_a_sequence_ends_with_the_status_of_the_one_that_counts(tmp_path: Path, counts: int):
    """All are done, whatever the others return and say."""
    line = Transport().sequence(THERE, [["first", "a b"], ["second"]], counts=counts)[-1]
    function = 'appliance() { echo "$*"; echo "$*" >&2; : >"$1"; [ "$1" = first ]; }'
    script = f"{function}; eval {shlex.quote(shlex.split(line)[-1])}"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path)
    said = ("first a b\n", "second\n")[counts]
    assert (done.stdout, done.stderr, done.returncode) == (said, said, counts)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["first", "second"]
