"""`appliance fleet push` to two appliances behind real sshds: on both, or on none."""

import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest
import yaml
from support.machines.fleet import Fleet, fleet
from support.processes.processes import children, kill
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.programs, pytest.mark.needs("ssh", "sshd")]

_MOMENTS = 16


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Run two appliances that the tests of this module share."""
    with fleet(tmp_path_factory.mktemp("fleet")) as running:
        yield running


def outcomes(found: dict[str, object]) -> list[object]:
    """Return what became of each node."""
    return [each["outcome"] for each in found["nodes"]]  # type: ignore[attr-defined]  # JSON


def accepted(pair: Fleet) -> list[object]:
    """Return the digest of the configuration that each node says it uses."""
    return [each.ask("reload", "status")["digest"] for each in pair.nodes.values()]


def drains(pair: Fleet, seconds: int) -> bytes:
    """Write a configuration with another drain time, and return it."""
    return pair.write(defaults={"drain": f"{seconds}s"}).read_bytes()


@pytest.mark.promise("docs/fleet.md", "a push is accepted on all nodes")
def test_both_accept_it(pair: Fleet):
    """Both have the file and use it, the one before is beside it, and pushed again nothing changes."""
    before = pair.texts()
    content = drains(pair, 51)
    found = pair.answer("push", str(pair.folder / "pushed.yaml"))
    assert outcomes(found) == ["accepted", "accepted"]
    assert (found["ok"], found["digest"]) == (True, hashlib.sha256(content).hexdigest())
    assert pair.texts() == [content.decode()] * 2
    assert accepted(pair) == [found["digest"]] * 2
    formers = [each.paths.config.with_name("appliance.yaml.former") for each in pair.nodes.values()]
    assert [each.read_text() for each in formers] == before
    numbers = [each.accepted() for each in pair.nodes.values()]
    again = pair.command("push", str(pair.folder / "pushed.yaml"))
    assert again.stdout.splitlines() == [
        "lb-0: accepted",
        "lb-1: accepted",
        f"Accepted on all nodes: {pair.folder}/pushed.yaml.",
    ]
    assert numbers == [each.accepted() for each in pair.nodes.values()]


@pytest.mark.slow("the same way as above")
def test_a_warning_is_printed_once_a_node(pair: Fleet):
    """Check and apply both find it; its place is that of the pushed file."""
    pools = yaml.safe_load(pair.file.read_text())["pools"]
    file = pair.write(pools={**pools, "spare": {"servers": {"a": {"address": "127.0.0.1:9"}}}})
    done = pair.command("push", str(file))
    warnings = [line for line in done.stderr.splitlines() if "warning: " in line]
    [line] = [number for number, text in enumerate(file.read_text().splitlines(), 1) if text == "  spare:"]
    said = f"warning: {file}:{line}:3: pools.spare: no frontend uses this pool"
    assert warnings == [f"{name}: {said}" for name in pair.nodes]
    nodes = pair.answer("push", str(file))["nodes"]
    assert [len(each["warnings"]) for each in nodes] == [1, 1]  # type: ignore[attr-defined]  # JSON


@pytest.mark.promise("docs/fleet.md", "what one node cannot apply, none has")
def test_what_one_cannot_apply_none_has(pair: Fleet):
    """A port of lb-1 is another program's: lb-0, which had applied it, has its file and frontends again."""
    before = pair.texts()
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        config = yaml.safe_load(pair.file.read_text())
        frontend = config["api"]["frontends"]["kube-api"]
        frontend["bind"]["lb-1"] = [f"127.0.0.1:{foreign.getsockname()[1]}"]
        file = pair.write(api=config["api"], defaults={"drain": "52s"})
        done = pair.command("push", str(file), check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "Refused: all nodes have the configuration before."
    assert [line for line in done.stderr.splitlines() if line.startswith("lb-1: ") and "in use" in line]
    assert pair.texts() == before
    assert accepted(pair) == [hashlib.sha256(each.encode()).hexdigest() for each in before]


@pytest.mark.slow("the same way as above")
def test_what_one_refuses_is_written_nowhere(pair: Fleet):
    """Errors are named with node, file, line and key, and no file was touched."""
    before, stamps = pair.texts(), [each.paths.config.stat() for each in pair.nodes.values()]
    file = pair.write(defaults={"drain": "soon"})
    done = pair.command("push", str(file), check=False)
    assert done.returncode == 1
    assert f"lb-1: {file}:" in done.stderr
    assert "defaults.drain" in done.stderr
    assert pair.texts() == before
    assert stamps == [each.paths.config.stat() for each in pair.nodes.values()]


@pytest.mark.slow("the same way as above")
def test_one_that_is_down_gets_it_later(pair: Fleet):
    """It is named with the command to come; the other one has the file at once."""
    content = drains(pair, 53).decode()
    file = str(pair.folder / "pushed.yaml")
    with pair.unreachable("lb-1"):
        done = pair.command("push", file, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == (
        f"Accepted, but not on lb-1: when back, `appliance fleet push {file}`."
    )
    assert "lb-1: not reached (ssh: connect to host 127.0.0.1 port 1: " in done.stdout
    assert pair.texts()[0] == content != pair.texts()[1]
    differing = pair.answer("status")["problems"]
    wait_until(lambda: "the nodes run different configurations" in str(differing), what="it is seen")
    assert outcomes(pair.answer("push", file)) == ["accepted", "accepted"]


@pytest.mark.slow("the same way as above")
@pytest.mark.promise("docs/fleet.md", "a node that does not accept the key is not taken for one that is down")
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("PubkeyAuthentication no", "Permission denied (publickey)"),
        ("UserKnownHostsFile /dev/null", "Host key verification failed."),
        ("HostName lb-1.invalid", "Could not resolve hostname lb-1.invalid"),
        ("Nonsense yes", "Bad configuration option: nonsense"),
    ],
)
def test_one_that_ssh_has_no_access_to_is_a_refusal(pair: Fleet, setting: str, said: str):
    """It may be up, and would run another configuration than the other one: nothing is changed."""
    before = pair.texts()
    drains(pair, 54)
    with pair.otherwise("lb-1", setting):
        done = pair.command("push", str(pair.folder / "pushed.yaml"), check=False)
    assert done.returncode == 1
    [line] = [each for each in done.stdout.splitlines() if each.startswith("lb-1: ")]
    assert line.startswith("lb-1: as before (")
    assert said in line
    assert "does `ssh lb-1` log you in?" in line
    assert done.stdout.splitlines()[-1] == "Refused: all nodes have the configuration before."
    assert pair.texts() == before


@pytest.mark.slow("waits for the time-out of a program that hangs")
def test_one_that_hangs_is_named_in_time(pair: Fleet):
    """Its program `reload` has stopped: both have the file before, and both use it when that goes on."""
    before = pair.texts()
    drains(pair, 54)
    with pair.stopped("lb-1"):
        done = pair.command("push", str(pair.folder / "pushed.yaml"), "--timeout", "30", check=False)
    assert done.returncode == 1
    assert "lb-1: no answer within 30 s; the reload may still be under way" in done.stderr
    assert "lb-0: as before" in done.stdout
    assert "not known of lb-1" in done.stdout
    assert pair.texts() == before
    digests = [hashlib.sha256(each.encode()).hexdigest() for each in before]
    wait_until(lambda: accepted(pair) == digests, what="both use the one before", timeout=60.0)


@pytest.mark.promise("docs/fleet.md", "a push that ends in the middle leaves the file before")
@pytest.mark.slow("waits for the time-out of a program that hangs")
@pytest.mark.parametrize("how", ["Ctrl-C", "lost", "killed"])
def test_what_ends_in_the_middle_is_on_none(pair: Fleet, how: str):
    """lb-0 has applied it, lb-1 is about to: whoever ends then, both have the file before."""
    before = pair.texts()
    drains(pair, 55)
    with pair.stopped("lb-1"):
        with pair.started("push", str(pair.folder / "pushed.yaml"), "--timeout", "30") as process:
            assert process.stderr
            lines = iter(process.stderr.readline, "")
            assert any(line == "lb-0: has applied it\n" for line in lines)
            if how == "lost":
                for each in children(pair.sshds["lb-1"].pid):
                    kill(each)
            else:
                process.send_signal(signal.SIGINT if how == "Ctrl-C" else signal.SIGKILL)
            process.communicate()
        assert process.returncode == {"Ctrl-C": 130, "lost": 1, "killed": -signal.SIGKILL}[how]
    wait_until(lambda: pair.texts() == before, what="both have the one before", timeout=60.0)
    digests = [hashlib.sha256(each.encode()).hexdigest() for each in before]
    wait_until(lambda: accepted(pair) == digests, what="both use the one before", timeout=60.0)


@pytest.mark.slow("a push for each moment")
@pytest.mark.promise("docs/fleet.md", "Ctrl-C at any moment of a push leaves both nodes with one file")
def test_ctrl_c_at_any_moment(pair: Fleet):
    """At moments all over a push: both have the file before or both the new one, and use it."""
    started = time.monotonic()
    drains(pair, 100)
    pair.command("push", str(pair.folder / "pushed.yaml"))
    whole = time.monotonic() - started
    ends = set()
    for number in range(_MOMENTS):
        before, content = pair.texts(), drains(pair, 101 + number).decode()
        with pair.started("push", str(pair.folder / "pushed.yaml")) as process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(whole * number / (_MOMENTS - 1))
            process.send_signal(signal.SIGINT)
            process.communicate()
        wait_until(lambda before=before, content=content: pair.texts() in (before, [content] * 2), what="one")
        found = pair.texts()
        ends.add(found == before)
        digests = [hashlib.sha256(each.encode()).hexdigest() for each in found]
        wait_until(lambda digests=digests: accepted(pair) == digests, what="both use it", timeout=60.0)
        assert pair.texts() == found
        # It may come when all is done: the interpreter that ends then ends by the signal itself.
        assert process.returncode in (0, 130, -signal.SIGINT) or found == before
    assert ends == {True, False}


@pytest.mark.slow("one connection for each step")
@pytest.mark.parametrize("step", ["sent", "checked", "applied"])
def test_a_node_goes_back_at_the_end_of_its_connection(pair: Fleet, step: str):
    """Whatever the last thing was that it was told: the file is the one before, and it is used."""
    before = pair.texts()
    content = drains(pair, 56)
    remote = f"appliance fleet accept --size {len(content)} --sha256 {hashlib.sha256(content).hexdigest()}"
    with subprocess.Popen(
        ["ssh", "-T", "lb-0", remote], env=pair.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(content[:-1] if step == "sent" else content)
        process.stdin.flush()
        if step != "sent":
            assert json.loads(process.stdout.readline())["step"] == "checked"
        if step == "applied":
            process.stdin.write(b"apply\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline()) == {
                "ok": True, "step": "applied", "errors": [], "warnings": [], "runs": True,
            }  # fmt: skip
            assert pair.texts()[0] == content.decode()
        os.kill(process.pid, signal.SIGKILL)
    digest = hashlib.sha256(before[0].encode()).hexdigest()
    wait_until(lambda: pair.texts() == before, what="it has the one before", timeout=60.0)
    wait_until(lambda: accepted(pair)[0] == digest, what="it uses the one before", timeout=60.0)


@pytest.mark.slow("the same way as above")
@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "echo \"Error: No such command 'fleet'.\" >&2; exit 2",
            "its release has no `fleet` to accept it: Error: No such command 'fleet'.",
        ),
        ("echo '{\"ok\": 1}'; exec cat >/dev/null", "the answer cannot be understood: "),
        ("head -c 1 >/dev/null; exit 0", "its command ended with 0"),
    ],
)
def test_one_that_does_not_understand_is_a_refusal(pair: Fleet, script: str, said: str):
    """A node of an older release, or with another program of that name: it is named, and nothing changes."""
    before = pair.texts()
    drains(pair, 57)
    pair.replace_command("lb-1", script)
    try:
        done = pair.command("push", str(pair.folder / "pushed.yaml"), check=False)
    finally:
        (pair.folder / "lb-1" / "appliance").unlink()
    assert done.returncode == 1
    assert f"lb-1: as before ({said}" in done.stdout
    assert pair.texts() == before


@pytest.mark.slow("the same way as above")
def test_a_shell_that_talks_changes_nothing(pair: Fleet):
    """What a login prints before the command is passed over."""
    pair.replace_command("lb-1", 'echo Welcome to lb-1; echo; exec $REAL "$@"')
    content = drains(pair, 58).decode()
    found = pair.answer("push", str(pair.folder / "pushed.yaml"))
    assert outcomes(found) == ["accepted", "accepted"]
    assert [each["ok"] for each in pair.answer("status")["nodes"]] == [True, True]  # type: ignore[attr-defined]  # JSON
    (pair.folder / "lb-1" / "appliance").unlink()
    assert pair.texts() == [content] * 2
