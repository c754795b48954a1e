"""What systemd hears, on a socket as it gives one."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.supervisor.service_manager import ServiceManager

pytestmark = pytest.mark.sockets


@pytest.fixture(params=["path", "abstract"])
def heard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    """Listen as systemd does; give the address as the environment has it."""
    name = str(tmp_path / "notify") if request.param == "path" else f"\0lb-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(name)
        listening.settimeout(0.0)
        yield name.replace("\0", "@"), listening


def _said(listening: socket.socket) -> list[str]:
    found = []
    while True:
        try:
            found.append(listening.recv(4096).decode())
        except BlockingIOError:
            return found


def test_ready_alive_stopping(heard: tuple[str, socket.socket]):
    """READY once, WATCHDOG three times in its period, STOPPING; and nobody else speaks for the service."""
    address, listening = heard
    environment = {
        "NOTIFY_SOCKET": address, "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid()), "HOME": "/",
    }  # fmt: skip
    manager = ServiceManager(environment)
    assert environment == {"HOME": "/"}
    manager.ready()
    manager.ready()
    for now in (100.0, 100.9, 101.0, 101.5, 102.0):
        manager.alive(now)
    manager.stopping()
    assert _said(listening) == ["READY=1", *["WATCHDOG=1"] * 3, "STOPPING=1"]


@pytest.mark.parametrize(
    "environment", [{"WATCHDOG_USEC": "0x"}, {"WATCHDOG_USEC": "30", "WATCHDOG_PID": "1"}]
)
def test_not_for_us(heard: tuple[str, socket.socket], environment: dict[str, str]):
    """A period that is none, or is another process's, is none of ours."""
    address, listening = heard
    ServiceManager({"NOTIFY_SOCKET": address, **environment}).alive(1.0)
    assert _said(listening) == []


def test_without_systemd():
    """Nobody asked: nothing is said, and nothing fails; nor does it where the socket has gone."""
    for environment in ({}, {"NOTIFY_SOCKET": "/no/such/socket", "WATCHDOG_USEC": "1"}):
        manager = ServiceManager(environment)
        manager.ready()
        manager.alive(1.0)
        manager.stopping()
