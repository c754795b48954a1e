"""Real clients of real servers hold one connection through many reloads, of which each brings new workers.

`E2E_FULL=1` makes a hundred reloads.
"""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from support.network.ports import free_port
from support.peers.nginx import nginx
from support.peers.websocket import PACKAGE, websocket_client, websocket_server
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.values import body
from support.values.certificates import issue

pytestmark = [
    pytest.mark.programs,
    pytest.mark.data_path,
    pytest.mark.slow("generations of real workers under load"),
]

_RELOADS = 100 if os.environ.get("E2E_FULL") == "1" else 6
_SIZE = 64 << 20
_BETWEEN = 256 << 10
"""Bytes that the client reads between two reloads; much more is under way then, held back."""


def _config(port: int, server: int, workers: int) -> dict[str, object]:
    return {
        "api": {
            "workers": workers,
            "frontends": {"kube-api": {"bind": [f"127.0.0.1:{port}"], "pool": "masters"}},
        },
        "pools": {"masters": {"check": False, "servers": {"own": {"address": f"127.0.0.1:{server}"}}}},
    }


def _reload(appliance: Appliance, config: dict[str, object]) -> None:
    before = appliance.generation()
    assert appliance.reload(config)["ok"] is True
    wait_until(
        lambda: {each.generation for each in appliance.workers()} == {appliance.generation()} != {before},
        what="only the new generation is left",
        timeout=60.0,
    )


@pytest.mark.needs("nginx", "curl")
def test_an_http2_stream_goes_on(tmp_path: Path):
    """A body is read by curl over HTTP/2 from nginx, on one connection, bit by bit between reloads."""
    certificates = issue(tmp_path, "localhost", "127.0.0.1")
    port = free_port()
    with nginx(certificates=certificates) as server:
        body.write(server.www / "large", _SIZE)
        with Appliance(_config(port, server.port, 1)) as appliance:
            command = ["curl", "-sSf", "--http2", "--cacert", str(certificates.authority)]
            told = "%{stderr}%{http_version} %{num_connects} %{http_code}"
            url = f"https://localhost:{port}/large"
            with subprocess.Popen(
                [*command, "--write-out", told, "--resolve", f"localhost:{port}:127.0.0.1", url],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            ) as client:
                assert client.stdout is not None
                assert client.stderr is not None
                digest = hashlib.sha256()
                for number in range(_RELOADS):
                    digest.update(client.stdout.read(_BETWEEN))
                    _reload(appliance, _config(port, server.port, 2 - number % 2))
                while chunk := client.stdout.read(_BETWEEN):
                    digest.update(chunk)
                assert client.stderr.read() == b"2 1 200"
            assert digest.hexdigest() == body.checksum(_SIZE)


@pytest.mark.needs(PACKAGE)
def test_a_websocket_goes_on():
    """Messages go both ways after each reload, on the connection of the first one."""
    port, server = free_port(), free_port()
    with (
        websocket_server(server),
        Appliance(_config(port, server, 1)) as appliance,
        websocket_client(f"ws://127.0.0.1:{port}") as client,
    ):
        assert client.echo("first") == "first"
        (before,) = appliance.accepting()
        assert before.sessions == 1
        for number in range(_RELOADS):
            _reload(appliance, _config(port, server, 2 - number % 2))
            assert client.echo(f"after {number}") == f"after {number}"
        assert sum(each.sessions for each in appliance.accepting()) == 1
