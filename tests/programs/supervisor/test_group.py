"""`group:`: who is its member may look without root, and change nothing."""

import grp
import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machines import nobody
from support.network.ports import free_port
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

pytestmark = [
    pytest.mark.programs,
    pytest.mark.needs("setpriv", "unshare", root=True),
    pytest.mark.skipif(not nobody.possible(), reason="this machine gives no mount namespace"),
]

GROUP = "daemon"
COMMAND = Path(sys.executable).parent / "appliance"


def config(server: int, **more: object) -> dict[str, object]:
    """Return a file with one frontend, whose sockets a group may read."""
    bind = f"127.0.0.1:{free_port()}"
    return {
        "api": {"workers": 1, "frontends": {"through": {"bind": [bind], "pool": "servers"}}},
        "pools": {"servers": {"servers": {"one": {"address": f"127.0.0.1:{server}"}}}},
        **more,
    }


@pytest.fixture(scope="module")
def made() -> Iterator[Appliance]:
    """Run an appliance that lets the group in, and that the tests of this module share."""
    with Backend("one") as backend, Appliance(config(backend.port, group=GROUP)) as appliance:
        appliance.paths.runtime.parent.chmod(0o755)
        yield appliance


@pytest.fixture
def running(made: Appliance) -> Iterator[Appliance]:
    """Give it with its own configuration, and with nothing wrong."""
    before = made.config
    wait_until(lambda: made.command("status", check=False).returncode == 0, what="all is well")
    yield made
    if made.config != before:
        assert made.reload(before)["ok"]


def as_member(
    appliance: Appliance, *arguments: str, group: str | None = GROUP
) -> "subprocess.CompletedProcess[str]":
    """Run a command as the user `nobody` who is a member of the group, or of none."""
    groups = [] if group is None else [grp.getgrnam(group).gr_gid]
    words = nobody.command([str(COMMAND), *arguments], groups=groups)
    return subprocess.run(
        words, env=appliance.environment, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.slow("several starts of the whole appliance")
def test_a_member_sees_everything(running: Appliance):
    """The status is whole and says that all is well, though supervisord is not asked."""
    done = as_member(running, "status", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found, own = json.loads(done.stdout), running.status()
    assert (found["ok"], found["problems"]) == (True, [])
    assert found["supervisor"] == "not asked: permission denied"
    for key in ("configuration", "source", "version"):
        assert found[key] == own[key]
    assert {each["name"]: each["state"] for each in found["programs"]} == dict.fromkeys(
        ("reload", "health", "proxy-api"), "running"
    )
    assert found["pools"][0]["up"] == 1
    assert [each["phase"] for each in found["generations"]] == ["accepting"]
    listed = as_member(running, "sessions", "--json")
    assert (listed.returncode, json.loads(listed.stdout)) == (0, [])
    assert as_member(running, "why", "servers/one").stdout.startswith("servers/one is up")
    assert "servers/one" in as_member(running, "top", "--once", "--interval", "0.2").stdout


@pytest.mark.promise("docs/security.md", "members of `group` look, and change nothing")
@pytest.mark.promise("kernel", "who asks at a socket (SO_PEERCRED)")
@pytest.mark.promise("rights", "control sockets")
def test_a_member_changes_nothing(running: Appliance):
    """Each refusal says why, and the server stays as it is."""
    done = as_member(running, "maint", "servers/one")
    assert done.returncode == 1
    assert "not permitted" in done.stderr
    assert "set-state" in done.stderr
    killed = as_member(running, "sessions", "kill", "--server", "servers/one")
    assert killed.returncode == 1
    assert "not permitted" in killed.stderr
    assert "Permission denied" in as_member(running, "reload").stderr
    assert running.status()["pools"][0]["up"] == 1  # type: ignore[index]  # JSON


@pytest.mark.slow("several starts of the whole appliance")
def test_others_are_told_which_group_may_look(running: Appliance):
    """Who is no member sees nothing."""
    done = as_member(running, "status", group=None)
    assert done.returncode == 1
    assert "Permission denied" in done.stderr
    assert f"a member of the group {GROUP}" in done.stderr


@pytest.mark.slow("several starts of the whole appliance")
def test_what_is_not_to_be_read_is_closed(running: Appliance):
    """What commands or holds secrets is the owner's alone."""
    runtime = running.paths.runtime
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in runtime.iterdir()}
    assert stat.S_IMODE(runtime.stat().st_mode) == 0o2750
    assert {modes[name] for name in ("reload.sock", "supervisor.sock", "accepted.json")} == {0o600}
    assert {mode for name, mode in modes.items() if name.endswith(".control")} == {0o660}
    assert {mode for name, mode in modes.items() if name.endswith(".board")} == {0o640}


@pytest.mark.slow("several starts of the whole appliance")
def test_a_group_that_is_not_there_refuses_the_reload(running: Appliance):
    """The key is named, and nothing has changed."""
    answer = running.reload({**running.config, "group": "no-such-group"})
    assert answer["ok"] is False
    [error] = answer["errors"]  # type: ignore[misc]  # JSON
    assert (error["path"], "no group `no-such-group`" in error["message"]) == ("group", True)
    [problem] = json.loads(as_member(running, "status", "--json").stdout)["problems"]
    assert "no-such-group" in problem


@pytest.mark.slow("several starts of the whole appliance")
def test_a_start_with_a_group_that_is_not_there_warns():
    """Everything runs, and its sockets are the owner's alone."""
    with (
        Backend("one") as backend,
        Appliance(config(backend.port, group="no-such-group")) as appliance,
    ):
        assert '"group-not-let-in"' in appliance.log()
        modes = {stat.S_IMODE(each.stat().st_mode) for each in appliance.paths.runtime.glob("*.control")}
        assert modes == {0o600}
        assert stat.S_IMODE(appliance.paths.runtime.stat().st_mode) == 0o700
        answer = appliance.reload({**appliance.config, "group": GROUP})
        assert answer["ok"] is True
        assert "started again" in str(answer["warnings"])


@pytest.mark.slow("several starts of the whole appliance")
def test_a_member_sees_virtual_ips_and_neither_their_password_nor_a_lock():
    """An address without its interface is in fault, which is as good to look at."""
    router = {"addresses": ["192.0.2.100/24"], "interface": "none0", "router_id": 7, "peers": ["192.0.2.9"]}
    virtual_ips = {"api": {**router, "version": 2, "auth": {"pass": "hidden"}}}
    with Appliance({"group": GROUP, "virtual_ips": virtual_ips}) as appliance:
        runtime = appliance.paths.runtime
        runtime.parent.chmod(0o755)
        wait_until(lambda: appliance.program_pid("vrrp"), what="vrrp answers")
        seen = as_member(appliance, "vip", "status", "--json")
        moved = as_member(appliance, "vip", "move", "api")
        files = [each for each in runtime.iterdir() if each.is_file()]
        assert "192.0.2.100" in seen.stdout
        assert "not permitted" in moved.stderr
        holding = {each for each in files if b"hidden" in each.read_bytes()}
        assert runtime / "accepted.json" in holding
        locks = {each for each in files if each.suffix == ".lock"}
        assert runtime / "vrrp.lock" in locks
        assert {stat.S_IMODE(each.stat().st_mode) for each in holding | locks} == {0o600}
