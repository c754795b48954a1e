"""What happens to a running appliance, told with its cause, kept over kills and restarts."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.network.ports import free_port
from support.notifying.webhook import Webhook
from support.peers.backend import Backend
from support.processes.processes import kill
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance, Values

pytestmark = pytest.mark.programs

COMMAND = Path(sys.executable).parent / "appliance"


def config(*backends: Backend, **more: object) -> dict[str, Any]:
    """Return a configuration with a pool of these servers, checked often."""
    servers = {each.name: {"address": f"127.0.0.1:{each.port}"} for each in backends}
    check = {"type": "http", "path": "/readyz", "interval": "200ms", "fall": 1, "rise": 1, "timeout": "5s"}
    bind = f"127.0.0.1:{free_port()}"
    return {
        "api": {"workers": 1, "frontends": {"kube-api": {"bind": [bind], "pool": "masters"}}},
        "pools": {"masters": {"check": check, "servers": servers}},
        "defaults": {"drain": "1s"},
        **more,
    }


def events(appliance: Appliance, *arguments: str) -> list[Values]:
    """Return what `appliance events` prints."""
    found: list[Values] = json.loads(appliance.command("events", "--json", *arguments).stdout)
    return found


def wait_for(appliance: Appliance, kind: str, subject: str, *, times: int = 1) -> Values:
    """Return the last event of a kind that is about `subject`, once there are so many of them."""

    def found() -> Values | None:
        all_of_it = [each for each in events(appliance) if (each["kind"], each["subject"]) == (kind, subject)]
        return all_of_it[-1] if len(all_of_it) >= times else None

    return wait_until(found, what=f"{kind} of {subject} was told {times} times", timeout=60.0, pause=0.2)


@contextmanager
def following(appliance: Appliance) -> Iterator["subprocess.Popen[str]"]:
    """Run `appliance events --follow --json` until the end of the context."""
    # What runs in the background of a shell ignores Ctrl-C, and so do all that it starts.
    command = ["env", "--default-signal=INT", COMMAND, "events", "--follow", "--json", "--since", "1h"]
    process = subprocess.Popen(command, env=appliance.environment, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(30) == 130


@pytest.mark.promise("docs/monitoring.md", "events have their cause, and outlive everything")
def test_what_happened_is_told_with_its_cause_and_outlives_everything():
    """Servers, their pool, reloads and killed programs are told once each, before and after a restart."""
    with Backend("m0") as first, Backend("m1") as second, Appliance(config(first, second)) as appliance:
        for name in ("m0", "m1"):
            wait_for(appliance, "server-up", f"masters/{name}")
        first.ready(500)
        down = wait_for(appliance, "server-down", "masters/m0")
        assert (down["program"], down["before"], down["after"]) == ("health", "up", "down")
        assert (down["cause"], str(down["detail"])[:3]) == ("L7STS", "500")
        last = wait_for(appliance, "last-server", "masters")
        assert (last["cause"], last["detail"]) == ("server-down m0", "1 of 2 up")
        second.ready(500)
        wait_for(appliance, "pool-empty", "masters")
        first.ready(200)
        wait_for(appliance, "pool-serves", "masters", times=2)

        appliance.command("drain", "masters/m1")
        assert wait_for(appliance, "server-drain", "masters/m1")["cause"] == "operator"

        good = appliance.config
        assert appliance.reload({**good, "nonsense": 1})["ok"] is False
        assert "nonsense" in str(wait_for(appliance, "reload-refused", "configuration")["detail"])
        assert appliance.reload({**good, "log": {"level": "error"}})["ok"] is True
        wait_for(appliance, "reload-done", "configuration")

        # Who keeps the events is killed, and one who sends them: nothing is lost, nothing is there twice.
        for name in ("reload", "health"):  # in its first second a program fails; it does not exit
            wait_for(appliance, "program-running", name)
        old = appliance.kill("reload")
        assert "SIGKILL" in str(wait_for(appliance, "program-exited", "reload")["detail"])
        appliance.wait_for_restart("reload", old)
        old = appliance.kill("health")
        wait_for(appliance, "program-exited", "health")
        appliance.wait_for_restart("health", old)
        worker = appliance.accepting()[0]
        kill(worker.pid)
        wait_for(appliance, "worker-died", f"proxy-api worker {worker.generation}.{worker.index}")
        wait_for(appliance, "program-running", "health", times=2)

        appliance.stop(patience=60)
        before = events(appliance)
        appliance.start()
        wait_for(appliance, "program-running", "reload", times=3)
        after = events(appliance)
        assert after[: len(before)] == before
        ids = [each["id"] for each in after]
        assert len(ids) == len(set(ids))
        assert [each["when"] for each in after] == sorted(each["when"] for each in after)
        kept = appliance.paths.events.read_text().splitlines()
        assert len(kept) == len(set(kept))
        (newest,) = events(appliance, "--limit", "1")
        assert newest in events(appliance)[len(after) - 1 :]  # there may be another one since
        check_how_they_are_shown(appliance)


def check_how_they_are_shown(appliance: Appliance) -> None:
    """Look at the text for people, at a wrong option, and at what is followed."""
    text = appliance.command("events").stdout
    assert "server-down" in text
    assert "up -> down" in text
    assert appliance.command("events", "--since", "nonsense", check=False).returncode == 2

    known = {each["id"] for each in events(appliance)}
    with following(appliance) as follow:
        assert follow.stdout is not None
        told = map(json.loads, iter(follow.stdout.readline, ""))
        assert next(told)["id"] in known  # it has begun
        appliance.command("ready", "masters/m1")
        assert next(each for each in told if each["kind"] == "server-ready" and each["id"] not in known)


@pytest.mark.slow("a whole appliance for each situation")
def test_a_full_frontend_and_a_broken_start_are_told():
    """A frontend at its limit is told by its worker; a start from the last-good copy by `reload`."""
    with Backend("m0") as backend:
        made = config(backend, defaults={"max_connections": 1, "drain": "1s"})
        port = int(made["api"]["frontends"]["kube-api"]["bind"][0].rpartition(":")[2])
        with Appliance(made) as appliance:
            wait_for(appliance, "server-up", "masters/m0")
            with socket.create_connection(("127.0.0.1", port), timeout=10):
                full = wait_for(appliance, "frontend-full", "kube-api")
                assert "1 connections, worker 1." in str(full["detail"])
            wait_for(appliance, "frontend-has-room", "kube-api")
            appliance.stop(patience=60)
            appliance.write({**made, "nonsense": 1})
            appliance.start()
            assert "nonsense" in str(wait_for(appliance, "last-good-in-use", "configuration")["detail"])
            appliance.write(made)


@pytest.mark.promise("docs/monitoring.md", "who is to be told is told")
def test_who_is_to_be_told_is_told(tmp_path: Path):
    """A webhook hears of a server that is down; a reload names another one, and a kill loses nothing."""
    first, second = Webhook(), Webhook()

    def kinds(webhook: Webhook) -> list[str]:
        return [each["kind"] for _, _, body in webhook.posted for each in body["events"]]

    def notify(webhook: Webhook) -> dict[str, object]:
        return {"ops": {"webhook": webhook.url, "severity": "warning"}}

    try:
        with Backend("m0") as backend, Appliance(config(backend, notify=notify(first))) as appliance:
            wait_for(appliance, "server-up", "masters/m0")
            backend.ready(500)
            wait_until(lambda: {"server-down", "pool-empty"} <= set(kinds(first)), what="it is told")
            assert "server-up" not in kinds(first)
            assert appliance.reload({**appliance.config, "notify": notify(second)})["ok"] is True
            # One that dies in its first second is `program-failing`.
            appliance.wait_for_event("program-running", lambda event: event["name"] == "reload")
            old = appliance.kill("reload")
            wait_until(lambda: "program-exited" in kinds(second), what="the kill is told to the other")
            appliance.wait_for_restart("reload", old)
            assert "program-exited" not in kinds(first)
            assert "server-down" not in kinds(second)
            lacking = {**appliance.config, "notify": {"page": {"command": str(tmp_path / "none")}}}
            appliance.write(lacking)
            done = appliance.command("check", "--here", check=False)
            assert "notify.page.command" in done.stdout + done.stderr
            assert "does not exist here" in done.stdout + done.stderr
            appliance.write(appliance.config)
    finally:
        first.close()
        second.close()
