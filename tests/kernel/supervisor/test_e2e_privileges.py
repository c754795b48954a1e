"""Started by root: who each program is, and what the kernel lets it do."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.machines import nobody
from support.processes.processes import command_line
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

pytestmark = [pytest.mark.kernel, pytest.mark.needs("unshare", "mount", root=True)]

_UID = 19445
# Bits of capabilities(7).
_READ, _GROUP, _OTHER, _BIND, _ADMIN, _RAW, _LOCK, _NICE, _RESOURCE = (
    1 << each for each in (2, 6, 7, 10, 12, 13, 14, 23, 24)
)
_VRRP = _ADMIN | _RAW | _LOCK | _NICE | _RESOURCE
_ALL = _READ | _BIND | _VRRP
_EXPECTED: Mapping[str, tuple[int, int]] = {  # effective, permitted
    "supervisor": (0, _ALL),
    "reload": (_BIND, _READ | _BIND),  # the other for the operator's files, while they are read
    "health": (0, 0),
    "redirect": (_ADMIN, _ADMIN),
    "stats": (0, 0),
    "proxy": (_BIND, _BIND),
    "worker": (0, 0),
    "vrrp": (_VRRP, _VRRP),
    "tracker": (0, 0),
    "watched": (0, 0),
}
_NETWORK = "ip link set lo up"
_USER = (
    "cp /etc/passwd /etc/group /mnt",
    f"echo appliance:x:{_UID}:{_UID}::/nonexistent:/usr/sbin/nologin >>/mnt/passwd",
    f"echo appliance:x:{_UID}: >>/mnt/group",
    "mount --bind /mnt/passwd /etc/passwd",
    "mount --bind /mnt/group /etc/group",
)


def _config(script: Path, *, revision: int) -> dict[str, object]:
    track = {"script": str(script), "interval": "10s"}
    router = {"addresses": ["192.0.2.7/32"], "interface": "lo", "router_id": 7, "track": {"watched": track}}
    redirect = {"from": ["192.0.2.8:6443"]}
    frontend = {"bind": ["127.0.0.1:443", "0.0.0.0:444"], "pool": "p", "redirect": redirect}
    return {
        "api": {"workers": 1, "frontends": {"a": frontend}},
        "pools": {"p": {"check": {"type": "tcp"}, "servers": {"s": {"address": f"127.0.0.1:{revision}"}}}},
        "virtual_ips": {"v": router},
        "stats": {"bind": "127.0.0.1:29445"},
    }


class _Started:
    """An appliance in a network of its own, whose file is root's alone."""

    def __init__(self, appliance: Appliance, script: Path) -> None:
        self.appliance = appliance
        self.script = script

    def write(self, revision: int) -> None:
        self.appliance.write(_config(self.script, revision=revision))
        self.appliance.paths.config.chmod(0o600)

    def processes(self) -> dict[str, dict[str, str]]:
        """Return what the kernel says of each program, by the last part of its module's name."""
        found = {}
        for pid in self.appliance.processes():
            words = command_line(pid).split()
            if "-m" in words:
                found[words[words.index("-m") + 1].rpartition(".")[2]] = _status(pid)
        for entry in Path("/proc").glob("[0-9]*"):  # a script has an environment of its own
            if str(self.script) in command_line(int(entry.name)).split():
                found["watched"] = _status(int(entry.name))
        return {name: status for name, status in found.items() if status}


def _all(made: _Started) -> dict[str, dict[str, str]]:
    """Return all at one moment: the script comes and goes."""
    return wait_until(
        lambda: seen if _EXPECTED.keys() <= (seen := made.processes()).keys() else {},
        what="every program runs",
    )


def _status(pid: int) -> dict[str, str]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # it has just ended
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@pytest.fixture(
    params=["appliance", pytest.param("root", marks=pytest.mark.slow("a whole appliance for each situation"))]
)
def started(request: pytest.FixtureRequest) -> Iterator[tuple[_Started, int]]:
    """Start one on a machine that has the user `appliance`, and on one that has not; give its user too."""
    if not nobody.possible():
        pytest.skip("this machine makes no mount namespaces")
    first = (*_USER, _NETWORK) if request.param == "appliance" else (_NETWORK,)
    appliance = Appliance({})
    root = appliance.paths.config.parent
    root.chmod(0o755)
    script = root / "watched"
    script.write_text("#!/bin/sh\nsleep 3\n")
    script.chmod(0o755)
    made = _Started(appliance, script)
    appliance.config = _config(script, revision=1)
    made.write(1)
    through = ("unshare", "--net", *nobody.reachable(*first))
    appliance.start(through=through)
    try:
        yield made, _UID if request.param == "appliance" else 0
    finally:
        appliance.__exit__(None)


@pytest.mark.promise("docs/security.md", "each program has what it needs and nothing else")
@pytest.mark.promise("kernel", "no new privileges")
@pytest.mark.promise("rights", "scripts and notify commands")
def test_each_program_has_what_it_needs_and_nothing_else(started: tuple[_Started, int]):
    """One ordinary user, or a root that owns files only; no exec adds a privilege, in any program."""
    made, uid = started
    here = int(_status(os.getpid())["CapBnd"], 16)  # of a container, perhaps
    seen = _all(made)
    change_user = 0 if uid else _GROUP | _OTHER  # for `user:` of scripts, where that is possible at all
    for name, sets in _EXPECTED.items():
        status = seen[name]
        besides = change_user if name in {"vrrp", "tracker"} else 0
        effective, permitted = sets[0] | besides, sets[1] | (change_user if name == "supervisor" else besides)
        assert status["Uid"].split() == [str(uid)] * 4, name
        assert int(status["CapEff"], 16) == effective & here, name
        assert int(status["CapPrm"], 16) == permitted & here, name
        assert int(status["CapBnd"], 16) == (_ALL | change_user) & here, name
        assert status["NoNewPrivs"] == "1", name
    if uid:
        assert all(status["Groups"].split() == [str(uid)] for status in seen.values())


@pytest.mark.slow("whole appliances on a segment of their own")
def test_it_serves_and_reads_a_file_that_is_root_s(started: tuple[_Started, int]):
    """Ports below 1024, virtual IPs, and a reload of a configuration of mode 0600, root's."""
    made, uid = started
    appliance = made.appliance
    wait_until(lambda: _active(appliance), what="it holds the virtual IP")
    told = appliance.ask("redirect", "status")
    assert (told["trouble"], told["owned"], told["guarded"]) == ("", True, True)
    before = appliance.accepted()
    made.write(2)
    assert appliance.reload()["ok"] is True
    assert appliance.accepted() == before + 1
    for path in (appliance.paths.reload_socket, appliance.paths.accepted, appliance.paths.last_good):
        assert (path.stat().st_uid, path.stat().st_mode & 0o077) == (uid, 0), path
    assert (
        json.loads(appliance.command("status", "--json", check=False).stdout)["configuration"] == before + 1
    )  # root asks, whoever it is that runs


@pytest.mark.slow("whole appliances on a segment of their own")
def test_a_reload_brings_a_group_at_a_low_port(started: tuple[_Started, int]):
    """Whether it can bind is tried by the program `reload`, before anything changes."""
    made, _ = started
    config = _config(made.script, revision=1)
    config["ingress"] = {"workers": 1, "frontends": {"b": {"bind": ["127.0.0.1:80"], "pool": "p"}}}
    assert made.appliance.reload(config)["ok"] is True
    wait_until(lambda: made.appliance.accepting("proxy-ingress"), what="the new group accepts")


@pytest.mark.slow("whole appliances on a segment of their own")
def test_a_script_of_another_user(started: tuple[_Started, int]):
    """Root runs it as the user that the configuration says; an ordinary user says that it may not."""
    made, uid = started
    config = _config(made.script, revision=1)
    track = {"script": "/bin/sh -c 'test $(id -un) = nobody'", "user": "nobody", "interval": "1s"}
    config["virtual_ips"]["v"]["track"] = {"whose": track}  # type: ignore[index]  # JSON
    assert made.appliance.reload(config)["ok"] is True
    expected = "not permitted to run as user nobody" if uid else "'state': 'active'"
    wait_until(lambda: expected in str(made.appliance.ask("vrrp", "status")), what=expected)


@pytest.mark.slow("whole appliances on a segment of their own")
def test_a_killed_supervisord_leaves_what_the_next_one_finds(started: tuple[_Started, int]):
    """The next supervisord, which uses no capability, still knows the programs of the last one."""
    made, _ = started
    appliance = made.appliance
    workers = {worker.pid for worker in appliance.workers()}
    left = {pid for pid in appliance.processes() if "programs." in command_line(pid)} - workers
    subprocess.run(["kill", "-9", str(appliance.pid)], check=True)
    network = f"/proc/{next(iter(workers))}"
    through = ("nsenter", f"--net={network}/ns/net", f"--mount={network}/ns/mnt")
    appliance.start(through=through)
    wait_until(lambda: not left & set(appliance.processes()), what="the old programs have ended")


def _active(appliance: Appliance) -> bool:
    routers = appliance.ask("vrrp", "status").get("routers")
    return "active" in str(routers)


@pytest.mark.slow("whole appliances on a segment of their own")
def test_what_root_left_becomes_the_users(tmp_path: Path):
    """Files of an appliance that root ran go to the user; a directory that is no appliance's stays root's."""
    tmp_path.chmod(0o755)
    run, state, other = (tmp_path / name for name in ("run", "state", "other"))
    for path, name in ((run, "appliance.lock"), (state, "last-good.json"), (other, "letters")):
        path.mkdir(mode=0o700)
        (path / name).touch()
    (run / "snapshots").mkdir()
    (state / "elsewhere").symlink_to(other / "letters")
    (state / "linked").hardlink_to(other / "letters")
    code = (
        "import sys; from pathlib import Path; from appliance.net.privileges import drop_privileges;"
        "drop_privileges.become('nobody', owned=map(Path, sys.argv[1:]))"
    )
    words = [sys.executable, "-c", code, str(run), str(state), str(other)]
    subprocess.run([*nobody.reachable(), *words], check=True)
    given = (run, run / "appliance.lock", run / "snapshots", state, state / "last-good.json")
    assert {path.stat().st_uid for path in given} == {nobody.UID}
    assert {path.lstat().st_uid for path in (other, other / "letters")} == {0}
