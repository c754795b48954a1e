"""New connections are spread over the workers of an address."""

import socket

import pytest
from support.network.ports import free_port
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

from appliance.net.boards.board_reader import BoardReader
from appliance.wire.boards import worker_board

pytestmark = pytest.mark.programs

_CONNECTIONS = 1000
_WORKERS = 4


def totals(appliance: Appliance) -> list[int]:
    """Return how many connections each worker has accepted."""
    found = []
    for index in range(_WORKERS):
        with BoardReader(appliance.paths.worker_board("proxy-api", 1, index)) as reader:
            found.append(sum(each.total for each in worker_board.decode(reader.read()).frontends))
    return found


@pytest.mark.promise("docs/sizing.md", "each worker has its part of the connections")
def test_each_worker_has_its_part():
    """No worker has half more than its part of the connections: the kernel divides them by a hash.

    By chance one of four has a tenth more in every eighth run, and none ever half more.
    """
    port = free_port()
    with Backend("one") as backend:
        config = {
            "api": {
                "workers": _WORKERS,
                "frontends": {"through": {"bind": [f"127.0.0.1:{port}"], "pool": "servers"}},
            },
            "pools": {"servers": {"servers": {"one": {"address": f"127.0.0.1:{backend.port}"}}}},
        }
        with Appliance(config) as appliance:
            wait_until(lambda: appliance.command("status", check=False).returncode == 0, what="all is well")
            before = totals(appliance)
            for _ in range(_CONNECTIONS):
                with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                    client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    assert client.recv(10)
            wait_until(lambda: sum(totals(appliance)) >= sum(before) + _CONNECTIONS, what="all are counted")
            taken = [after - earlier for after, earlier in zip(totals(appliance), before, strict=True)]
    assert max(taken) <= 1.5 * sum(taken) / len(taken), taken
