"""A reload that is lost does not stay lost, and one that was refused is not forgotten."""

import contextlib
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from support.network.ports import free_port
from support.processes.processes import command_line
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

pytestmark = pytest.mark.programs


def config(port: int, servers: int, **reload: object) -> dict[str, object]:
    """Return a file with this many servers, which need not answer."""
    named = {f"m{number}": {"address": f"127.0.0.{number + 1}:9"} for number in range(servers)}
    return {
        "api": {"workers": 1, "frontends": {"kube-api": {"bind": [f"127.0.0.1:{port}"], "pool": "masters"}}},
        "pools": {"masters": {"check": False, "servers": named}},
        "defaults": {"drain": "1s"},
        "reload": reload,
    }


def servers(appliance: Appliance) -> int:
    """Return how many servers the accepted configuration has."""
    return len(json.loads(appliance.paths.accepted.read_text())["pools"][0]["servers"])


class Monitor:
    """OpenShift's monitor: holds its connection, and reloads when the file differs from what it wrote last.

    A broken pipe makes it connect anew; by then its file is as it should be, and it says nothing.
    """

    def __init__(self, appliance: Appliance) -> None:
        self._appliance = appliance
        self._connection = appliance.reload_connection()

    def write(self, wanted: dict[str, object]) -> bool:
        """Write the file and say so; False where the pipe was broken."""
        self._appliance.write(wanted)
        try:
            self._connection.sendall(b"reload\n")
        except OSError:
            self._connection.close()
            self._connection = self._appliance.reload_connection()
            return False
        return True

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


@pytest.fixture(scope="module")
def started() -> Iterator[tuple[Appliance, int]]:
    """Run an appliance that the tests of this module share, and return it with its port."""
    port = free_port()
    with Appliance(config(port, 3)) as appliance:
        yield appliance, port


@pytest.fixture
def site(started: tuple[Appliance, int]) -> tuple[Appliance, int]:
    """Give it with three servers, nothing wrong, and an empty log."""
    appliance, port = started
    assert appliance.reload(config(port, 3))["ok"] is True
    assert has_no_problem(appliance)
    appliance.forget_log()
    return started


def has_no_problem(appliance: Appliance) -> bool:
    """Return whether `status` is good within a while."""
    return bool(
        wait_until(
            lambda: appliance.command("status", check=False).returncode == 0, what="status is 0", timeout=60.0
        )
    )


@pytest.mark.promise("docs/reloading.md", "a reload that is lost is made good")
def test_a_reload_into_a_broken_pipe_is_obeyed_all_the_same():
    """The program reload is killed, the monitor's line is lost with its pipe, and the file is obeyed soon."""
    port = free_port()
    with Appliance(config(port, 3)) as appliance, contextlib.closing(Monitor(appliance)) as monitor:
        old = appliance.kill("reload")
        appliance.wait_for_restart("reload", old)
        assert monitor.write(config(port, 2)) is False
        wait_until(lambda: servers(appliance) == 2, what="two servers are obeyed", timeout=60.0)
        done = appliance.wait_for_event("reload-started", lambda event: event["source"] == "watch")
        assert done


def test_a_file_that_changed_while_nobody_was_there_is_obeyed(site: tuple[Appliance, int]):
    """Written between the end and the start of the program reload, with no line at all."""
    appliance, port = site
    wait_until(lambda: appliance.program_pid("reload"), what="reload answers")
    old = appliance.kill("reload")
    appliance.write(config(port, 1))
    appliance.wait_for_restart("reload", old)
    wait_until(lambda: servers(appliance) == 1, what="one server is obeyed", timeout=60.0)


@pytest.mark.slow("a whole appliance for each situation")
def test_an_error_in_the_file_is_told_once_and_by_the_status_until_it_is_mended(site: tuple[Appliance, int]):
    """Nothing changes, one line is logged, and `status` exits 1 with the error; the mended file is obeyed."""
    appliance, port = site
    assert has_no_problem(appliance)
    appliance.paths.config.write_text("api: 1\n")
    appliance.wait_for_event("reload-refused", timeout=60.0)
    said = appliance.command("status", "--json", check=False)
    assert said.returncode == 1
    problems = json.loads(said.stdout)["problems"]
    assert [each for each in problems if "the last reload was refused: line 1: api: " in each]
    looks_at = time.monotonic() + 8.0
    wait_until(lambda: time.monotonic() > looks_at, what="two more looks", timeout=30.0)
    assert len(appliance.events("reload-refused")) == 1
    assert servers(appliance) == 3
    appliance.write(config(port, 2))
    wait_until(lambda: servers(appliance) == 2, what="the mended file is obeyed", timeout=60.0)
    assert appliance.command("status", check=False).returncode == 0


def test_a_refused_reload_is_a_problem_also_after_a_restart(site: tuple[Appliance, int]):
    """Who asks the program reload after its restart is told the same."""
    appliance, _ = site
    appliance.paths.config.write_text("api: 1\n")
    assert appliance.reload()["ok"] is False
    assert "refused" in appliance.command("status", check=False).stdout
    old = appliance.kill("reload")
    appliance.wait_for_restart("reload", old)
    wait_until(
        lambda: "refused" in appliance.command("status", check=False).stdout,
        what="it is told again",
        timeout=60.0,
    )


def test_a_refused_file_that_is_put_back_is_no_problem_any_more(site: tuple[Appliance, int]):
    """The refusal is over when the file says again what is obeyed, without another line."""
    appliance, _ = site
    accepted = appliance.accepted()
    good = appliance.paths.config.read_text()
    appliance.paths.config.write_text("api: 1\n")
    assert appliance.reload()["ok"] is False
    assert "refused" in appliance.command("status", check=False).stdout
    appliance.paths.config.write_text(good)
    assert has_no_problem(appliance)
    assert appliance.wait_for_event("reload-unchanged", lambda event: event["configuration"] == accepted)


@pytest.mark.promise("docs/reloading.md", "a reload that is refused in passing is tried again")
def test_a_port_that_becomes_free_is_taken_without_another_line(site: tuple[Appliance, int]):
    """Asked for once, while another program had the port; status and command say that it is tried again."""
    appliance, port = site
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        answer = appliance.reload(config(taken, 3, watch="off"))
        assert (answer["ok"], answer["again_in"]) == (False, 1.0)
        told = appliance.command("status", check=False)
        assert told.returncode == 1
        assert "the last reload was refused for now, and is tried again" in told.stdout
        assert "Refused for now" in appliance.command("reload", check=False).stderr
    wait_until(lambda: str(taken) in appliance.paths.accepted.read_text(), what="it is obeyed", timeout=60.0)
    assert has_no_problem(appliance)
    assert appliance.reload(config(port, 3))["ok"] is True


def test_new_workers_that_are_killed_cost_no_reload(site: tuple[Appliance, int]):
    """The reload that they were for is refused, and done a second later with others."""
    appliance, port = site
    running, other = {each.pid for each in appliance.workers()}, free_port()
    asked = threading.Thread(target=appliance.reload, args=(config(other, 3, watch="off"),))
    asked.start()
    for pid in wait_until(lambda: _new_workers(appliance, running), what="a worker of the new generation"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    asked.join()
    wait_until(lambda: str(other) in appliance.paths.accepted.read_text(), what="it is obeyed", timeout=60.0)
    assert has_no_problem(appliance)
    assert appliance.reload(config(port, 3))["ok"] is True


def _new_workers(appliance: Appliance, running: set[int]) -> set[int]:
    return {pid for pid in appliance.processes() if "programs.worker" in command_line(pid)} - running


@pytest.mark.slow("generations of real workers under load")
def test_who_wants_to_be_asked_is(site: tuple[Appliance, int]):
    """With `watch: off` a changed file is obeyed by the line `reload`, and by nothing else."""
    appliance, port = site
    assert appliance.reload(config(port, 3, watch="off"))["ok"] is True
    appliance.write(config(port, 2, watch="off"))
    old = appliance.kill("reload")
    appliance.wait_for_restart("reload", old)
    looks_at = time.monotonic() + 8.0
    wait_until(lambda: time.monotonic() > looks_at, what="as long as two looks take", timeout=30.0)
    assert servers(appliance) == 3
    assert appliance.reload()["ok"] is True
    assert servers(appliance) == 2
