"""`appliance fleet status` of two appliances behind real sshds."""

import hashlib
import json
import socket
from collections.abc import Iterator

import pytest
from support.machines.fleet import Fleet, fleet
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.programs, pytest.mark.needs("ssh", "sshd")]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Run two appliances that the tests of this module share."""
    with fleet(tmp_path_factory.mktemp("fleet")) as running:
        yield running


def digests(pair: Fleet) -> list[object]:
    """Return the digest that each node shows."""
    return [each["digest"] for each in pair.answer("status")["nodes"]]  # type: ignore[attr-defined]  # JSON


@pytest.mark.promise("docs/fleet.md", "`fleet status` shows release and digest of each node")
def test_both_are_in_one_table(pair: Fleet):
    """Each node has a line with its release and the digest that `sha256sum` shows of the file."""
    digest = hashlib.sha256(pair.file.read_bytes()).hexdigest()
    wait_until(lambda: digests(pair) == [digest, digest], what="both have read their file", timeout=60.0)
    shown = pair.command("status", check=False)
    for line, name in zip(shown.stdout.splitlines()[1:3], ("lb-0", "lb-1"), strict=True):
        assert line.split()[0] == name
        assert digest[:12] in line
    assert "lb-0: has answered" in shown.stderr


def test_a_node_that_cannot_be_reached_is_named(pair: Fleet):
    """One has no sshd, the other answers nevertheless; the exit status is 1, and `--json` has the reason."""
    done = pair.command("status", "--json", "--ssh-option", "Port=1", check=False)
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert [each["ok"] for each in found["nodes"]] == [False, False]
    assert all("port 1" in each["trouble"] for each in found["nodes"])
    assert found["problems"][0].startswith("lb-0: ssh: connect to host 127.0.0.1 port 1")


@pytest.mark.slow("waits for the time-out of ssh")
def test_a_node_that_says_nothing_costs_the_timeout(pair: Fleet):
    """An sshd that takes connections and is silent is named after the time that is given to a step."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = f"Port={silent.getsockname()[1]}"
        found = pair.answer("status", "--timeout", "2", "--ssh-option", port)
    assert found["problems"] == ["lb-0: no answer within 2 s", "lb-1: no answer within 2 s"]


def test_this_node_is_asked_without_ssh(pair: Fleet):
    """On a node, its own command runs here."""
    node = pair.nodes["lb-0"]
    done = node.command("fleet", "status", "--json", "--ssh-option", "Port=1", check=False)
    found = json.loads(done.stdout)
    assert found["nodes"][0]["ok"]
    assert found["nodes"][1]["trouble"]


def test_a_file_without_nodes_is_refused(pair: Fleet):
    """The file and the key that is missing are named."""
    file = pair.folder / "alone.yaml"
    file.write_text("pools: {}\n")
    done = pair.command("status", "--config", str(file), check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: {file}: it names no `nodes`\nNext: ")
