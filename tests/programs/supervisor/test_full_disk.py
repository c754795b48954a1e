"""Directories that take no writes: the appliance starts and serves, and says by name what is not kept."""

import json

import pytest
from support.machines.private_mounts import full, in_private_mounts, make_read_only, mount
from support.network.ports import accepts, free_port
from support.processes.waiting import wait_until
from support.stats.haproxy_clients import get
from support.supervisor.appliance import Appliance

from appliance.wire import history_ring

pytestmark = [
    pytest.mark.programs,
    pytest.mark.needs("mount", root=True),
    pytest.mark.slow("several starts of the whole appliance"),
]


def config(port: int, **more: object) -> dict[str, object]:
    """Return a file with one frontend and one server, which need not answer."""
    return {
        "api": {"workers": 1, "frontends": {"kube-api": {"bind": [f"127.0.0.1:{port}"], "pool": "masters"}}},
        "pools": {"masters": {"check": False, "servers": {"m0": {"address": "127.0.0.1:9"}}}},
        "defaults": {"drain": "1s"},
        **more,
    }


def problems(appliance: Appliance) -> list[str]:
    """Return what the status finds wrong."""
    said: list[str] = json.loads(appliance.command("status", "--json", check=False).stdout)["problems"]
    return said


def nameless(appliance: Appliance) -> list[str]:
    """Return the log lines that name no file."""
    return [line for line in appliance.log().splitlines() if "None: " in line or "Traceback" in line]


def _starts_on_a_full_disk() -> None:
    port = free_port()
    appliance = Appliance(config(port))
    mount(appliance.paths.state, size="64k")
    with full(appliance.paths.state), appliance:
        wait_until(lambda: accepts(port), what="clients are served")
        last_good = f"{appliance.paths.last_good}: No space left on device"
        assert [each for each in appliance.events("state-not-kept") if each["reason"] == last_good]
        wait_until(
            lambda: f"reload cannot write {last_good}" in problems(appliance),
            what="the status says what is not kept",
            timeout=60.0,
        )
        drained = appliance.command("drain", "masters/m0")
        assert "operator-states.json: No space left on device" in drained.stderr
        assert appliance.reload(config(port, log={"level": "debug"}))["ok"] is True
        (appliance.paths.state / "ballast").unlink()
        wait_until(appliance.paths.last_good.exists, what="the copy is made when there is room", timeout=60.0)
        appliance.command("ready", "masters/m0")
        wait_until(lambda: not problems(appliance), what="nothing is wrong any more", timeout=60.0)
        assert not nameless(appliance)


def _keeps_no_history() -> None:
    page = free_port()
    appliance = Appliance(config(free_port(), stats={"bind": f"127.0.0.1:{page}"}))
    mount(appliance.paths.state, size="4m")
    history = appliance.paths.history
    with full(appliance.paths.state), appliance:
        said = f"stats cannot write {history}: No space left on device"
        wait_until(lambda: said in problems(appliance), what="the status says what is not kept", timeout=60.0)
        assert "appliance_ok" in get(f"http://127.0.0.1:{page}/metrics")[1]
        (appliance.paths.state / "ballast").unlink()
        appliance.wait_for_restart("stats", appliance.kill("stats"))
        wait_until(history.exists, what="it is kept when there is room")
        assert history.stat().st_size == history_ring.SIZE
        wait_until(lambda: said not in problems(appliance), what="that is over", timeout=60.0)
        assert not nameless(appliance)


def _starts_read_only() -> None:
    port = free_port()
    appliance = Appliance(config(port))
    mount(appliance.paths.state, size="64k")
    make_read_only(appliance.paths.state)
    with appliance:
        wait_until(lambda: accepts(port), what="clients are served")
        last_good = f"reload cannot write {appliance.paths.last_good}: Read-only file system"
        wait_until(lambda: last_good in problems(appliance), what="the status says it", timeout=60.0)
        assert appliance.reload(config(port, log={"level": "debug"}))["ok"] is True
        assert not nameless(appliance)


def _comes_back_in_a_full_runtime_directory() -> None:
    port = free_port()
    appliance = Appliance(config(port))
    mount(appliance.paths.runtime, size="8m")
    with appliance:
        with full(appliance.paths.runtime):
            for program in ("health", "proxy-api", "reload"):
                old = appliance.kill(program)
                appliance.wait_for_restart(program, old)
                wait_until(lambda: accepts(port), what="clients are served")
            refused = appliance.reload(config(port, log={"level": "debug"}))
            assert refused["ok"] is False
            assert f"{appliance.paths.runtime}" in str(refused["errors"])
            assert "No space left on device" in str(refused["errors"])
        assert appliance.reload()["ok"] is True
        assert not nameless(appliance)


def test_a_full_state_directory_is_a_start():
    """It serves, log and status name file and reason, drains hold for now, and all heals with room."""
    in_private_mounts(_starts_on_a_full_disk)


def test_a_history_that_cannot_be_kept():
    """The page and the metrics are served without it, and the status names it until there is room."""
    in_private_mounts(_keeps_no_history)


def test_a_read_only_state_directory_is_a_start():
    """It serves and reloads, and the status names what is not kept."""
    in_private_mounts(_starts_read_only)


def test_programs_come_back_in_a_full_runtime_directory():
    """Each program that is killed comes back; a reload that cannot be written is refused with the file."""
    in_private_mounts(_comes_back_in_a_full_runtime_directory)
