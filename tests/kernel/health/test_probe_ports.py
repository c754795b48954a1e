"""Checks in a network namespace without a free port: a shortage of ours is no verdict on the server."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.values import snapshots

from appliance.net.probing.probe import Probe, ProbeImpossible
from appliance.net.probing.tls_contexts import TlsContexts

pytestmark = pytest.mark.kernel

_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")
def test_out_of_ports_is_no_verdict():
    """With every port in use a check is impossible, not failed; with a freed one it passes again."""
    ran = subprocess.run(
        ["unshare", "--net", "sh", "-c", f"ip link set lo up && exec {sys.executable} {__file__}"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        timeout=60,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _use_up() -> None:
    _PORTS.write_text("50000 50001")
    with socket.create_server(("127.0.0.1", 8080)) as server:
        address = server.getsockname()
        held = [socket.create_connection(address) for _ in range(2)]
        check = Probe(snapshots.check("tcp"), *address, TlsContexts())
        with pytest.raises(ProbeImpossible, match="no connection: Cannot assign requested address"):
            check.run()
        # A reset leaves no TIME_WAIT, so the port is free at once.
        held[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        held[0].close()
        assert check.run().passed


if __name__ == "__main__":
    _use_up()
