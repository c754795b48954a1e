"""`appliance run` with the real programs: its start, its refusals, and what a reload starts and stops."""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machines import nobody
from support.network.ports import accepts, free_port
from support.processes.processes import alive, kill
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

from appliance.net.supervision.supervisor_rpc import SupervisorClient, SupervisorUnavailable

pytestmark = pytest.mark.programs

_COMMAND = Path(sys.executable).parent / "appliance"


def config(**ports: int) -> dict[str, object]:
    """Return a file with one group for each name, which answers /haproxy_ready and has a pool besides."""
    return {
        **{group: {"workers": 1, "frontends": _frontends(group, port)} for group, port in ports.items()},
        "pools": {"servers": {"servers": {"one": {"address": "127.0.0.1:9"}}}},
        "defaults": {"drain": "2s"},
    }


def _frontends(group: str, port: int) -> dict[str, object]:
    return {
        f"ready-{group}": {"bind": [f"127.0.0.1:{port}"], "respond": "/haproxy_ready"},
        f"through-{group}": {"bind": [f"127.0.0.2:{port}"], "pool": "servers"},
    }


class Site:
    """An appliance with one group, `api`, at `port`."""

    def __init__(self, appliance: Appliance, port: int) -> None:
        self.appliance = appliance
        self.port = port


@pytest.fixture(scope="module")
def started() -> Iterator[Site]:
    """Run an appliance that tests of this module share."""
    port = free_port()
    with Appliance(config(api=port)) as appliance:
        yield Site(appliance, port)


@pytest.fixture
def site(started: Site) -> Site:
    """Give it as it was after its first start, with an empty log."""
    assert started.appliance.reload(config(api=started.port))["ok"]
    started.appliance.forget_log()
    return started


def ready(port: int) -> bool:
    """Say whether the frontend answers 200."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/haproxy_ready", timeout=5) as answer:
        return bool(answer.status == 200)


def state(appliance: Appliance, program: str) -> str:
    """Return what supervisord says of a program, "" while it says nothing."""
    with contextlib.suppress(SupervisorUnavailable):
        processes = SupervisorClient(appliance.paths.supervisor_socket).processes()
        return next(each.state for each in processes if each.name == program)
    return ""


def test_a_broken_file_without_a_copy_ends_with_every_error():
    """Exit code 1, and each error with its file and line."""
    with tempfile.TemporaryDirectory(prefix="lb-") as directory:
        (Path(directory) / "c.yaml").write_text("api: 1\nnonsense: 2\n")
        done = subprocess.run(
            [_COMMAND, "--config", "c.yaml", "--runtime-dir", "run", "--state-dir", "state", "run"],
            cwd=directory,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "c.yaml:1:6: api" in done.stderr
    assert "c.yaml:2:1: nonsense" in done.stderr
    assert "Next: fix it; `appliance check`" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("trouble", ["in the way", "too long"])
def test_a_start_that_cannot_be_names_the_next_step(trouble: str):
    """Where the runtime directory cannot be one."""
    with tempfile.TemporaryDirectory(prefix="lb-") as directory:
        runtime = Path(directory) / ("r" * 90 if trouble == "too long" else "run")
        if trouble == "in the way":
            runtime.write_text("a file")
        done = subprocess.run(
            [_COMMAND, "--runtime-dir", runtime, "--state-dir", directory, "run"],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "--runtime-dir" in next(each for each in done.stderr.splitlines() if "Next: " in each)


@pytest.mark.slow("several starts of the whole appliance")
def test_a_broken_file_starts_the_last_good_copy_and_says_so(site: Site):
    """It serves what was accepted last; log and status say so until a reload finds the file good."""
    appliance, port = site.appliance, site.port
    appliance.stop(patience=30)
    appliance.paths.config.write_text("api: 1\n")
    appliance.start()
    assert ready(port)
    (event,) = appliance.events("started-from-last-good")
    assert event["level"] == "error"
    assert appliance.ask("reload", "status")["degraded"]
    assert appliance.reload()["ok"] is False
    assert appliance.reload(config(api=port))["unchanged"] is True
    assert appliance.ask("reload", "status")["degraded"] is None


@pytest.mark.slow("several starts of the whole appliance")
def test_a_second_one_is_refused(site: Site):
    """Where it may not take over, a second start ends with exit code 3; the first does not notice."""
    appliance, port = site.appliance, site.port
    done = appliance.command("run", "--no-take-over", check=False)
    assert done.returncode == 3
    assert "runs here already" in done.stderr
    assert "Next: take its place (--take-over)" in done.stderr
    assert ready(port)
    assert appliance.is_running()


@pytest.mark.promise("program", "proxy-ingress")
@pytest.mark.promise("program", "proxy-api")
def test_groups_come_and_go(site: Site):
    """A reload starts the program of a new group, which serves, and stops that of one that is gone."""
    appliance, api, ingress = site.appliance, site.port, free_port()
    answer = appliance.reload(config(api=api, ingress=ingress))
    assert answer["changed"] == ["ingress"]
    assert "warnings" not in answer
    assert ready(ingress)
    assert appliance.reload(config(ingress=ingress))["changed"] == ["api"]
    wait_until(lambda: not accepts(api), what="nobody listens for the group that is gone")
    assert ready(ingress)
    stopped = appliance.wait_for_event("program-stopped")
    assert stopped["name"] == "proxy-api"


def virtual_ip(address: str = "192.0.2.200/24") -> dict[str, object]:
    """Return virtual IPs on an interface that there is not: nothing of this machine is touched."""
    return {"virtual_ips": {"api": {"addresses": [address], "interface": "lb-none", "router_id": 51}}}


@pytest.mark.slow("several starts of the whole appliance")
def test_virtual_ips_alone_are_a_configuration():
    """A node that does keepalived's job alone runs vrrp and reload, says what is wrong, and ends cleanly."""
    with Appliance(virtual_ip()) as appliance:
        assert not appliance.program_pid("health")
        [router] = appliance.ask("vrrp", "status")["routers"]
        assert (router["name"], router["state"]) == ("api", "fault")
        status = appliance.command("status", "--json", check=False)
        problems = " ".join(json.loads(status.stdout)["problems"])
        assert status.returncode == 1
        assert "virtual IP api is in fault" in problems or "vrrp lacks" in problems
        assert "api: fault" in appliance.command("vip", "status", check=False).stdout
        assert appliance.stop(patience=30) == 0


@pytest.mark.slow("several starts of the whole appliance")
def test_virtual_ips_come_and_go(site: Site):
    """A reload starts vrrp for the first virtual IP, applies changes live, and stops it after the last."""
    appliance, port = site.appliance, site.port
    added = appliance.reload({**config(api=port), **virtual_ip()})
    assert (added["changed"], "warnings" in added) == (["virtual_ips.api"], False)
    pid = appliance.program_pid("vrrp")
    changed = appliance.reload({**config(api=port), **virtual_ip("192.0.2.201/24")})
    assert (changed["changed"], "warnings" in changed) == (["virtual_ips.api"], False)
    assert appliance.program_pid("vrrp") == pid
    assert appliance.ask("vrrp", "status")["routers"][0]["addresses"] == ["192.0.2.201/24"]
    assert "warnings" not in appliance.reload(config(api=port))
    wait_until(lambda: state(appliance, "vrrp") == "STOPPED", what="vrrp is stopped")
    assert ready(port)


@pytest.mark.slow("several starts of the whole appliance")
def test_a_group_that_is_removed_and_added_at_once_serves(site: Site):
    """Its program, still on its way down, is waited for and started; no answer has a warning."""
    appliance, api, ingress = site.appliance, site.port, free_port()
    assert appliance.reload(config(api=api, ingress=ingress))["ok"]
    for _ in range(4):
        assert "warnings" not in appliance.reload(config(ingress=ingress))
        assert "warnings" not in appliance.reload(config(api=api, ingress=ingress))
        assert ready(api)


@pytest.mark.slow("several starts of the whole appliance")
def test_a_restarted_supervisord_runs_what_is_accepted_now(site: Site):
    """A group that came by a reload is there again after `supervisorctl reload`, one that went is not."""
    appliance, ingress = site.appliance, free_port()
    assert appliance.reload(config(ingress=ingress))["ok"]
    before = appliance.program_pid("proxy-ingress")
    assert before
    appliance.supervisorctl("reload")
    appliance.wait_for_restart("proxy-ingress", before)
    wait_until(lambda: accepts(ingress), what="the new group accepts")
    wait_until(lambda: state(appliance, "proxy-api") == "STOPPED", what="the old one is stopped")


@pytest.mark.slow("several starts of the whole appliance")
def test_an_occupied_port_of_a_new_group_is_refused(site: Site):
    """The port that another program has is an error with its path, and everything goes on."""
    appliance, api = site.appliance, site.port
    before = appliance.accepted()
    answer = appliance.reload(config(api=api, ingress=api))
    assert answer["ok"] is False
    assert appliance.accepted() == before
    assert ready(api)


@pytest.mark.slow("several starts of the whole appliance")
def test_a_program_that_crashes_is_back(site: Site):
    """Each of the programs, killed, is there again."""
    appliance = site.appliance
    for program in ("reload", "proxy-api"):
        killed = appliance.kill(program)
        appliance.wait_for_restart(program, killed)
    assert appliance.reload()["unchanged"] is True


@pytest.mark.slow("several starts of the whole appliance")
def test_term_ends_everything():
    """After TERM nothing of it is left, and the exit code is 0."""
    appliance = Appliance(config(api=free_port(), ingress=free_port()))
    with appliance:
        assert appliance.stop(patience=30) == 0
        assert appliance.processes() == []


@pytest.mark.promise("docs/configuring.md", "an ordinary user runs it")
@pytest.mark.needs("setpriv", "unshare", root=True)
@pytest.mark.skipif(not nobody.possible(), reason="this machine gives no mount namespace")
def test_an_ordinary_user_runs_it():
    """On high ports, with all paths moved, no privilege is needed."""
    with tempfile.TemporaryDirectory(prefix="lb-") as directory:
        root, port = Path(directory), free_port()
        (root / "c.yaml").write_text(json.dumps(config(api=port)))
        shutil.chown(root, nobody.UID, nobody.UID)
        shutil.chown(root / "c.yaml", nobody.UID, nobody.UID)
        moved = ["--config", root / "c.yaml", "--runtime-dir", root / "run", "--state-dir", root / "state"]
        with (root / "log").open("ab") as log:
            process = subprocess.Popen(
                nobody.command([str(_COMMAND), *map(str, moved), "run"]),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            wait_until(lambda: process.poll() is not None or accepts(port), what="it accepts", timeout=30)
            assert ready(port), (root / "log").read_text()
            assert (root / "run").stat().st_uid == nobody.UID
        finally:
            process.terminate()
            assert process.wait(30) == 0


@pytest.mark.slow("several starts of the whole appliance")
def test_a_killed_supervisord_is_no_outage(site: Site):
    """Without it everything serves on, and the next start takes over what it left."""
    appliance, port = site.appliance, site.port
    left = {
        program: wait_until(lambda program=program: appliance.program_pid(program), what=f"{program} answers")
        for program in ("reload", "proxy-api")
    }
    kill(appliance.pid)
    assert ready(port)
    appliance.start()
    for program, pid in left.items():
        appliance.wait_for_restart(program, pid)
        wait_until(lambda pid=pid: not alive(pid), what=f"the old {program} has ended")
    assert ready(port)
    wait_until(lambda: appliance.reload()["ok"], what="it reloads")
