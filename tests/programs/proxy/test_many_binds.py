"""A group with more binds than there are descriptors in one message."""

import socket
import sys
from pathlib import Path

import pytest
from support.network import greeter
from support.network.ports import free_port
from support.processes.processes import running
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

pytestmark = [pytest.mark.programs, pytest.mark.slow("a whole appliance with thousands of sockets")]

_COUNT = 2000


def test_the_next_master_takes_over_what_its_worker_listens_on(tmp_path: Path):
    """Killed, it ends nothing: the same worker serves every address, and a reload goes on from there."""
    port, server = free_port(), free_port()
    hosts = [f"127.1.{number // 250}.{1 + number % 250}" for number in range(_COUNT)]
    binds = [f"{host}:{port}" for host in hosts]
    config = {
        "api": {"workers": 1, "frontends": {"kube-api": {"bind": binds, "pool": "masters"}}},
        "pools": {"masters": {"servers": {"one": {"address": f"127.0.0.1:{server}"}}}},
    }
    command = [sys.executable, str(Path(greeter.__file__)), "one", str(server)]
    with running(command, log=tmp_path / "log"), Appliance(config) as appliance:
        wait_until(lambda: _greets(hosts[-1], port), what="it serves")
        with socket.create_connection((hosts[0], port), timeout=30) as open_before:
            assert open_before.recv(100) == b"one\n"
            (worker,) = appliance.accepting()
            appliance.wait_for_restart("proxy-api", appliance.kill("proxy-api"))
            assert [each.pid for each in appliance.workers()] == [worker.pid]
            assert all(_greets(host, port) for host in hosts[:: _COUNT // 10])
            open_before.sendall(b".")
            assert open_before.recv(100) == b"one\n"
            answer = appliance.reload({**config, "api": {**config["api"], "workers": 2}})
            assert answer["ok"], answer
            wait_until(lambda: appliance.generation() == 2, what="the next generation accepts")
            assert _greets(hosts[-1], port)


def _greets(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=30) as connection:
            return connection.recv(100) == b"one\n"
    except OSError:
        return False
