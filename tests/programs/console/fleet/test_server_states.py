"""`appliance fleet drain`, `ready`, `maint`, `weight`, and `check`, on two appliances behind real sshds."""

import json
from collections.abc import Iterator

import pytest
from support.machines.fleet import Fleet, fleet
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.programs,
    pytest.mark.needs("ssh", "sshd"),
    pytest.mark.slow("two whole appliances; what asks all nodes is in test_status"),
]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Run two appliances that the tests of this module share."""
    with fleet(tmp_path_factory.mktemp("fleet")) as running:
        yield running


def states(pair: Fleet) -> list[object]:
    """Return the state of the server at each node."""
    return [each.status()["pools"][0]["servers"][0]["state"] for each in pair.nodes.values()]  # type: ignore[index]  # JSON


def test_a_server_is_drained_and_back_on_both(pair: Fleet):
    """Each node says what it did, under its name."""
    wait_until(lambda: states(pair) == ["up", "up"], what="it is up")
    shown = pair.command("drain", "masters/master-0").stdout.splitlines()
    assert shown == [
        f"{name}: masters/master-0: drain: no new connections, those it has go on" for name in pair.nodes
    ]
    assert states(pair) == ["drain", "drain"]
    found = pair.answer("maint", "masters/master-0")
    assert [each["answer"][0]["state"] for each in found["nodes"]] == ["maint", "maint"]  # type: ignore[attr-defined]  # JSON
    pair.command("weight", "masters/master-0", "50%")
    pair.command("weight", "masters/master-0", "100%")
    pair.command("ready", "masters/master-0")
    wait_until(lambda: states(pair) == ["up", "up"], what="it is up again")


def test_a_refusal_is_told_with_its_node(pair: Fleet):
    """A server that nobody has: both say so, and the exit status is 1."""
    done = pair.command("drain", "masters/master-9", check=False)
    assert done.returncode == 1
    for name in pair.nodes:
        assert f"{name}: Error: Invalid value for POOL/SERVER: there is no server 'masters/master-9'." in (
            done.stderr
        )


def test_one_that_is_down_keeps_no_other_from_it(pair: Fleet):
    """The other node has drained it, and the exit status is 1."""
    with pair.unreachable("lb-0"):
        done = pair.command("drain", "masters/master-0", "--json", check=False)
    assert done.returncode == 1
    assert [each["ok"] for each in json.loads(done.stdout)["nodes"]] == [False, True]
    assert states(pair)[1] == "drain"
    pair.command("ready", "masters/master-0")


def test_only_named_nodes_are_asked(pair: Fleet):
    """`--node` names them; one that the file does not have is misuse."""
    assert [each["name"] for each in pair.answer("status", "--node", "lb-1")["nodes"]] == ["lb-1"]  # type: ignore[attr-defined]  # JSON
    done = pair.command("status", "--node", "lb-7", check=False)
    assert (done.returncode, "'lb-7' is none of `nodes`: lb-0, lb-1" in done.stderr) == (2, True)


def test_every_verdict_of_a_file_is_shown(pair: Fleet):
    """Errors have the place in the file of here, once for each node; nothing is changed."""
    before = pair.texts()
    file = pair.write(defaults={"drain": "soon"})
    done = pair.command("check", str(file), check=False)
    assert done.returncode == 1
    for name in pair.nodes:
        assert f"{name}: {file}:" in done.stdout
        assert f"{name}: refused" in done.stdout
    assert pair.command("check").stdout.splitlines() == [f"{name}: ok" for name in pair.nodes]
    assert pair.texts() == before
