"""Which nodes a configuration names, and which of them this one is."""

import socket
from pathlib import Path

import pytest
from click import UsageError

from appliance.console.fleet.asking import Way, content, fleet_nodes
from appliance.console.fleet.ssh_commands import FleetNode, Transport
from appliance.console.output.refusal import Refused
from appliance.model.paths import Paths

pytestmark = pytest.mark.sockets

FILE = Path("appliance.yaml")


def names(text: bytes) -> list[str]:
    """Return the names of the nodes of a text."""
    return [each.name for each in fleet_nodes(FILE, text)]


def test_a_file_that_is_wrong_elsewhere_names_its_nodes():
    """A broken configuration is when the nodes have to be looked at."""
    assert names(b"nodes: {lb-0: {}, lb-1: {address: x}}\npools: 7\n") == ["lb-0", "lb-1"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"pools: {}\n", "appliance.yaml: it names no `nodes`"),
        (b"nodes: [\n", "appliance.yaml:2:1: "),
        (b"nodes: {'-oProxyCommand=x y': {}}\n", "appliance.yaml: nodes: '-oProxyCommand=x y' is not a name"),
    ],
)
def test_a_file_without_good_names_is_refused(text: bytes, said: str):
    """Its name comes first, and what is wrong."""
    with pytest.raises(Refused) as error:
        names(text)
    assert said in error.value.message.replace("`-o", "'-o").replace("y`", "y'")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path):
    """With its reason, and the option that names another."""
    with pytest.raises(Refused) as error:
        content(tmp_path / "none.yaml")
    assert "No such file" in error.value.message
    assert "--config" in error.value.format_message()


def test_this_node_is_known_by_host_name_or_variable(monkeypatch: pytest.MonkeyPatch):
    """With or without its domain."""
    text = b"nodes: {lb-0: {}, lb-1: {}}\n"
    monkeypatch.delenv("APPLIANCE_NODE", raising=False)
    monkeypatch.setattr(socket, "gethostname", lambda: "lb-1.example.com")
    assert fleet_nodes(FILE, text)[1] == FleetNode(name="lb-1", here=True)
    monkeypatch.setenv("APPLIANCE_NODE", "lb-0")
    assert [each.here for each in fleet_nodes(FILE, text)] == [True, False]


@pytest.mark.programs
def test_a_machine_without_ssh_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """It is no traceback."""
    monkeypatch.setenv("PATH", str(tmp_path))
    file = tmp_path / "appliance.yaml"
    file.write_text("nodes: {lb-0: {}}\n")
    way = Way(paths=Paths(config=file), transport=Transport(), timeout=1.0)
    with pytest.raises(Refused) as error:
        way.fleet().begin(FleetNode(name="lb-0", here=False), ["no-such-ssh"])
    assert "install `no-such-ssh`" in error.value.format_message()


def test_a_node_that_is_none_is_misuse(tmp_path: Path):
    """The names that there are follow."""
    file = tmp_path / "appliance.yaml"
    file.write_text("nodes: {lb-0: {}, lb-1: {}}\n")
    way = Way(paths=Paths(config=file), transport=Transport(), timeout=1.0, only=("lb-2",))
    with pytest.raises(UsageError, match="'lb-2' is none of `nodes`: lb-0, lb-1"):
        way.fleet()
