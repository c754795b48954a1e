"""`log: { file: ... }`: every program writes to it, and follows logrotate, whatever started it."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.network.ports import free_port
from support.peers.backend import Backend
from support.processes.log_lines import logged
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

pytestmark = [pytest.mark.programs, pytest.mark.slow("several starts of the whole appliance")]


def config(file: Path, server: int, *, level: str = "info") -> dict[str, object]:
    """Return a file with one frontend, every connection of which is logged."""
    return {
        "api": {
            "workers": 1,
            "frontends": {"through": {"bind": [f"127.0.0.1:{free_port()}"], "pool": "servers"}},
        },
        "pools": {"servers": {"servers": {"one": {"address": f"127.0.0.1:{server}"}}}},
        "log": {"file": str(file), "connections": True, "level": level},
    }


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Appliance, Path]]:
    """Run an appliance that logs to a file."""
    file = tmp_path / "appliance.log"
    with Backend("one") as backend, Appliance(config(file, backend.port)) as appliance:
        yield appliance, file


def lines(*files: Path) -> list[dict[str, object]]:
    """Return what has been logged to files."""
    return [event for file in files for event in logged(file)]


def programs(file: Path) -> set[object]:
    """Return who has logged to a file."""
    return {each["program"] for each in lines(file)} if file.exists() else set()


def connect(appliance: Appliance) -> None:
    """Make a connection, which its worker logs."""
    group = appliance.config["api"]
    assert isinstance(group, dict)
    port = int(group["frontends"]["through"]["bind"][0].rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(10)
        connection.sendall(b"one\n")
        connection.recv(1)


def connections(*files: Path) -> list[dict[str, object]]:
    """Return the lines about connections."""
    return [each for each in lines(*files) if "client" in each]


def speak(appliance: Appliance) -> None:
    """Have every program say something."""
    appliance.wait_for_restart("proxy-api", appliance.kill("proxy-api"))
    appliance.command("maint", "servers/one")
    assert appliance.reload()["ok"]


def test_all_programs_write_to_the_file(running: tuple[Appliance, Path]):
    """Standard output has the start's lines, and none of theirs."""
    appliance, file = running
    connect(appliance)
    wait_until(lambda: connections(file), what="the connection is logged")
    assert programs(file) == {"supervisor", "reload", "health", "proxy-api"}
    assert {each["program"] for each in logged(appliance.log())} == {"run"}


def test_logrotate(running: tuple[Appliance, Path]):
    """The real one, while connections come: each is logged once, and who logs then uses the new file."""
    appliance, file = running
    state, rules = file.with_name("state"), file.with_name("rules")
    rules.write_text(f"{file} {{\n rotate 5\n nocompress\n create 0640\n}}\n")
    rules.chmod(0o600)
    made = 0
    for _ in range(3):
        for _ in range(20):
            connect(appliance)
            made += 1
        subprocess.run(["logrotate", "--force", "--state", state, rules], check=True, timeout=30)
    connect(appliance)
    rotated = [file.with_name(f"{file.name}.{number}") for number in (1, 2, 3)]
    wait_until(lambda: connections(file), what="the last one is in the new file")
    wait_until(lambda: len(connections(file, *rotated)) == made + 1, what="every connection is logged")
    speak(appliance)
    wait_until(lambda: programs(file) >= {"supervisor", "reload", "health", "proxy-api"}, what="all of them")


def test_the_file_is_made_anew(running: tuple[Appliance, Path]):
    """Without `create` who logs does, soon, and a worker that has outlived its master follows, too."""
    appliance, file = running
    old = appliance.kill("proxy-api")
    appliance.wait_for_restart("proxy-api", old)
    file.rename(file.with_suffix(".1"))

    def has_logged() -> bool:
        connect(appliance)
        return file.exists() and bool(connections(file))

    wait_until(has_logged, what="its worker logs to it")


def test_a_reload_moves_the_log(running: tuple[Appliance, Path]):
    """To another file, and supervisord's too; one that cannot be is refused by the name of its key."""
    appliance, file = running
    other = file.with_name("other.log")
    changed = {**appliance.config, "log": {"file": str(other), "connections": True}}
    assert appliance.reload(changed)["ok"]
    connect(appliance)
    wait_until(lambda: connections(other), what="the worker logs there")
    appliance.wait_for_restart("health", appliance.kill("health"))
    wait_until(lambda: "supervisor" in programs(other), what="supervisord logs there")
    answer = appliance.reload({**changed, "log": {"file": str(file.parent / "none" / "a.log")}})
    assert not answer["ok"]
    (error,) = answer["errors"]  # type: ignore[misc]  # the test's own words
    assert error["path"] == "log.file"
    assert "No such file or directory" in error["message"]
    assert [each["program"] for each in lines(other) if each["event"] == "reload-refused"] == ["reload"]
